"""The names under which the fork server finds a worker."""

import importlib
import subprocess
import sys

from orchestrator.workers.entry import ENTRY, PRELOADED


def test_the_names_lead_to_the_worker() -> None:
    module, _, function = ENTRY.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    assert module in PRELOADED


def test_who_starts_workers_loads_no_tensors() -> None:
    code = (
        "import sys, orchestrator.workers.entry, orchestrator.runs.worker_placement; sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
