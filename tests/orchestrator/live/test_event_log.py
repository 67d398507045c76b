"""The list of lines: order, numbers, bounds, and the file."""

import json
from pathlib import Path

import pytest

from mrcfabric.units import NEVER
from orchestrator.live import event_log
from orchestrator.live.event_lines import Line
from orchestrator.live.event_log import EventLog


def line(at_ns: int, node: str = "h000", kind: str = "retransmit", **more: str) -> Line:
    return {"n": 0, "at_ns": at_ns, "wall_s": 1.0, "node": node, "kind": kind, "cause": "", "section": "", **more}


def filled(*instants: int) -> EventLog:
    log = EventLog()
    log.put(line(at_ns) for at_ns in instants)
    log.settle(NEVER)
    return log


def numbers(found: dict[str, list[Line]]) -> list[int]:
    return [one["n"] for one in found["events"]]


def test_lines_are_numbered_in_the_order_of_fabric_time() -> None:
    log = EventLog()
    log.put([line(30), line(10)])
    log.put([line(20), line(10, node="h001")])
    assert log.settle(20) == 3
    found = log.after(0, 10)
    assert [(one["n"], one["at_ns"], one["node"]) for one in found["events"]] == [
        (1, 10, "h000"), (2, 10, "h001"), (3, 20, "h000")
    ]  # fmt: skip
    assert log.settle(29) == 0
    assert log.settle(30) == 1
    assert log.last == 4


def test_pages_and_what_is_left() -> None:
    log = filled(1, 2, 3, 4, 5)
    first = log.after(0, 2)
    assert (numbers(first), first["last"], first["more"], first["forgotten"]) == ([1, 2], 2, True, 0)
    rest = log.after(first["last"], 10)
    assert (numbers(rest), rest["last"], rest["more"]) == ([3, 4, 5], 5, False)
    assert numbers(log.after(5, 10)) == []
    assert numbers(log.newest(2)) == [4, 5]
    assert numbers(log.newest(0)) == []


def test_lines_of_some_nodes_and_kinds() -> None:
    log = EventLog()
    log.put([line(1), line(2, node="h001"), line(3, kind="fault", node=""), line(4)])
    log.settle(NEVER)
    assert numbers(log.after(0, 10, nodes=["h000"])) == [1, 4]
    assert numbers(log.after(0, 10, kinds=["fault"])) == [3]
    assert log.after(0, 10, nodes=["h001"])["last"] == 4
    assert numbers(log.newest(1, nodes=["h000"])) == [4]


def test_the_oldest_is_forgotten_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "LINES_MAX", 3)
    log = filled(1, 2, 3, 4, 5)
    found = log.after(1, 10)
    assert (numbers(found), found["forgotten"]) == ([3, 4, 5], 1)


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "HELD_MAX", 2)
    log = EventLog()
    log.put(line(at_ns) for at_ns in (10, 20, 30))
    assert log.settle(0) == 1


def test_a_fault_that_was_healed_before_it_began_has_never_been() -> None:
    log = EventLog()
    log.put([line(100, kind="fault", id="f1"), line(100, kind="fault", id="f2"), line(100)])
    assert log.withdraw("f1", 90)
    assert not log.withdraw("f2", 101)
    assert log.settle(NEVER) == 2


def test_a_fault_that_is_healed_does_not_end_by_itself() -> None:
    log = EventLog()
    for name in ("f1", "f2"):
        log.put([line(100, kind="fault", id=name), line(300, kind="ended", id=name)])
    assert log.settle(100) == 2
    assert not log.withdraw("f1", 200), "it had begun"
    log.put([line(200, kind="healed", id="f1")])
    log.settle(NEVER)
    assert [(one["kind"], one["id"]) for one in log.after(2, 10)["events"]] == [("healed", "f1"), ("ended", "f2")]
    log.put([line(500, kind="fault", id="f3"), line(600, kind="ended", id="f3")])
    assert log.withdraw("f3", 400)
    assert log.settle(NEVER) == 0


def test_a_fault_that_was_to_be_healed_later_is_healed_once() -> None:
    log = EventLog()
    log.put([line(100, kind="fault", id="f1"), line(100, kind="fault", id="f2")])
    for name, at_ns in (("f1", 500), ("f2", 500), ("f1", 200)):
        assert not log.settle(90)
        log.withdraw(name, at_ns)
        log.put([line(at_ns, kind="healed", id=name)])
    log.settle(NEVER)
    told = [(one["at_ns"], one["id"]) for one in log.after(2, 10)["events"]]
    assert told == [(200, "f1"), (500, "f2")]


def test_the_file_has_the_lines_and_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "FILE_BYTES_MAX", 250)
    log = EventLog(tmp_path / "events.jsonl")
    for at_ns in range(1, 8):
        log.put([line(at_ns)])
        log.settle(at_ns)
    older, newer = ((tmp_path / name).read_text().splitlines() for name in ("events.1.jsonl", "events.jsonl"))
    kept = [json.loads(one)["n"] for one in older + newer]
    assert kept == list(range(kept[0], 8))
    assert all(len("\n".join(part)) <= 250 for part in (older, newer))


def test_a_disk_that_is_full_costs_the_file_alone(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "nowhere" / "events.jsonl")
    log.put([line(1)])
    assert log.settle(1) == 1
    assert numbers(log.after(0, 1)) == [1]
