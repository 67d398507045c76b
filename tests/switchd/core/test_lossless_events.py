"""What a lossless switch tells: spells of pauses, its watchdog, its group of paths; the same however time is cut."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Rank
from switchd.core.commands import SetImpairment
from switchd.core.events import CommandDone
from switchd.core.lossless import LosslessSwitch
from tests.switchd.core.test_lossless import ECMP, LOSSLESS, PORT, pfc, switch

NOISY = (replace(PORT, pause_event_ns=10_000),) * 4


def events(node: LosslessSwitch, inputs: list[Input], until: int, step: int = 0) -> list[dict[str, Any]]:
    """What a switch tells until an instant; `step`: time is cut into pieces of so much."""
    found = []
    for end in [*range(step, until, step), until] if step else [until]:
        node.advance([entry for entry in inputs if end - (step or until) < entry.at_ns <= end], end)
        while (due := node.next_timeout()) is not None and due <= end:
            node.advance([], end)
        found += [event.record() for event in node.drain_events() if not isinstance(event, CommandDone)]
    return found


@pytest.mark.parametrize("step", [0, 1_000, 7_777])
def test_a_pause_that_lasts_is_told_twice(step: int) -> None:
    node = switch(ports=NOISY)
    found = events(node, [pfc(60_000, 5, 1), pfc(0, 50_000, 1)], 200_000, step)
    assert found == [
        {"at_ns": 10_005, "kind": "pause_begun", "port": 1, "cls": 3, "since_ns": 5, "frames": 1},
        {"at_ns": 60_000, "kind": "pause_ended", "port": 1, "cls": 3, "since_ns": 5, "until_ns": 50_000,
         "paused_ns": 49_995, "frames": 1},
    ]  # fmt: skip
    assert node.next_timeout() is None


@pytest.mark.parametrize("step", [0, 1_000, 7_777])
def test_the_watchdog_tells_when_it_fires_and_when_the_class_obeys_again(step: int) -> None:
    node = switch(replace(LOSSLESS, watchdog_ns=30_000, restore_ns=40_000), ports=NOISY)
    storm = [pfc(60_000, at, 1) for at in range(5, 90_000, 20_000)]
    found = events(node, storm, 400_000, step)
    assert [(event["kind"], event["at_ns"]) for event in found] == [
        ("pause_begun", 10_005),
        ("watchdog_fired", 30_005),
        ("pause_ended", 40_005),
        ("watchdog_restored", 80_005 + 40_000),
    ]
    assert found[1]["paused_ns"] == 30_000
    assert node.next_timeout() is None


def test_a_pause_at_the_very_end_of_quiet_is_obeyed_and_the_class_told_restored_once() -> None:
    node = switch(replace(LOSSLESS, watchdog_ns=30_000, restore_ns=40_000))
    found = events(node, [pfc(60_000, 5, 1), pfc(60_000, 40_005, 1)], 60_000)
    assert [(event["kind"], event["at_ns"]) for event in found] == [
        ("watchdog_fired", 30_005),
        ("watchdog_restored", 40_005),
    ]
    assert node.egress[1].paused_until[3] > 60_000


@pytest.mark.parametrize("restore_ns", [0, 10_000, 30_000])
def test_a_short_quiet_is_over_when_the_watchdog_fires(restore_ns: int) -> None:
    node = switch(replace(LOSSLESS, watchdog_ns=30_000, restore_ns=restore_ns))
    found = events(node, [pfc(60_000, 5, 1)], 100_000)
    assert [(event["kind"], event["at_ns"]) for event in found] == [
        ("watchdog_fired", 30_005),
        ("watchdog_restored", 30_005),
    ]


@pytest.mark.parametrize("step", [0, 1_000, 7_777])
def test_a_change_of_the_group_is_told_at_its_instant_though_no_packet_comes(step: int) -> None:
    node = switch(ecmp=replace(ECMP, failover_ns=5_000))
    down, up = (SetImpairment(number, 2, Impairment(up=bool(number))) for number in range(2))
    inputs = [Input(1_000, int(Rank.COMMAND), 0, 0, down), Input(50_000, int(Rank.COMMAND), 0, 1, up)]
    assert events(node, inputs, 200_000, step) == [
        {"at_ns": 6_000, "kind": "ecmp_member", "port": 2, "up": False, "members": 1},
        {"at_ns": 55_000, "kind": "ecmp_member", "port": 2, "up": True, "members": 2},
    ]
    assert (node.next_timeout(), node.counters()["ecmp_moves"]) == (None, 2)
