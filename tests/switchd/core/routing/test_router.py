"""Routing cores among each other: how long convergence takes, what it leaves in the tables, and that nothing loops."""

from math import log2
from typing import Any

import pytest

from mrcfabric.rng import Rng
from mrcfabric.units import NS_PER_MS
from switchd.core.events_routing import FibRepaired, FibWritten, RouteDamped, SessionChange
from switchd.core.routing.session import ESTABLISHED
from tests.support.corners import corners
from tests.support.speakers import DELAY_NS, S, Speakers, clos, three_tiers

MS = NS_PER_MS
BATCH_NS, PREFIX_NS, WRITE_NS = 1 * MS, 10_000, 50_000


def all_up(graph: Speakers) -> bool:
    sessions = (session for router in graph.routers.values() for session in router.sessions.values())
    return all(session.state == ESTABLISHED for session in sessions)


def shortest(graph: Speakers, name: str, target: str) -> set[str]:
    """The neighbours on shortest ways to a T0 that never go down and up again, over what lives in both directions."""

    def alive(a: str, b: str) -> bool:
        ends = (a, graph.port(a, b)), (b, graph.port(b, a))
        return not graph.dead & set(ends) and {a, b} <= graph.routers.keys()

    def paths(here: str, seen: tuple[int, ...]) -> list[list[str]]:
        if here == target:
            return [[here]]
        found = []
        for peer, _ in graph.ends[here]:
            asn = graph.asns[peer]
            if asn not in seen and alive(here, peer):
                found += [[here, *rest] for rest in paths(peer, (*seen, asn))]
        return found

    ways = paths(name, (graph.asns[name],))
    least = min(map(len, ways), default=0)
    return {way[1] for way in ways if len(way) == least}


def check(graph: Speakers) -> None:
    """Every table has the shortest ways and nothing else, and following it ends at the target."""
    for target, prefixes in graph.prefixes.items():
        if target not in graph.routers:
            continue
        for name in graph.routers:
            if name == target:
                continue
            wanted = shortest(graph, name, target)
            for prefix in prefixes:
                assert set(graph.ports(name, prefix)) == wanted, (name, target)
                follow(graph, name, target, prefix)


def follow(graph: Speakers, name: str, target: str, prefix: Any) -> None:
    """Walk all ways that packets can take: each ends, at the target or where there is no route."""

    def walk(here: str, seen: tuple[str, ...]) -> None:
        assert here not in seen, (*seen, here)
        for peer in () if here == target else graph.ports(here, prefix):
            walk(peer, (*seen, here))

    walk(name, ())


def test_a_fabric_comes_up_and_everybody_knows_every_shortest_way() -> None:
    for graph in (clos(4, 3, 2), three_tiers(2, 2, 2, 2)):
        graph.run(5 * S)
        assert all_up(graph)
        check(graph)
        assert not any(router.bad for router in graph.routers.values())


# B1: convergence is detection, twice the work and the link, and the writing of each prefix.


def converged(graph: Speakers, prefixes: int, detected_ns: int) -> int:
    work = BATCH_NS + prefixes * PREFIX_NS
    return detected_ns + work + DELAY_NS + work + prefixes * WRITE_NS


@pytest.mark.parametrize("prefixes", [1, 7, 64, 200])
@pytest.mark.parametrize(
    ("detector", "knobs"),
    [
        ("carrier", {}),
        ("carrier", {"bgp_carrier_ns": 50 * MS}),
        ("bfd", {"bfd": True, "bfd_transmit_interval_ns": 50 * MS, "bfd_receive_interval_ns": 50 * MS}),
        ("bfd", {"bfd": True}),
        ("hold_time", {}),
        ("hold_time", {"bgp_keepalive_ns": 60 * S, "bgp_hold_ns": 180 * S}),
    ],
)
def test_b1_convergence_is_the_sum_of_its_parts(detector: str, knobs: dict[str, Any], prefixes: int) -> None:
    graph = clos(3, 3, prefixes, **knobs)
    begin_ns = (200 if "bgp_hold_ns" in knobs else 12) * S + 123_456_789
    graph.run(begin_ns)
    assert all_up(graph)
    written = len(graph.events)
    graph.cut("t0-0", "t1-2", carrier=detector == "carrier")
    graph.run(2 * begin_ns if detector == "hold_time" else begin_ns + 2 * S)
    lost = next(event for event in graph.told("t1-2", SessionChange) if not event.up)
    port = graph.port("t1-2", "t0-0")
    # The last message of BFD, or of BGP: an acknowledgement alone is none.
    kind = 17 if detector == "bfd" else 6
    heard_ns = [at for at, packet in graph.arrivals["t1-2", port] if packet[6] == kind and len(packet) > 60][-1]
    detected_ns = {
        "carrier": begin_ns + knobs.get("bgp_carrier_ns", 1 * MS),
        "bfd": heard_ns + 3 * knobs.get("bfd_transmit_interval_ns", 300 * MS),
        "hold_time": heard_ns + knobs.get("bgp_hold_ns", 9 * S),
    }[detector]
    assert heard_ns <= begin_ns + DELAY_NS
    assert (lost.at_ns, lost.why) == (detected_ns, "silence" if detector == "bfd" else detector)
    # Whoever is at the link leaves it out at that instant; the third T0 when it has been told and has written.
    assert next(event for event in graph.told("t1-2", FibRepaired) if not event.up).at_ns == detected_ns
    far = [event for one, event in graph.events[written:] if one == "t0-1" and isinstance(event, FibWritten)]
    assert len(far) == prefixes
    assert far[-1].at_ns == converged(graph, prefixes, detected_ns)
    assert far[0].at_ns == far[-1].at_ns - (prefixes - 1) * WRITE_NS
    check(graph)


def test_with_local_repair_off_a_port_leaves_prefix_by_prefix() -> None:
    graph = clos(3, 4, 8, fib_local_repair=False)
    graph.run(20 * S)
    graph.cut("t0-0", "t1-2")
    graph.run(21 * S)
    own = [event.at_ns for event in graph.told("t0-0", FibWritten) if event.at_ns > 20 * S]
    # The other two T0s' prefixes, one after the other.
    first_ns = 20 * S + 1 * MS + BATCH_NS + 16 * PREFIX_NS + WRITE_NS
    assert own == [first_ns + number * WRITE_NS for number in range(16)]
    assert not graph.told("t0-0", FibRepaired)
    check(graph)


# B3: damping.


def flapping(**knobs: Any) -> tuple[Speakers, list[RouteDamped]]:
    """t1-0 takes t0-0's prefix back every ten seconds and tells of it again, and t0-1 hears it."""
    graph = clos(2, 1, bgp_dampening=True, **knobs)
    graph.run(20 * S)
    for _ in range(4):
        for up in (False, True):
            graph.cut("t0-0", "t1-0", up=up)
            graph.run(graph.now + 5 * S)
    return graph, graph.told("t0-1", RouteDamped)


@pytest.mark.parametrize("half_life_s", [900, 120])
@pytest.mark.parametrize("reuse", [750, 1_200])
def test_b3_the_third_flap_in_a_row_suppresses_until_the_penalty_has_faded(half_life_s: int, reuse: int) -> None:
    knobs = {"bgp_dampening_half_life_ns": half_life_s * S, "bgp_dampening_reuse": reuse}
    graph, told = flapping(**knobs)
    (event,) = told
    withdrawn = [one.at_ns for one in graph.told("t1-0", SessionChange) if not one.up]
    assert len(withdrawn) == 4
    assert 0 < event.at_ns - withdrawn[2] < 10 * MS, "the third flap"
    fade = [2 ** -((withdrawn[2] - at) / (half_life_s * S)) for at in withdrawn[:3]]
    assert event.penalty == pytest.approx(1_000 * sum(fade), rel=0.001)
    # The fourth flap adds its thousand; from there it takes half-life * log2(penalty / reuse).
    penalty = 1_000 * (1 + sum(2 ** -((withdrawn[3] - at) / (half_life_s * S)) for at in withdrawn[:3]))
    until_s = (withdrawn[3] / S) + half_life_s * log2(penalty / reuse)
    prefix = graph.prefixes["t0-0"][0]
    assert all_up(graph)
    assert graph.ports("t0-1", prefix) == ()
    graph.run(round((until_s - 1) * S))
    assert graph.ports("t0-1", prefix) == ()
    graph.run(round((until_s + 1) * S))
    assert graph.ports("t0-1", prefix) == ("t1-0",)
    again = graph.told("t0-1", RouteDamped)[-1]
    assert not again.damped
    assert again.at_ns / S == pytest.approx(until_s, abs=0.1)
    assert again.penalty == reuse
    check(graph)


def test_with_the_thresholds_of_rfc_7196_four_flaps_do_no_harm() -> None:
    graph, told = flapping(bgp_dampening_suppress=6_000)
    assert not told
    check(graph)


# B5: MRAI.


def hops_late(graph: Speakers, since: int, prefix: Any) -> int:
    """When the table of a T0 in the other pod was last written for this prefix, after an instant."""
    events = graph.told("1-t0-0", FibWritten)
    return max(event.at_ns for event in events if event.at_ns > since and event.prefix == str(prefix)) - since


@pytest.mark.parametrize("seed", ["a", "b", "c"])
@pytest.mark.parametrize("jitter", [True, False])
def test_b5_with_an_interval_of_30_s_the_second_change_waits_for_it(seed: str, jitter: bool) -> None:
    graph = three_tiers(2, 1, 1, 1, seed=seed, bgp_advertisement_interval_ns=30 * S, bgp_jitter=jitter)
    graph.run(300 * S)
    check(graph)
    prefix = graph.prefixes["0-t0-0"][0]
    hops = 3
    quick = 1 * MS + hops * (BATCH_NS + PREFIX_NS + DELAY_NS) + BATCH_NS + PREFIX_NS + WRITE_NS
    # Nobody has said anything for a while: a withdrawal goes at once from tier to tier.
    graph.cut("0-t0-0", "0-t1-0")
    graph.run(301 * S)
    assert hops_late(graph, 300 * S, prefix) == quick
    # A second later the link is back; each tier has said something just now, and waits.
    graph.cut("0-t0-0", "0-t1-0", up=True)
    graph.run(400 * S)
    late = hops_late(graph, 301 * S, prefix)
    assert 0.75 * 30 * S - 1 * S <= late <= 30 * S + quick
    if not jitter:
        assert late == pytest.approx(30 * S - 1 * S, rel=0.01)
    check(graph)
    # Without the interval it would have been there at once.
    other = three_tiers(2, 1, 1, 1, seed=seed, bgp_jitter=jitter)
    other.run(300 * S)
    other.cut("0-t0-0", "0-t1-0")
    other.run(301 * S)
    other.cut("0-t0-0", "0-t1-0", up=True)
    other.run(310 * S)
    assert hops_late(other, 301 * S, prefix) < 20 * MS


# What the tables are in the end, whatever happens.


def upset(seed: int, rounds: int = 6) -> None:
    rng = Rng("upset", seed)
    knobs = {
        "seed": str(seed), "bfd": bool(rng.below(2)), "bgp_suppress_fib_pending": bool(rng.below(2)),
        "bgp_sender_loop_detection": bool(rng.below(2)), "fib_local_repair": bool(rng.below(2)),
        "bgp_advertisement_interval_ns": rng.below(2) * S,
    }  # fmt: skip
    if rng.below(2):
        graph = clos(2 + rng.below(3), 1 + rng.below(3), 1 + rng.below(3), **knobs)
    else:
        graph = three_tiers(2, 1 + rng.below(2), 1 + rng.below(2), 1 + rng.below(2), 1 + rng.below(2), **knobs)
    names = list(graph.asns)
    cut: list[tuple[str, str, bool]] = []
    graph.run(20 * S)
    check(graph)
    for _ in range(rounds):
        for _ in range(1 + rng.below(3)):
            graph.run(graph.now + rng.below(2 * S))
            if cut and rng.below(2):
                a, b, carrier = cut.pop(rng.below(len(cut)))
                graph.cut(a, b, carrier=carrier, up=True)
            elif rng.below(4):
                a = names[rng.below(len(names))]
                b = graph.ends[a][rng.below(len(graph.ends[a]))][0]
                if not any({a, b} == {*one[:2]} for one in cut):
                    cut.append((a, b, bool(rng.below(2))))
                    graph.cut(a, b, carrier=cut[-1][2])
            else:
                name = names[rng.below(len(names))]
                (graph.kill if name in graph.routers else graph.boot)(name)
                for a, b, carrier in cut:
                    if carrier and name in (a, b) and name in graph.routers:
                        graph.cut(name, a if name == b else b)
        # Hold time, connect retry and what comes after them.
        graph.run(graph.now + 45 * S)
        check(graph)


@pytest.mark.parametrize("seed", corners(range(6), 4))
def test_tables_are_shortest_ways_after_every_upset(seed: int) -> None:
    upset(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6, 50))
def test_tables_are_shortest_ways_after_many_upsets(seed: int) -> None:
    upset(seed, 10)


def test_a_switch_that_comes_back_is_used_again() -> None:
    graph = clos(3, 2, 2)
    graph.run(20 * S)
    graph.kill("t1-1")
    graph.run(40 * S)
    check(graph)
    graph.boot("t1-1")
    graph.run(70 * S)
    assert all_up(graph)
    check(graph)


def test_one_direction_alone_ends_the_session_at_both_ends() -> None:
    graph = clos(2, 2, 1, bfd=True)
    graph.run(20 * S)
    graph.cut("t0-0", "t1-0", carrier=False, both=False)
    graph.run(22 * S)
    for name in ("t0-0", "t1-0"):
        ends = [event for event in graph.told(name, SessionChange) if not event.up]
        assert {event.protocol for event in ends} == {"bfd", "bgp"}
        assert "hold_time" not in {event.why for event in ends}
    assert graph.ports("t0-1", graph.prefixes["t0-0"][0]) == ("t1-1",)


def test_strangers_and_broken_packets_are_counted_and_change_nothing() -> None:
    graph = clos(2, 1)
    graph.run(5 * S)
    router = graph.routers["t0-0"]
    ((_, packet), *_) = graph.arrivals["t0-0", 0]
    for hostile in (b"", packet[:39], packet[:-1], packet[:8] + bytes(16) + packet[24:], packet + b"x"):
        router.hear(graph.now, 0, hostile)
    router.hear(graph.now, 9, packet)
    assert router.bad == {"routing_short": 3, "routing_stranger": 2}
    rng = Rng("hostile")
    for _ in range(3_000):
        one = bytearray(graph.arrivals["t0-0", 0][rng.below(len(graph.arrivals["t0-0", 0]))][1])
        for _ in range(1 + rng.below(3)):
            one[rng.below(len(one))] = rng.below(256)
        graph.hear("t0-0", 0, one)
    graph.run(60 * S)
    assert all_up(graph)
    check(graph)
