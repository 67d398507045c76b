"""docs/METRICS.md is what the definitions say, and their names are as Prometheus wants them."""

import re
import runpy
from itertools import chain

from mrcfabric.metrics import COMMON
from nicd import metrics as nic
from switchd import metrics as switch
from tests.checks.source import ROOT

DEFINITIONS = list(chain(COMMON, nic.DEFINITIONS, switch.DEFINITIONS))


def test_the_document_is_fresh() -> None:
    wanted = runpy.run_path(str(ROOT / "docs/generate_metrics.py"))["document"]()
    assert (ROOT / "docs/METRICS.md").read_text() == wanted, "python docs/generate_metrics.py > docs/METRICS.md"


def test_names() -> None:
    names = [definition.name for definition in DEFINITIONS]
    assert len(set(names)) == len(names)
    for definition in DEFINITIONS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", definition.name)
        # promtool's rules: no unit or kind in the wrong place, base units only.
        assert not definition.name.endswith(("_total", "_count", "_bucket", "_info")), definition.name
        assert not re.search(r"_(ns|us|ms|kib|mb|bits)(_|$)", definition.name), definition.name
        assert definition.help.endswith(".")


def test_no_series_per_ev_or_qp() -> None:
    labels = {label for definition in DEFINITIONS for label in definition.labels}
    assert not labels & {"ev", "qp", "qpn", "psn", "port"}
