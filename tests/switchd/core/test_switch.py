"""The forwarding step, its drops, classes, commands, conservation, and independence of how time is cut."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.egress import REFUSALS
from mrcfabric.egress_config import EgressConfig
from mrcfabric.glance import SwitchRest
from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Rank
from mrcfabric.paths import PathTable, ev_of
from mrcfabric.rng import Rng
from mrcfabric.sim.trace import Trace
from mrcfabric.topology import Topology
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, build
from switchd.core.commands import SetEcn, SetForwarding, SetImpairment, SetTrim
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch
from tests.support.mutate import mutated

BLOCK, OWN, NEXT, LAST, STRANGER = 0xFD00_0000, 0x4001, 0x8002, 0x4003, 0x9999
# One byte per nanosecond.
PORT = EgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0)
CONFIG = SwitchConfig("p0-t0-1", usid=OWN, block=BLOCK, fib={NEXT: 1, LAST: 2}, ports=(PORT,) * 3)
TRIMMABLE, CONTROL, TRIMMED, TRIMMED_LASTHOP = 4, 46, 12, 16


def packet(*usids: int, block: int = BLOCK, dscp: int = TRIMMABLE, hop_limit: int = 64, size: int = 200) -> bytearray:
    head = 6 << 12 | dscp << 6 | 2 << 4
    outer = head.to_bytes(2, "big") + bytes(4) + bytes([41, hop_limit]) + bytes(16) + build(block, usids or (OWN,))
    return bytearray(outer + bytes(size - 40))


def frame(body: bytes | bytearray | memoryview, at_ns: int = 10, port: int = 0, sequence: int = 1) -> Input:
    return Input(at_ns, Rank.FRAME, port, sequence, body)


def command(body: object, at_ns: int = 10, sequence: int = 1) -> Input:
    return Input(at_ns, Rank.COMMAND, 0, sequence, body)


def switch(**changes: object) -> Switch:
    return Switch(replace(CONFIG, **changes))


# Forwarding.


@pytest.mark.spec("RFC 9800", "4.1.1")
def test_the_own_usid_goes_and_the_next_one_chooses_the_port():
    body = packet(OWN, NEXT, LAST, STRANGER)
    transmits = switch().advance([frame(body)], 10)
    assert transmits == [(1, 10 + 200 + 1_000, packet(NEXT, LAST, STRANGER, hop_limit=63))]
    assert transmits[0][2] is body


def test_a_packet_in_a_view_is_patched_in_place():
    train = bytearray(packet(OWN, NEXT) + packet(OWN, LAST))
    node = switch()
    node.advance([frame(memoryview(train)[:200]), frame(memoryview(train)[200:], sequence=2)], 10)
    assert train == packet(NEXT, hop_limit=63) + packet(LAST, hop_limit=63)


def test_a_read_only_packet_is_copied():
    body = bytes(packet(OWN, NEXT))
    transmits = switch().advance([frame(body)], 10)
    assert transmits[0][2] == packet(NEXT, hop_limit=63)
    assert body == packet(OWN, NEXT)


@pytest.mark.spec("RFC 9800", "4.1.1")
@pytest.mark.parametrize(("per_shift", "hop_limit"), [(False, 63), (True, 61)])
def test_an_own_usid_that_comes_again_is_shifted_again(per_shift, hop_limit):
    node = switch(hop_limit_per_shift=per_shift)
    transmits = node.advance([frame(packet(OWN, OWN, OWN, NEXT, LAST))], 10)
    assert transmits[0][2] == packet(NEXT, LAST, hop_limit=hop_limit)


def test_hops_that_are_counted_per_shift_run_out_sooner():
    body = packet(OWN, OWN, NEXT, hop_limit=2)
    assert switch(hop_limit_per_shift=True).advance([frame(body)], 10_000) == []
    assert switch().advance([frame(body)], 10_000)[0][2] == packet(NEXT, hop_limit=1)


@pytest.mark.spec("RFC 8986", "4.1")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "short"),
        (packet(OWN, NEXT)[:39], "short"),
        (b"\x45" + bytes(60), "not_ipv6"),
        (encode(bytes(6), {3: 65_535}), "link_control"),
        (ControlFrame(packet(OWN, NEXT)), "link_control"),
        (ControlFrame(), "link_control"),
        (packet(OWN, NEXT, block=BLOCK + 1), "unknown_block"),
        (packet(STRANGER, NEXT), "not_own_usid"),
        (packet(OWN, STRANGER), "unknown_usid"),
        (packet(OWN), "no_usid_left"),
        (packet(*[OWN] * 6), "no_usid_left"),
        (packet(OWN, OWN, STRANGER), "unknown_usid"),
        (packet(OWN, NEXT, hop_limit=1), "hop_limit"),
        (packet(OWN, NEXT, hop_limit=0), "hop_limit"),
        (packet(OWN, OWN, NEXT, hop_limit=1), "hop_limit"),
    ],
)
def test_what_cannot_be_forwarded_is_a_named_drop(body, reason):
    node = switch()
    assert node.advance([frame(body)], 10_000) == []
    assert {name: count for name, count in node.counters()["drops"].items() if count} == {reason: 1}
    assert node.received == 1
    assert node.next_timeout() is None


@pytest.mark.spec("RFC 8200", "3")
def test_the_last_hop_limit_that_passes():
    assert switch().advance([frame(packet(OWN, NEXT, hop_limit=2))], 10)[0][2][7] == 1


@given(st.integers(0, 2**32), st.booleans(), st.lists(st.integers(1, 30_000), max_size=8))
def test_mutated_packets_never_raise_and_every_one_is_accounted_for(seed, read_only, cuts):
    rng = Rng("switch", seed)
    node = switch(ports=(replace(PORT, data_bytes_max=2_000, control_bytes_max=2_000, trim=True, ecn=True),) * 3)
    bodies = [mutated(rng, packet(OWN, NEXT, LAST, size=300), sealed=False) for _ in range(40)]
    frames = [frame(bytes(body) if read_only else body, 10 * at, at % 3, at) for at, body in enumerate(bodies, 1)]
    sent = 0
    for until in sorted({*cuts, 40_000}):
        sent += len(node.advance([entry for entry in frames if node.now_ns < entry.at_ns <= until], until))
    assert node.received == len(bodies) == sent + sum(node.counters()["drops"].values())
    assert node.next_timeout() is None


@given(st.binary(max_size=60))
def test_random_bytes_never_raise(body):
    node = switch()
    node.advance([frame(bytearray(body))], 10)
    assert node.received == 1
    assert sum(node.drops.values()) == 1


def test_a_container_is_gone_once_it_is_at_its_destination():
    transmits = switch().advance([frame(packet(OWN, LAST))], 10)
    assert bytes(transmits[0][2][CONTAINER_IN_PACKET]) == build(BLOCK, (LAST,))


# Classes.


@pytest.mark.spec("MRC 1.0", "1.8")
@pytest.mark.parametrize("dscp", [CONTROL, TRIMMED, TRIMMED_LASTHOP])
def test_control_and_trimmed_packets_go_first(dscp):
    inputs = [frame(packet(OWN, NEXT), 10, 0, 1), frame(packet(OWN, NEXT), 10, 0, 2)]
    inputs.append(frame(packet(OWN, NEXT, dscp=dscp, size=64), 20, 1))
    assert [len(entry[2]) for entry in switch().advance(inputs, 1_000)] == [200, 64, 200]


def test_a_trimmed_packet_is_trimmed_no_further():
    port = replace(PORT, data_bytes_max=300, control_bytes_max=300, trim=True)
    node = switch(ports=(port,) * 3)
    inputs = [frame(packet(OWN, NEXT, dscp=TRIMMED, size=256), 10, 0, n) for n in (1, 2)]
    assert [len(entry[2]) for entry in node.advance(inputs, 1_000)] == [256]
    assert node.counters()["drops"]["trimmed_full"] == 1


# Time.


def test_the_next_timeout_is_the_next_departure_of_any_port():
    node = switch()
    inputs = [frame(packet(OWN, NEXT, size=300), 10, 0, n) for n in (1, 2)]
    inputs += [frame(packet(OWN, LAST, size=100), 10, 1, n) for n in (1, 2, 3)]
    assert len(node.advance(inputs, 10)) == 2
    assert node.next_timeout() == 110
    assert [entry[0] for entry in node.advance([], 110)] == [2]
    assert node.next_timeout() == 210
    node.advance([], 310)
    assert node.next_timeout() is None
    assert node.now_ns == 310


def test_a_restarted_switch_begins_later():
    node = Switch(CONFIG, start_ns=5_000)
    assert node.now_ns == 5_000
    assert node.advance([frame(packet(OWN, NEXT), 6_000)], 7_000)[0][1] == 6_000 + 200 + 1_000


# A whole fabric: the topology's tables, containers and cables agree with the forwarding step.


def built(topology: Topology, name: str) -> Switch:
    ports = topology.ports(name)
    fib = topology.fib(name)
    return Switch(SwitchConfig(name, topology.own_usid(name), topology.usid_block, fib, (PORT,) * len(ports)))


@pytest.mark.parametrize("peer", range(4))
def test_every_path_leads_to_its_nic(peer):
    topology = Topology(planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=0)
    switches = {name: built(topology, name) for name in topology.switch_names()}
    paths = PathTable(topology, 0).towards(peer)
    for plane in range(2):
        for uplink in range(3):
            body = packet(OWN)
            body[CONTAINER_IN_PACKET] = paths.path(ev_of(plane, uplink, 0)).outer
            at = topology.ports("h000")[plane]
            while at.peer in switches:
                node = switches[at.peer]
                here = node.now_ns + 10_000
                (transmit,) = node.advance([frame(body, here, at.peer_port)], here)
                body, at = transmit[2], topology.ports(at.peer)[transmit[0]]
            assert (at.peer, at.peer_port) == (topology.node_name(peer), plane)
            assert body[7] == 64 - (1 if paths.same_t0 else 3)


# Properties.

TIGHT = replace(
    PORT,
    data_bytes_max=900,
    control_bytes_max=500,
    ecn=True,
    ecn_min_bytes=100,
    ecn_max_bytes=800,
    trim=True,
    trim_bytes=128,
    control_share_ppm=400_000,
    control_burst_bytes=150,
    control_reserve_ppm=300_000,
)
ADDRESSES = [(OWN, NEXT), (OWN, LAST), (OWN, OWN, NEXT), (OWN, STRANGER), (OWN, NEXT, LAST)]
TRAFFIC = st.lists(
    st.tuples(
        st.integers(1, 40).map(lambda step: step * 50),
        st.integers(0, 2),
        st.sampled_from(ADDRESSES),
        st.sampled_from([TRIMMABLE, 0, CONTROL, TRIMMED]),
        st.sampled_from([100, 150, 300]),
    ),
    max_size=60,
)
TOGGLES = st.lists(
    st.tuples(
        st.integers(1, 40).map(lambda step: step * 50),
        st.sampled_from([SetTrim, SetEcn]),
        st.booleans(),
        st.sampled_from([None, 0, 1, 2]),
    ),
    max_size=4,
)
FAULTS = st.lists(
    st.tuples(
        st.integers(1, 40).map(lambda step: step * 50), st.integers(0, 3), st.booleans(), st.integers(0, 900_000)
    ),
    max_size=4,
)


def timetable(traffic: list[tuple], faults: list[tuple], toggles: list[tuple] = ()) -> list[Input]:
    inputs = [
        frame(packet(*usids, dscp=dscp, size=size), at_ns, port, sequence)
        for sequence, (at_ns, port, usids, dscp, size) in enumerate(traffic)
    ]
    inputs += [
        command(SetImpairment(number, port, Impairment(up, loss)), at_ns, number)
        for number, (at_ns, port, up, loss) in enumerate(faults)
    ]
    inputs += [
        command(kind(number, on=on, port=port), at_ns, number)
        for number, (at_ns, kind, on, port) in enumerate(toggles, len(faults))
    ]
    return sorted(inputs, key=lambda entry: entry[:4])


@settings(deadline=None, max_examples=100)
@given(TRAFFIC, FAULTS, TOGGLES, st.lists(st.integers(0, 80).map(lambda step: step * 50), max_size=12))
def test_results_do_not_depend_on_how_time_is_cut(traffic, faults, toggles, cuts):
    def ran(edges: list[int]) -> tuple[str, dict]:
        node, trace, inputs = switch(ports=(TIGHT,) * 3), Trace(), timetable(traffic, faults, toggles)
        for until in edges:
            due = [entry for entry in inputs if entry.at_ns <= until]
            del inputs[: len(due)]
            trace.add(node.advance(due, until), node.drain_events())
        return trace.digest(), node.counters()

    assert ran([*sorted(cuts), 50_000]) == ran([50_000])


@settings(deadline=None, max_examples=100)
@given(TRAFFIC, FAULTS, TOGGLES, st.lists(st.integers(0, 4_000), min_size=1, max_size=10))
def test_packets_are_conserved_at_every_instant(traffic, faults, toggles, looks):
    """Received = forwarded + dropped + waiting, for the switch, and for each port of what its entries led there."""
    node = switch(ports=(TIGHT,) * 3, fib={NEXT: 1, LAST: 2, STRANGER: 2})
    inputs, arrived, forwarded = timetable(traffic, faults, toggles), 0, 0
    for until in [*sorted(looks), 100_000]:
        due = [entry for entry in inputs if entry.at_ns <= until]
        del inputs[: len(due)]
        arrived += sum(entry.rank == Rank.FRAME for entry in due)
        forwarded += len(node.advance(due, until))
        counters = node.counters()
        waiting = counters["data_waiting"] + counters["control_waiting"]
        assert arrived == counters["received"] == forwarded + sum(counters["drops"].values()) + waiting
        assert (waiting > 0) == (node.next_timeout() is not None)
        balanced(counters)
    assert waiting == 0


def balanced(counters: dict) -> None:
    """Trimmed = sent + dropped, and what entries led to a port is what the port knows of."""
    ports, entries = counters["ports"], counters["usids"]
    for figures in (counters, *ports.values()):
        assert figures["trimmed"] == figures["trim_admitted"] + figures["trim_dropped"]
        assert figures["trim_dropped"] == figures["drops"]["trim_full"]
    led = {1: [entries[NEXT]], 2: [entries[LAST], entries[STRANGER]]}
    for number, found in led.items():
        port = ports[number]
        refused = sum(port["drops"][reason] for reason in REFUSALS)
        there = port["packets"] + port["data_waiting"] + port["control_waiting"] + refused
        assert sum(entry["packets"] for entry in found) == there
        there_bytes = port["bytes"] + port["data_bytes"] + port["control_bytes"] + port["refused_bytes"]
        assert sum(entry["bytes"] for entry in found) == there_bytes


# A glance.


def test_a_glance_tells_of_ports_and_of_what_never_reached_one() -> None:
    node = switch()
    node.advance([frame(packet(OWN, NEXT)), frame(packet(STRANGER, NEXT), sequence=2)], 5_000)
    ports, rest = node.glance()
    assert ports == [(0, 0, 0, 0, 0), (200, 0, 0, 0, 0), (0, 0, 0, 0, 0)]
    assert rest == SwitchRest(1, 1)
    node.advance([command(SetForwarding(1, False), at_ns=6_000)], 7_000)
    assert node.glance()[1] == SwitchRest(0, 1)
