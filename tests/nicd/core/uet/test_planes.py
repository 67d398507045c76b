"""By which plane packets leave: in turn, by those with carrier, and not by one that is silent while others deliver."""

import itertools
from collections import Counter
from typing import Any

import pytest

from mrcfabric.wire.uet_layout import FLAG_RETX
from nicd.core.commands import SetCarrier
from tests.nicd.core.uet.pipe import Pipe


def by_port(pipe: Pipe, since_ns: int = 0, until_ns: int = 1 << 60) -> dict[int, int]:
    bins = pipe.nics[1]._board.bins.since(0)
    counts: dict[int, int] = {}
    for start, row in bins:
        if since_ns <= start < until_ns:
            for port, size in enumerate(row):
                counts[port] = counts.get(port, 0) + size
    return counts


def test_all_planes_carry_the_same() -> None:
    pipe = Pipe(planes=4)
    pipe.write(1 << 20)
    pipe.run(1_000_000)
    counts = by_port(pipe)
    assert max(counts.values()) - min(counts.values()) <= 3 * 4_096
    assert pipe.completions()[0].at_ns < 27_000


def test_each_plane_has_entropies_of_its_own() -> None:
    pipe = Pipe(planes=2, evs=4, uet_path="oblivious")
    pipe.write(1 << 19)
    pipe.run(1_000_000)
    planes = pipe.link(0).planes
    found = [set(choice._entropies) for choice in planes._choices]  # type: ignore[attr-defined]
    assert [len(one) for one in found] == [4, 4]
    assert {seen.entropy for seen in pipe.data()} == found[0] | found[1]


def test_an_ordered_context_keeps_to_one_plane_and_moves_when_it_must() -> None:
    pipe = Pipe(planes=4, uet_mode="rod")
    pipe.write(1 << 18)
    pipe.run(10_000)
    used = [port for port, size in by_port(pipe).items() if size]
    assert len(used) == 1
    pipe.command(0, pipe.now + 5, SetCarrier(0, used[0], False))
    pipe.run(2_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert len([size for size in by_port(pipe).values() if size]) == 2
    assert pipe.target()[: 1 << 18] == bytes(pipe.source[: 1 << 18])


def test_a_port_without_carrier_carries_nothing() -> None:
    pipe = Pipe(planes=4)
    pipe.command(0, 5, SetCarrier(0, 2, False))
    pipe.write(1 << 18)
    pipe.run(1_000_000)
    assert by_port(pipe)[2] == 0
    assert [done.status for done in pipe.completions()] == ["ok"]


def test_without_any_carrier_it_waits_and_goes_on() -> None:
    pipe = Pipe(planes=2)
    for port in (0, 1):
        pipe.command(0, 5, SetCarrier(0, port, False))
    pipe.write(1 << 16)
    pipe.run(300_000)
    assert not pipe.data()
    pipe.command(0, 300_010, SetCarrier(0, 1, True))
    pipe.run(1_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]


def with_a_dead_port(planes: int, dead: int, **nic: Any) -> tuple[Pipe, list[int], list[int]]:
    """Ten transfers towards a NIC whose port is down, which UET does not say.

    Also: when the plane was left, and how many packets were lost by the end of each transfer.
    """
    pipe = Pipe(planes=planes, **nic)
    pipe.command(1, 2, SetCarrier(0, dead, False))
    left: list[int] = []
    lost: list[int] = []
    for number in range(10):
        pipe.write(1 << 19, wr_id=1 + number, at_ns=max(100, pipe.now + 10))
        until_ns = pipe.now + 400_000
        while pipe.now < until_ns:
            pipe.run(pipe.now + 2_000)
            left += [pipe.now] * (pipe.counter(0, "uet", "planes_left") - len(left))
        lost.append(pipe.counter(0, "packets_lost"))
    pipe.run(pipe.now + 2_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"] * 10
    return pipe, left, lost


@pytest.mark.parametrize(("planes", "dead"), [(2, 0), (2, 1), (4, 3)])
def test_a_plane_that_is_silent_while_others_deliver_is_left_for_ever_longer(planes: int, dead: int) -> None:
    pipe, left, lost = with_a_dead_port(planes, dead)
    leave_ns = pipe.nics[0].config.settings.uet_plane_leave_ns
    assert left
    for number, (one, other) in enumerate(itertools.pairwise(left)):
        assert other - one >= leave_ns << number, "twice as long each time"
    _, never, each_time = with_a_dead_port(planes, dead, uet_leave_planes=False)
    assert not never
    assert 2 * (lost[-1] - lost[3]) < each_time[-1] - each_time[3]


@pytest.mark.parametrize("share", [1, 20])
def test_how_long_it_is_left_is_a_setting(share: int) -> None:
    leave_ns = share * 40_000
    _, left, _ = with_a_dead_port(2, 0, uet_plane_leave_ns=leave_ns)
    assert len(left) > 1
    assert left[1] - left[0] >= leave_ns


@pytest.mark.parametrize("planes", [2, 3, 4])
def test_what_one_plane_has_lost_goes_by_another(planes: int) -> None:
    pipe, _, lost = with_a_dead_port(planes, 0, uet_leave_planes=False)
    again = Counter(seen.psn for seen in pipe.data() if seen.flags & FLAG_RETX)
    assert again.total() == lost[-1] > 0
    # Of two planes the other one may have no room at that instant.
    assert max(again.values()) == 1 + (planes == 2)
