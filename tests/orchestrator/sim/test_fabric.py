"""A fabric in virtual time: commands by name, cables, ports, deaths and returns at their instants."""

import pytest

from mrcfabric.choice import Choice
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from nicd.core.events import PortChange
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from tests.support.scripts import permutation

SMALL = Topology(name="virtual", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
                 reserve_evs_per_qp=8)  # fmt: skip
SIZE = 1 << 18


def loaded(keep: int | None = None) -> SimulatedFabric:
    fabric = SimulatedFabric(SMALL, keep=keep)
    for step in permutation(SMALL, shift=1, size=SIZE, pieces=4):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    return fabric


def placed(fabric: SimulatedFabric) -> list[int]:
    return [fabric.counters(nic)["bytes_placed"] for nic in SMALL.nic_names()]


def resent(fabric: SimulatedFabric) -> int:
    return sum(sum(fabric.counters(nic)["retransmits"].values()) for nic in SMALL.nic_names())


def test_a_script_moves_its_bytes() -> None:
    fabric = loaded()
    fabric.run(500_000)
    assert placed(fabric) == [SIZE, SIZE]
    assert resent(fabric) == 0


def test_the_same_script_leaves_the_same_traces() -> None:
    first, second = loaded(keep=0), loaded(keep=0)
    for fabric in (first, second):
        fabric.inject(once("switch_crash", "p0-t1-0", at_ns=5_000, until_ns=100_000))
        fabric.run(500_000)
    for node in SMALL.node_names():
        assert [trace.digest() for trace in first.traces(node)] == [trace.digest() for trace in second.traces(node)]
    assert len(first.traces("p0-t1-0")) == 2


def test_faults_that_touch_are_one_to_a_port() -> None:
    seen: list[tuple[int, bool]] = []

    def note(_node: str, events: list[object]) -> None:
        seen.extend((one.at_ns, one.up) for one in events if isinstance(one, PortChange))

    fabric = SimulatedFabric(SMALL, on_events=note)
    for at_ns in (5_000, 15_000):
        fabric.inject(once("link_down", "h000~p0-t0-0", at_ns=at_ns, until_ns=at_ns + 10_000))
    fabric.run(50_000)
    assert seen == [(5_000, False), (25_000, True)]


def test_a_dead_switch_is_gone_and_back() -> None:
    fabric = loaded()
    fabric.inject(once("switch_reboot", "p0-t1-0", at_ns=5_000, until_ns=300_000))
    fabric.run(200_000)
    with pytest.raises(KeyError):
        fabric.counters("p0-t1-0")
    fabric.run(900_000)
    assert fabric.counters("p0-t1-0")["received"] > 0, "probes found it again"
    assert placed(fabric) == [SIZE, SIZE]
    assert resent(fabric) > 0


def test_a_cut_cable_costs_retransmissions_and_nothing_else() -> None:
    fabric = loaded()
    fabric.inject(once("link_down", "p1-t0-0~p1-t1-1", at_ns=4_000, until_ns=200_000))
    fabric.run(900_000)
    assert placed(fabric) == [SIZE, SIZE]
    assert resent(fabric) > 0


def test_a_nic_sees_its_own_port_and_that_of_a_dead_t0() -> None:
    seen: list[tuple[str, int, int, bool]] = []

    def note(node: str, events: list[object]) -> None:
        changes = [event for event in events if isinstance(event, PortChange)]
        seen.extend((node, event.at_ns, event.port, event.up) for event in changes)

    fabric = SimulatedFabric(SMALL, on_events=note)
    fabric.inject(once("nic_port_down", "h001:1", at_ns=4_000, until_ns=9_000))
    fabric.inject(once("t0_down", "p0-t0-0", at_ns=20_000, until_ns=60_000))
    fabric.run(100_000)
    delay = SMALL.link_delay_ns
    assert sorted(seen) == [
        ("h000", 20_000 + delay, 0, False),
        ("h000", 60_000 + delay, 0, True),
        ("h001", 4_000, 1, False),
        ("h001", 9_000, 1, True),
    ]


def test_nonsense_is_refused() -> None:
    fabric = SimulatedFabric(SMALL)
    with pytest.raises(RefusedError, match="no command"):
        fabric.command("h000", "post_wrote", {})
    with pytest.raises(ConfigError):
        fabric.inject(once("link_down", "p0-t0-0~p0-t1-7", at_ns=5_000))


def test_who_follows_packets_changes_nothing() -> None:
    plain, followed = loaded(keep=0), loaded(keep=0)
    followed.follow(Choice())
    for fabric in (plain, followed):
        fabric.inject(once("switch_crash", "p0-t1-0", at_ns=5_000, until_ns=100_000))
        fabric.inject(once("loss", "p1-t0-0~p1-t1-1", at_ns=4_000, until_ns=200_000, share_ppm=200_000))
        fabric.inject(once("delay", "p1-t0-0~p1-t1-0", at_ns=4_000, until_ns=200_000, delay_ns=500, jitter_ns=900))
        fabric.run(500_000)
    for node in SMALL.node_names():
        assert [trace.digest() for trace in plain.traces(node)] == [trace.digest() for trace in followed.traces(node)]
    assert plain.statements("h000") == []
    assert {one["step"] for one in followed.statements("p1-t0-0")} == {"offer", "depart", "carry"}
    assert followed.statements("p0-t1-0"), "also in the second life"
    assert followed.statements("p0-t1-0") == [], "read once"
    followed.follow(None)
    followed.run(501_000)
    assert followed.statements("h000") == []
