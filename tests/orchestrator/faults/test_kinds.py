"""The catalogue of faults: every figure says its unit, every kind what it means."""

from orchestrator.faults.kinds import KINDS

UNITS = ("_ns", "_ppm", "_bps", "_bytes", "_packets")
WITHOUT_UNIT = {"usid", "ev", "off", "qpn", "psn", "psns", "towards", "port", "factor", "nic"}


def test_every_figure_ends_in_its_unit() -> None:
    for name, kind in KINDS.items():
        for figure in kind.figures:
            assert figure.endswith(UNITS) or figure in WITHOUT_UNIT, f"{name}.{figure}"


def test_a_figure_that_must_be_given_has_no_default() -> None:
    required = [figure for kind in KINDS.values() for figure in kind.figures.values() if figure.required]
    assert required
    assert all(figure.default is None for figure in required)
