"""What a NIC tells of the pauses that its switches ask for."""

from dataclasses import replace
from typing import Any

from mrcfabric.pause_spells import PauseBegun, PauseEnded
from mrcfabric.wire.pfc import PfcFrame, encode, parse
from nicd.compose import nic_config
from nicd.core.board import Board
from nicd.core.class_ports import ClassPorts
from nicd.core.pause_watch import PauseWatch
from tests.nicd.core.test_pause_sender import topology


def board(**switch: Any) -> tuple[Board, PauseWatch]:
    plain = topology()
    made = Board(nic_config(replace(plain, switch={**plain.switch, **switch}), "h000"), 4_200)
    assert isinstance(made.ports, ClassPorts)
    return made, PauseWatch(made, made.ports)


def frame(quanta: dict[int, int]) -> PfcFrame:
    found = parse(encode(bytes(6), quanta))
    assert found is not None
    return found


def run(made: Board, until: int) -> list[Any]:
    while (now := made.timers.next_ns()) <= until:
        made.timers.fire(now)
    events = list(made.events)
    made.events.clear()
    return events


def test_a_spell_is_told_by_port_and_class_and_leaves_no_timer_behind() -> None:
    made, watch = board(pfc_event_ns=10_000)
    assert isinstance(made.ports, ClassPorts)
    watch.heard(100, 1, frame({3: 65_535}))
    watch.heard(200, 0, frame({3: 100, 4: 100}))
    assert run(made, 10_100) == [PauseBegun(10_100, 1, 3, 100, 1)]
    watch.heard(20_000, 1, frame({3: 0}))
    assert run(made, 1_000_000) == [PauseEnded(30_000, 1, 3, 100, 20_000, 19_900, 1)]
    assert made.timers.next_ns() > 1_000_000


def test_it_can_be_off() -> None:
    made, watch = board(pfc_event_ns=0)
    watch.heard(100, 1, frame({3: 65_535}))
    assert (run(made, 10_000_000), made.timers.next_ns() > 10_000_000) == ([], True)
