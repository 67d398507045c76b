"""Programs of the system that some tests run for real: tshark, Prometheus, a browser.

Without one its tests are skipped, with the reason; where CI is set they fail instead, because `.ci/run` installs all.
"""

import os
import shutil
from pathlib import Path

import pytest


def program(name: str) -> Path:
    """Where the program is; skips the test, or fails it in CI, when it is not there."""
    found = shutil.which(name)
    if found is not None:
        return Path(found)
    if os.environ.get("CI"):
        pytest.fail(f"{name} is not installed; .ci/run installs what the tests run")
    pytest.skip(f"{name} is not installed")
