"""Credits in a fabric of InfiniBand, against closed forms: bystanders, parking lots, permutations, deadlock, repair.

Hosts send at line rate and have no transport. C is the rate of a link.
"""

import statistics
from dataclasses import replace
from random import Random

import pytest

from mrcfabric.impairment import Impairment
from switchd.core.commands import SetImpairment
from tests.support.credit_hosts import PORT, SIZE, CreditFabric, RingFabric


def test_one_flow_has_the_line_and_two_share_it() -> None:
    fabric = CreditFabric(2, 2, 1)
    fabric.flow(0, 2)
    fabric.flow(1, 2, start_ns=400_001)
    fabric.run(100_000)
    assert fabric.rates(300_000)[0, 2, 0] == pytest.approx(1, rel=0.02)
    fabric.run(600_000)
    rates = fabric.rates(400_000)
    assert rates[0, 2, 0] == pytest.approx(0.5, rel=0.05)
    assert rates[1, 2, 0] == pytest.approx(0.5, rel=0.05)
    assert fabric.drops() == {}


@pytest.mark.parametrize(
    ("local", "remote"), [(1, 1), (4, 2), *(pytest.param(*one, marks=pytest.mark.long) for one in [(3, 1), (1, 2)])]
)
def test_i2_a_bystander_of_an_incast_on_one_vl_and_on_another(local: int, remote: int) -> None:
    """k local senders and m remote flows to one host: C / ((k + 1) m) for who shares up-link and VL with them."""
    below = max(remote + 1, local + 2)
    for sl in (0, 1):
        fabric = CreditFabric(2, below, 1)
        target, bystander = below, below + 1
        for number in range(local):
            fabric.flow(below + 2 + number, target)
        for number in range(remote):
            fabric.flow(number, target)
        fabric.flow(remote, bystander, sl=sl)
        fabric.run(400_000)
        rates = fabric.rates(600_000)
        assert fabric.drops() == {}
        victims = 1 / ((local + 1) * remote)
        for number in range(local):
            assert rates[below + 2 + number, target, 0] == pytest.approx(1 / (local + 1), rel=0.15)
        for number in range(remote):
            assert rates[number, target, 0] == pytest.approx(victims, rel=0.15)
        found = rates[remote, bystander, sl]
        if sl == 0:
            assert found == pytest.approx(min(victims, 1 / (remote + 1)), rel=0.15)
            assert fabric.hosts[bystander].vls.keys() == {0}
        else:
            left = 1 - sum(rates[number, target, 0] for number in range(remote))
            assert found == pytest.approx(left, rel=0.05)
            assert fabric.hosts[bystander].vls.keys() == {1}


@pytest.mark.parametrize("remote", [1, 3, 5])
def test_p2_shares_go_by_port_and_not_by_flow(remote: int) -> None:
    fabric = CreditFabric(2, max(remote, 2), 1)
    fabric.flow(fabric.below + 1, fabric.below)
    for number in range(remote):
        fabric.flow(number, fabric.below)
    fabric.run(300_000)
    rates = fabric.rates(600_000)
    assert fabric.drops() == {}
    assert rates[fabric.below + 1, fabric.below, 0] == pytest.approx(0.5, rel=0.05)
    for number in range(remote):
        assert rates[number, fabric.below, 0] == pytest.approx(0.5 / remote, rel=0.1)


def permuted(count: int, below: int, draw: Random | None) -> list[int]:
    """To whom each host sends, to none of its own leaf: a shift, or drawn."""
    if draw is None:
        return [(host + below) % count for host in range(count)]
    while True:
        targets = list(range(count))
        draw.shuffle(targets)
        if all(host // below != target // below for host, target in enumerate(targets)):
            return targets


def expected(targets: list[int], below: int, spines: int) -> list[float]:
    """Fair rates of the flows over the links that the tables say."""
    ways = []
    for host, target in enumerate(targets):
        spine = target % spines
        ways.append([("up", host // below, spine), ("down", spine, target // below)])
    return max_min_rates(ways)


def max_min_rates(ways: list[list[tuple[str, int, int]]]) -> list[float]:
    """Each round the fullest link fixes the flows on it."""
    rates: list[float | None] = [None] * len(ways)
    while None in rates:
        users: dict[tuple[str, int, int], list[int]] = {}
        for flow, way in enumerate(ways):
            for link in way:
                users.setdefault(link, []).append(flow)
        share = {}
        for link, flows in users.items():
            free = [flow for flow in flows if rates[flow] is None]
            if free:
                used = sum(rates[flow] or 0 for flow in flows)
                share[link] = (1 - used) / len(free), free
        part, flows = min(share.values())
        for flow in flows:
            rates[flow] = min(part, 1.0)
    return [rate or 0 for rate in rates]


def test_i3_a_shift_permutation_collides_nowhere() -> None:
    fabric = CreditFabric(3, 4, 4)
    for host, target in enumerate(permuted(12, 4, None)):
        fabric.flow(host, target)
    fabric.run(30_000)
    rates = fabric.rates(50_000)
    assert len(rates) == 12
    assert min(rates.values()) == pytest.approx(1, rel=0.03)
    assert fabric.drops() == {}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_i3_a_drawn_permutation_is_shared_as_max_min_says(seed: int) -> None:
    """Among the links of the tables. Who shares an up-link with a victim is one too, so it may be less, never more."""
    fabric = CreditFabric(3, 4, 4)
    targets = permuted(12, 4, Random(seed))
    for host, target in enumerate(targets):
        fabric.flow(host, target)
    fabric.run(60_000)
    rates = fabric.rates(100_000)
    fair = expected(targets, 4, 4)
    found = [rates[host, target, 0] for host, target in enumerate(targets)]
    assert statistics.fmean(found) == pytest.approx(statistics.fmean(fair), rel=0.1)
    assert all(one <= most * 1.15 for one, most in zip(found, fair, strict=True))
    assert fabric.drops() == {}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_i6_adaptive_routing_per_packet_comes_near_to_the_line_and_by_flowlet_does_not(seed: int) -> None:
    """Flows that never pause stay where they began."""
    means = {}
    targets = permuted(12, 4, Random(seed))
    for adaptive in ("off", "packet", "flowlet"):
        fabric = CreditFabric(3, 4, 4, replace(PORT, blocks=(2_048, 2_048)), adaptive=adaptive, flowlet_ns=50_000)
        for host, target in enumerate(targets):
            fabric.flow(host, target)
        fabric.run(60_000)
        means[adaptive] = statistics.fmean(fabric.rates(60_000).values())
        assert fabric.drops() == {}
    print(means)
    assert 1 - means["packet"] < 0.5 * (1 - means["off"])
    assert means["flowlet"] < means["packet"] - 0.05


# I4: a link dies.


@pytest.mark.parametrize("failover_ns", [0, 20_000])
def test_i4_local_repair_loses_what_was_sent_before_it(failover_ns: int) -> None:
    fabric = CreditFabric(2, 2, 2, failover_ns=failover_ns)
    fabric.flow(0, 2, count=600)
    at_ns, port = 100_000, 2 + 2 % 2
    fabric.simulator.command("leaf0", at_ns, SetImpairment(1, port, Impairment(up=False)))
    fabric.run(2_000_000)
    lost = fabric.switches["leaf0"].egress[port].drops["link_down"]
    packet_ns = (SIZE - 2) * 8 / 100
    # What was lost took credit with it, which a dead link gives back to nobody: no more than the buffer is lost.
    assert lost <= failover_ns / packet_ns + 1
    assert fabric.hosts[2].received[1, 0] == 600 - lost
    assert fabric.switches["leaf0"].egress[3].packets > 0


def test_i4_without_repair_all_is_lost_until_the_link_is_back() -> None:
    fabric = CreditFabric(2, 2, 2)
    fabric.flow(0, 2, count=600, gap_ns=2_000)
    for at_ns, up in ((100_000, False), (1_000_000, True)):
        fabric.simulator.command("leaf0", at_ns, SetImpairment(1, 2, Impairment(up=up)))
    fabric.run(3_000_000)
    lost = fabric.switches["leaf0"].egress[2].drops["link_down"]
    assert lost == pytest.approx(450, abs=2)
    assert fabric.hosts[2].received.total() == 600 - lost
    assert [port.credits.credit(0) for port in fabric.switches["leaf0"].egress] == [512] * 4


# I5: deadlock.


@pytest.mark.parametrize("count", [3, 4])
def test_i5_a_ring_stands_still_until_its_packets_are_too_old(count: int) -> None:
    """Each flow goes two links along the ring; all buffers fill, and no packet can go on."""
    life_ns = 300_000
    port = replace(PORT, blocks=(130, 130))
    for head_life_ns in (0, life_ns):
        fabric = RingFabric(count, port, head_life_ns=head_life_ns, stall_count=7)
        for host in range(count):
            fabric.flow(host, (host + 2) % count, count=10)
            fabric.flow(host, (host + 2) % count, sl=2, start_ns=40 * life_ns + host * 100_000, count=5)
        fabric.run(250_000)
        before = sum(host.received.total() for host in fabric.hosts)
        assert before < 10 * count
        fabric.run(300_000)
        assert sum(host.received.total() for host in fabric.hosts) == before, "nothing moves"
        assert fabric.drops() == {}
        fabric.run(50 * life_ns)
        later = [host.received[(number - 2) % count + 1, 2] for number, host in enumerate(fabric.hosts)]
        drops = fabric.drops()
        if not head_life_ns:
            assert (later, drops) == ([0] * count, {})
            assert sum(host.received.total() for host in fabric.hosts) == before
            continue
        assert later == [5] * count, "there is room again for who comes later"
        assert drops.keys() <= {"head_life", "vl_stalled"}
        assert sum(host.received.total() for host in fabric.hosts) + sum(drops.values()) == 15 * count


def test_a_clos_never_deadlocks_whatever_is_sent() -> None:
    draw = Random(5)
    fabric = CreditFabric(3, 3, 2, replace(PORT, blocks=(65, 65)))
    flows = [fabric.flow(draw.randrange(9), draw.randrange(9), sl=draw.randrange(2), count=60) for _ in range(30)]
    fabric.run(30_000_000)
    assert fabric.drops() == {}
    assert sum(host.received.total() for host in fabric.hosts) == 60 * len(flows)
    assert all(
        port.credits.credit(vl) == 65 and not port.credits.held[vl]
        for switch in fabric.switches.values() for port in switch.egress for vl in (0, 1)
    )  # fmt: skip


def test_a_stopped_host_holds_up_its_way_and_nothing_is_lost() -> None:
    fabric = CreditFabric(2, 2, 1)
    fabric.hosts[2].stopped = True
    fabric.flow(0, 2, count=1_000)
    fabric.flow(1, 3, sl=1, count=1_000)
    fabric.run(3_000_000)
    assert fabric.drops() == {}
    assert fabric.hosts[2].received.total() == 512 // 65
    assert fabric.hosts[3].received.total() == 1_000, "on another VL"
