"""Tables in, differences over a window out: restarts, late probes, what is forgotten."""

from typing import Any

from orchestrator.mapper.link_evidence import NONE, Counts, LinkEvidence

WAY = (0, 1)
COLUMNS = ["plane", "t1", "sent", "back", "lost", "late", "silent"]


def table(back: int, lost: int, late: int = 0, silent: int = 0, start_ns: int = 0, carrier: int = 1) -> dict[str, Any]:
    rows = [[0, 1, back + lost, back, lost, late, silent]]
    return {"columns": COLUMNS, "rows": rows, "start_ns": start_ns, "carrier": carrier}


def entered(*tables: tuple[int, dict[str, Any] | None], window_ns: int = 100) -> LinkEvidence:
    evidence = LinkEvidence(1, window_ns)
    for at_ns, found in tables:
        evidence.enter(0, at_ns, found)
    return evidence


def test_counting_begins_with_the_first_table() -> None:
    assert entered((0, table(50, 7))).window(0, WAY) == Counts(0, 0, 0)
    assert entered((0, table(50, 7)), (10, table(60, 9, silent=2))).window(0, WAY) == Counts(12, 2, 2)


def test_what_is_older_than_the_window_no_longer_counts() -> None:
    tables = [(at_ns, table(at_ns, at_ns // 10)) for at_ns in range(0, 1001, 50)]
    evidence = entered(*tables)
    assert evidence.window(0, WAY) == Counts(110, 10, 0)
    assert evidence.latest(0, WAY) == Counts(55, 5, 0)


def test_a_late_probe_was_not_lost() -> None:
    evidence = entered((0, table(0, 0)), (10, table(8, 2, late=1)))
    assert evidence.window(0, WAY) == Counts(10, 1, 0)


def test_late_ones_of_an_earlier_window_do_not_make_losses_negative() -> None:
    assert entered((0, table(0, 5)), (10, table(3, 5, late=2))).window(0, WAY) == Counts(3, 0, 0)


def test_a_restarted_nic_begins_anew() -> None:
    evidence = entered((0, table(0, 0)), (50, table(40, 4)), (60, table(3, 1, start_ns=55)))
    assert evidence.window(0, WAY) == Counts(4, 1, 0)


def test_a_nic_that_does_not_answer_shows_nothing() -> None:
    evidence = entered((0, table(0, 0)), (10, table(9, 0)), (20, None))
    assert not evidence.answers(0)
    assert evidence.window(0, WAY) == evidence.latest(0, WAY) == NONE
    evidence.enter(0, 30, table(20, 0))
    assert evidence.window(0, WAY).probes == 20


def test_what_is_forgotten_stays_forgotten() -> None:
    evidence = entered((0, table(0, 0)), (10, table(5, 5)))
    evidence.forget(0, WAY)
    assert evidence.window(0, WAY) == Counts(0, 0, 0)
    evidence.enter(0, 20, table(9, 6))
    assert evidence.window(0, WAY) == evidence.latest(0, WAY) == Counts(5, 1, 0)
    evidence.enter(0, 300, table(19, 6))
    assert evidence.window(0, WAY) == Counts(10, 0, 0)


def test_carrier_is_a_bit_per_plane() -> None:
    evidence = entered((0, table(0, 0, carrier=0b10)))
    assert [evidence.carrier(0, plane) for plane in (0, 1)] == [False, True]
