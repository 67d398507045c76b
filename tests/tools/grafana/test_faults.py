"""Faults and recovery: cause and effect one below the other on one time axis."""

from tools.grafana.faults import BOARD


def test_fault_goodput_and_evs_stand_one_below_the_other() -> None:
    course = BOARD.rows[1].panels
    assert [panel.title for panel in course] == ["Faults in force", "Goodput", "EVs out of use by plane"]
    assert all(panel.width == 24 for panel in course)


def test_what_only_a_mapper_knows_is_folded_away() -> None:
    assert [row.title for row in BOARD.rows if row.folded] == ["Mapper"]
