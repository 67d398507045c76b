"""The table of the systems has a measured cell for every system and property."""

from mrcfabric import bundles
from mrcfabric.units import NEVER
from studies.systems.claims import FAMILIES, PROPERTIES, table
from studies.systems.contrast import FIGURES, SYSTEMS
from studies.systems.row import seen

FOUND = [seen(f"{figure.name} {system}", 7.0, figure.digits, figure.unit) for figure in FIGURES for system in SYSTEMS]


def test_every_system_is_shown_and_ships() -> None:
    assert sorted(system for systems in FAMILIES.values() for system in systems) == sorted(SYSTEMS)
    assert set(SYSTEMS) <= set(bundles.names())


def test_every_figure_has_its_line_and_every_line_its_cells() -> None:
    assert [name for one in PROPERTIES for name in one.figures] == [figure.name for figure in FIGURES]
    lines = table(FOUND).splitlines()
    assert len(lines) == 2 + len(PROPERTIES) + len(FIGURES)
    assert all(line.count("|") == len(FAMILIES) + 2 for line in lines)


def test_systems_of_a_family_that_differ_are_named_and_a_failed_qp_is_said() -> None:
    other = [seen("links ib", 3.0, 0) if one.at == "links ib" else one for one in FOUND]
    assert "| 3 (ib), 7 (ib-adaptive) | 7 | 7 | 7 |" in table(other)
    failed = [seen("recovery roce", NEVER / 1_000, 1, "us") if one.at == "recovery roce" else one for one in FOUND]
    assert "never: its QP fails" in table(failed)
