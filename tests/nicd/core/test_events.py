"""Events are flat records of plain values, and say nothing that differs between two drivers."""

import pytest

from nicd.core.events import (
    STATUS_OK,
    WRITE,
    CommandDone,
    Completion,
    EvTransition,
    NicEvent,
    PeerPortChange,
    PortChange,
    QpChange,
    Retransmit,
)

EVENTS: list[NicEvent] = [
    CommandDone(1, 99, None, {"qpn": 3}),
    Completion(1, 3, 4, STATUS_OK, WRITE, 10, None),
    EvTransition(1, 3, 5, 1, 2, "good", "assumed_bad", "gap", "MRC 1.0 11.2"),
    PortChange(1, 2, False),
    PeerPortChange(1, 4, 2, True),
    QpChange(1, 3, "init", "rtr", "connected"),
    Retransmit(1, 3, "gap", 7),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_record_is_flat(event: NicEvent) -> None:
    record = event.record()
    assert list(record)[:2] == ["at_ns", "kind"]
    assert record["at_ns"] == event.at_ns
    assert all(value is None or isinstance(value, str | int | bool) for value in record.values())
    assert "token" not in record


def test_kinds_are_different() -> None:
    assert len({event.record()["kind"] for event in EVENTS}) == len(EVENTS)
