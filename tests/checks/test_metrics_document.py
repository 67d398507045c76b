"""docs/METRICS.md is what the definitions say, and their names are as Prometheus wants them."""

import re
import runpy
from itertools import chain

from orchestrator.agent.metrics import SECTIONS, series_names
from tests.checks.source import ROOT

DEFINITIONS = list(chain.from_iterable(SECTIONS.values()))


def test_the_document_is_fresh() -> None:
    wanted = runpy.run_path(str(ROOT / "docs/generate_metrics.py"))["document"]()
    assert (ROOT / "docs/METRICS.md").read_text() == wanted, "python docs/generate_metrics.py > docs/METRICS.md"


def test_names() -> None:
    names = [definition.name for definition in DEFINITIONS]
    assert len(set(names)) == len(names)
    for definition in DEFINITIONS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", definition.name)
        # promtool's rules: no unit or kind in the wrong place, base units only.
        assert not definition.name.endswith(("_total", "_count", "_bucket", "_sum")), definition.name
        assert not re.search(r"_(ns|us|ms|kib|mb|bits)(_|$)", definition.name), definition.name
        assert definition.help.endswith(".")
        assert definition.question.endswith("?")
        assert definition.unit
        assert "|" not in definition.help + definition.question
        assert (definition.kind == "histogram") == bool(definition.bounds)
    assert len(series_names()) == sum(len(definition.series) for definition in DEFINITIONS)


def test_units_stand_in_names() -> None:
    for definition in DEFINITIONS:
        for unit in ("seconds", "bytes"):
            assert (unit in definition.unit.split()) == (unit in definition.name.split("_")), definition.name


def test_no_series_per_ev_or_qp() -> None:
    labels = {label for definition in DEFINITIONS for label in definition.labels}
    assert not labels & {"ev", "qp", "qpn", "psn"}
