"""Pauses in a fabric, against closed forms: bystanders, parking lots, storms, and a hashed permutation.

Hosts send at line rate and have no transport. C is the rate of a link.
"""

import statistics
from collections import Counter
from typing import Any

import pytest

from mrcfabric.topology import Topology
from tests.support.corners import corners
from tests.support.roce_hosts import SPORT, HostFabric

STATIC = {"pfc_threshold": "static", "pfc_xoff_bytes": 200_000}
"""Some times what is under way on a link, so that shares are hardly bent by how far each pause is overshot."""


def two_leaves(below: int, spines: int = 1, **switch: Any) -> HostFabric:
    """Two T0s with so many NICs each: numbers from 0 and from `below` on."""
    return HostFabric(
        Topology(
            planes=1, t0_per_plane=2, t1_per_plane=spines, nics_per_t0=below, evs_per_qp=8, reserve_evs_per_qp=0,
            switch={"forwarding": "ecmp", "lossless": "pfc", "ecn": False, **STATIC, **switch},
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("local", "remote"),
    [(1, 1), (4, 2), *(pytest.param(*one, marks=pytest.mark.long) for one in [(2, 1), (3, 1), (1, 2), (2, 3)])],
)
def test_p1_a_bystander_gets_what_the_victims_of_its_uplink_get(local: int, remote: int) -> None:
    """k local senders and m remote flows to one NIC; a bystander shares the up-link with the remote ones.

    In one class it gets C / ((k + 1) m), and in another its fair part of the up-link.
    """
    below = max(remote + 1, local + 2)
    for dscp, lossless in ((26, "3"), (34, "3,4")):
        fabric = two_leaves(below, pfc_classes=lossless)
        target, bystander = below, below + 1
        for number in range(local):
            fabric.flow(below + 2 + number, target)
        for number in range(remote):
            fabric.flow(number, target)
        fabric.flow(remote, bystander, dscp=dscp)
        fabric.run(500_000)
        rates = fabric.rates(800_000)
        assert fabric.drops() == {}
        victims = 1 / ((local + 1) * remote)
        for number in range(local):
            assert rates[below + 2 + number, SPORT, target] == pytest.approx(1 / (local + 1), rel=0.15)
        for number in range(remote):
            assert rates[number, SPORT, target] == pytest.approx(victims, rel=0.15)
        found = rates[remote, SPORT, bystander]
        if dscp == 26:
            # No more than its part of the up-link, where the target does not hold it back.
            assert found == pytest.approx(min(victims, 1 / (remote + 1)), rel=0.15)
        else:
            # Weighted fair classes: all that the other class leaves, half of the wire at least.
            left = 1 - sum(rates[number, SPORT, target] for number in range(remote))
            assert found == pytest.approx(left, rel=0.05)
            assert left >= 0.98 * max(0.5, 1 - 1 / (local + 1))


@pytest.mark.parametrize("remote", [1, 2, 3, 5])
def test_p2_shares_go_by_port_and_not_by_flow(remote: int) -> None:
    """One local sender gets C / 2, and m flows through the up-link C / (2 m) each."""
    fabric = two_leaves(max(remote, 2))
    below = fabric.topology.nics_per_t0
    fabric.flow(below + 1, below)
    for number in range(remote):
        fabric.flow(number, below)
    fabric.run(300_000)
    rates = fabric.rates(800_000)
    assert fabric.drops() == {}
    assert sum(rates.values()) == pytest.approx(1, rel=0.01)
    assert rates[below + 1, SPORT, below] == pytest.approx(0.5, rel=0.05)
    for number in range(remote):
        assert rates[number, SPORT, below] == pytest.approx(0.5 / remote, rel=0.1)


@pytest.mark.parametrize("xoff", [20_000, 60_000, 200_000])
@pytest.mark.parametrize("delay_ns", [500, 2_000])
def test_p3_a_storm_stops_hop_after_hop_and_then_all_that_share_the_class(xoff: int, delay_ns: int) -> None:
    """Each hop pauses the one before it after XOFF / rate; then nothing moves until the watchdog ends it."""
    storm_ns, watchdog_ns = 50_000, 3_000_000
    fabric = HostFabric(
        Topology(
            planes=1, t0_per_plane=2, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
            link_delay_ns=delay_ns,
            switch={
                "forwarding": "ecmp", "lossless": "pfc", "ecn": False, "pfc_threshold": "static",
                "pfc_xoff_bytes": xoff, "pfc_watchdog_ns": watchdog_ns, "pfc_watchdog_restore_ns": 10_000_000,
            },
        )
    )  # fmt: skip
    fabric.flow(0, 2)
    # The stopped NIC repeats its pause for ever.
    fabric.pause(2, *range(storm_ns, storm_ns + 20_000_000, 100_000))
    fabric.run(storm_ns + 1_000_000)
    # Two NICs whose way leads over the same up-link, in the same class: one through it, one not.
    before = fabric.host(3).received.total()
    packet_ns, pfc_ns = (4160 + 38) * 8 / 100, 84 * 8 / 100
    hop_ns = -(-xoff // 4160) * packet_ns + delay_ns + pfc_ns
    heard = {}
    for frame in fabric.heard:
        if frame.quanta and frame.node != "h002":
            heard.setdefault(frame.node, frame.at_ns)
    wanted_ns = storm_ns + pfc_ns + delay_ns
    for node in ("p0-t1-0", "p0-t0-0", "h000"):
        wanted_ns += hop_ns
        # The phase of a packet on each wire: it is in when its last bit is.
        assert heard[node] == pytest.approx(wanted_ns, abs=2 * packet_ns * (1 + len(heard)))
    fabric.flow(1, 3, start_ns=storm_ns + 1_000_100)
    fabric.run(storm_ns + watchdog_ns - 1)
    assert fabric.host(3).received.total() == before, "it shares the class with the storm"
    assert fabric.drops() == {}
    fabric.run(storm_ns + watchdog_ns + 200_000 + 10 * delay_ns)
    assert fabric.switches["p0-t0-1"].counters()["pfc"][0][3]["storms"] == 1
    # The switch stopped the storm at the instant: 3 ms after the pause reached it.
    first = next(at for at in fabric.host(2).arrivals[0, SPORT] if at > storm_ns + 1_000_000)
    assert first == pytest.approx(storm_ns + pfc_ns + delay_ns + watchdog_ns + packet_ns + delay_ns, abs=3)
    rates = fabric.rates(200_000)
    assert rates[0, SPORT, 2] == pytest.approx(0.5, rel=0.05)
    assert rates[1, SPORT, 3] == pytest.approx(0.5, rel=0.05)


def test_without_a_watchdog_a_storm_lasts() -> None:
    fabric = two_leaves(2)
    fabric.flow(0, 2)
    fabric.flow(1, 3)
    fabric.pause(2, *range(50_000, 10_000_000, 100_000))
    fabric.run(1_000_000)
    before = fabric.host(3).received.total()
    fabric.run(5_000_000)
    assert fabric.host(3).received.total() == before
    assert fabric.drops() == {}


def test_quiet_fabrics_go_to_sleep() -> None:
    fabric = two_leaves(3)
    for sender in range(2):
        fabric.flow(sender, 4, count=200)
    fabric.run(10_000_000)
    assert fabric.simulator.next_due() is None
    assert fabric.host(4).received.total() == 400 * 4160
    assert all(switch.counters()["buffer"]["bytes"] == 0 for switch in fabric.switches.values())


def test_deep_queues_mark() -> None:
    fabric = two_leaves(3, ecn=True, ecn_last_hop=True, ecn_min_bytes=20_000, ecn_max_bytes=40_000)
    for sender in range(2):
        fabric.flow(sender, 4, count=200)
    fabric.run(10_000_000)
    assert fabric.host(4).marked > 100
    assert fabric.drops() == {}


@pytest.mark.parametrize("spines", corners([2, 4], 4))
def test_e1_links_used_by_a_hashed_permutation_in_a_running_fabric(spines: int) -> None:
    """What the switches count is what went by each link; the mean over seeds is M (1 - (1 - 1/M)^N)."""
    below, used = 4, []
    for seed in range(40):
        topology = Topology(
            planes=1, t0_per_plane=2, t1_per_plane=spines, nics_per_t0=below, evs_per_qp=8, reserve_evs_per_qp=0,
            seed=str(seed), switch={"forwarding": "ecmp", "lossless": "pfc"},
        )  # fmt: skip
        fabric = HostFabric(topology)
        for number in range(below):
            fabric.flow(number, below + number, sport=SPORT + seed + number, count=5)
        fabric.run(100_000)
        leaf = fabric.switches["p0-t0-0"].counters()
        spread = Counter({port - below: count for port, count in leaf["ecmp"].items()})
        assert spread.total() == 5 * below
        for spine in range(spines):
            assert fabric.switches[f"p0-t1-{spine}"].counters()["received"] == spread[spine]
        used.append(sum(count > 0 for count in spread.values()))
    wanted = spines * (1 - (1 - 1 / spines) ** below)
    chance = 4 * (statistics.pvariance(used) / len(used)) ** 0.5
    assert statistics.mean(used) == pytest.approx(wanted, abs=max(0.02 * wanted, chance))
