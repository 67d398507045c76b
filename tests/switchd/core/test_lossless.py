"""A lossless switch instant by instant: pauses sent and heard, repetition, drops, commands, and how time is cut."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.class_egress_config import CLASSES, ClassEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.impairment import Impairment
from mrcfabric.naming import port_mac
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode, parse
from mrcfabric.witness import Witness
from switchd.compose import switch_config
from switchd.core.buffer import BufferConfig
from switchd.core.build import build_switch
from switchd.core.commands import SetEcn, SetForwarding, SetImpairment
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.lossless import LosslessSwitch
from switchd.core.settings import LosslessConfig, SwitchConfig
from tests.support.roce_frames import NOTICE_DSCP, frame, number_of, roce
from tests.switchd.core.test_switch import BLOCK, LAST, NEXT, OWN, packet

# One byte per nanosecond; a PFC frame takes 84 ns, a quantum 64 ns.
PORT = ClassEgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0, data_bytes_max=1 << 20)
ECMP = EcmpConfig(nics=8, first=2, down=(0, 1), nics_per_port=1, up=(2, 3), seed=3)
BUFFER = BufferConfig(
    bytes_total=400_000, headroom_bytes=(5_000,) * 4, lossless=(3,), frame_bytes_max=4_000, reserved_bytes=1_000,
    xoff_bytes=4_000, xon_offset_bytes=2_000,
)  # fmt: skip
LOSSLESS = LosslessConfig(BUFFER, quanta=1_000)
CONFIG = SwitchConfig(
    "p0-t0-1", usid=0x4001, block=0xFD00_0000, fib={}, ports=(PORT,) * 4, ecmp=ECMP, lossless=LOSSLESS
)
WIRE_NS = 84 + 1_000
"""From the start of a PFC frame until it is there."""


def switch(lossless: LosslessConfig = LOSSLESS, **changes: Any) -> LosslessSwitch:
    found = build_switch(replace(CONFIG, lossless=lossless, **changes))
    assert isinstance(found, LosslessSwitch)
    return found


def pfc(quanta: int, at_ns: int, port: int, cls: int = 3, sequence: int = 1) -> Input:
    return frame(encode(port_mac("h000", 0), {cls: quanta}), at_ns, port, sequence)


def burst(count: int, at_ns: int = 10, gap_ns: int = 0, size: int = 1_000, port: int = 0, to: int = 3) -> list[Input]:
    """Data packets that come in by `port` for a NIC; 3 is behind port 1."""
    return [
        frame(roce(7, to, size=size, number=number), at_ns + number * gap_ns, port, number) for number in range(count)
    ]


def asked(sent: list[Transmit]) -> list[tuple[int, int, int]]:
    """(start, port, quanta for class 3) of the PFC frames sent."""
    found = []
    for port, arrival_ns, body in sent:
        if isinstance(body, ControlFrame):
            said = parse(body)
            assert said is not None
            assert said.enabled == 1 << 3
            found.append((arrival_ns - WIRE_NS, port, said.quanta[3]))
    return found


def starts(sent: list[Transmit], port: int) -> list[tuple[int, int]]:
    """(start, number) of the packets that left a port."""
    return [
        (arrival_ns - 1_000 - len(body), number_of(body))
        for number, arrival_ns, body in sent if number == port and not isinstance(body, ControlFrame)
    ]  # fmt: skip


def drops(node: LosslessSwitch) -> dict[str, int]:
    return {reason: count for reason, count in node.counters()["drops"].items() if count}


# Pauses that the switch sends.


def test_xoff_leaves_with_the_arrival_that_crosses_and_xon_with_the_departure_that_frees() -> None:
    """Four packets at once reach 4,000 bytes. At the start of the first 3,000 are left, at that of the second 2,000."""
    node = switch()
    sent = node.advance(burst(4), 20_000)
    assert starts(sent, 1) == [(10, 0), (1_010, 1), (2_010, 2), (3_010, 3)]
    # XOFF is decided at 10, before the departure of that instant; the wire of port 0 is free.
    assert asked(sent) == [(10, 0, 1_000), (1_010, 0, 0)]
    found = node.counters()["pfc"][0][3]
    assert (found["xoff_sent"], found["xon_sent"], found["buffer_peak"], found["buffer_bytes"]) == (1, 1, 4_000, 0)
    assert node.buffer.total == 0


def test_a_pause_waits_for_the_packet_on_the_wire_and_for_no_other() -> None:
    node = switch()
    reverse = [frame(roce(7, 2, size=1_900, number=number), 1, 1, number) for number in range(2)]
    sent = node.advance([*reverse, *burst(4)], 30_000)
    assert asked(sent) == [(1_901, 0, 1_000), (1_985, 0, 0)]
    assert starts(sent, 0) == [(1, 0), (1_985 + 84, 1)], "XON came before the data too"


def test_a_pause_is_repeated_at_half_time_while_it_lasts() -> None:
    node = switch()
    node.advance([pfc(60_000, 5, 1), *burst(4)], 10)
    sent = node.advance([], 200_000)
    half = 1_000 * 64 // 2
    assert asked(sent) == [(at, 0, 1_000) for at in range(10 + half, 200_001, half)]
    assert node.next_timeout() == 10 + 7 * half
    sent = node.advance([pfc(0, 210_000, 1)], 400_000)
    assert asked(sent) == [(211_000, 0, 0)], "the second packet is out"
    assert node.next_timeout() is None


def test_bytes_after_xoff_take_headroom_and_beyond_it_are_dropped() -> None:
    node = switch()
    node.advance([pfc(60_000, 5, 1), *burst(10)], 10)
    assert drops(node) == {"pfc_headroom": 1}
    found = node.counters()["pfc"][0][3]
    assert (found["headroom_peak"], found["headroom_max"], found["pfc_headroom"]) == (5_000, 5_000, 1)
    assert node.counters()["buffer"]["bytes"] == 9_000


def test_other_classes_are_dropped_and_never_paused() -> None:
    small = replace(LOSSLESS, buffer=replace(BUFFER, bytes_total=80_000, lossless=(4,)))
    node = switch(small)
    sent = node.advance(burst(60), 10)
    assert drops(node)["buffer_full"] == 60 - sum(node.egress[1].waiting_packets) - 1
    assert asked(sent) == []


def test_a_packet_refused_by_its_port_gives_its_bytes_back() -> None:
    node = switch(ports=(replace(PORT, bytes_max=(2_500,) * 8),) * 4)
    sent = node.advance(burst(6), 10)
    assert drops(node) == {"data_full": 4}
    assert asked(sent) == []
    assert node.buffer.total == 1_000


# Pauses that it hears.


def test_a_pause_that_comes_at_a_departure_stops_it() -> None:
    node = switch()
    sent = node.advance([*burst(3), pfc(100, 1_010, 1)], 50_000)
    assert starts(sent, 1) == [(10, 0), (1_010 + 6_400, 1), (1_010 + 6_400 + 1_000, 2)]
    found = node.counters()["pfc"][1][3]
    assert (found["xoff_received"], found["pause_ns"]) == (1, 6_400)


@pytest.mark.parametrize("resume_ns", [1_011, 2_500, 7_409])
def test_a_resume_counts_at_once(resume_ns: int) -> None:
    node = switch()
    sent = node.advance([*burst(3), pfc(100, 1_010, 1), pfc(0, resume_ns, 1, sequence=2)], 50_000)
    assert starts(sent, 1)[1] == (resume_ns, 1)
    assert node.counters()["pfc"][1][3]["xon_received"] == 1


def test_other_classes_go_on() -> None:
    node = switch()
    notice = frame(roce(7, 3, size=100, number=9, dscp=NOTICE_DSCP), 500, 0, 9)
    sent = node.advance([*burst(3), pfc(100, 400, 1), notice], 5_000)
    assert starts(sent, 1) == [(10, 0), (1_010, 9)]


def test_a_class_that_is_not_lossless_here_is_not_paused() -> None:
    node = switch()
    sent = node.advance([*burst(3), pfc(100, 400, 1, cls=4)], 5_000)
    assert len(starts(sent, 1)) == 3
    assert drops(node) == {}


@pytest.mark.parametrize("body", [b"", bytes(64), bytes(encode(bytes(6), {3: 5}))[:-1], bytes(200)])
def test_what_is_no_pause_is_a_named_drop(body: bytes) -> None:
    node = switch()
    assert node.advance([frame(ControlFrame(body))], 5_000) == []
    assert drops(node) == {"link_control": 1}
    assert node.received == 1


def test_the_watchdog_ends_a_pause_that_never_ends_and_obeys_again_after_a_rest() -> None:
    node = switch(replace(LOSSLESS, watchdog_ns=200_000, restore_ns=50_000))
    storm = [pfc(1_000, 500 + 30_000 * number, 1, sequence=number) for number in range(20)]
    sent = node.advance([*burst(3), *storm], 600_000)
    assert starts(sent, 1) == [(10, 0), (200_500, 1), (201_500, 2)]
    assert node.counters()["pfc"][1][3]["storms"] == 1
    last = storm[-1].at_ns
    again = [*burst(2, last + 60_000), pfc(100, last + 60_500, 1)]
    assert starts(node.advance(again, last + 80_000), 1) == [(last + 60_000, 0), (last + 60_500 + 6_400, 1)]


# The rest of a switch.


def test_a_frozen_switch_says_nothing_and_repeats_its_pauses_when_it_goes_on() -> None:
    node = switch()
    node.advance([pfc(60_000, 5, 1), *burst(4)], 10)
    stop = Input(20, Rank.COMMAND, 0, 1, SetForwarding(1, False))
    assert node.advance([stop, *burst(1, 30), pfc(0, 40, 1)], 100_000) == []
    assert drops(node) == {"frozen": 2}
    sent = node.advance([Input(100_010, Rank.COMMAND, 0, 2, SetForwarding(2, True))], 100_010)
    assert asked(sent) == [(100_010, 0, 1_000)]
    assert starts(node.advance([], 5_000_000), 1) != []


def test_uplinks_of_a_lossless_switch_follow_their_carrier() -> None:
    node = switch(ecmp=replace(ECMP, failover_ns=0))
    cut = Input(100, Rank.COMMAND, 0, 1, SetImpairment(1, 2, Impairment(up=False)))
    frames = [frame(roce(2, 7, 0xC000 + flow, size=100), 101 + 200 * flow, 0, flow) for flow in range(50)]
    sent = node.advance([cut, *frames], 50_000)
    assert {entry[0] for entry in sent} == {3}
    assert node.counters()["ecmp"] == {2: 0, 3: 50}


@pytest.mark.spec("RFC 9800", "4.1.1")
def test_usids_may_be_lossless_too() -> None:
    config = replace(CONFIG, usid=OWN, block=BLOCK, fib={NEXT: 1, LAST: 2}, ecmp=None)
    node = build_switch(config)
    assert isinstance(node, LosslessSwitch)
    sent = node.advance([frame(packet(OWN, NEXT, LAST, size=1_000, dscp=26), 10, 0, n) for n in range(4)], 20_000)
    assert [entry[2] for entry in sent if entry[0] == 1] == [packet(NEXT, LAST, size=1_000, dscp=26, hop_limit=63)] * 4
    assert asked(sent) == [(10, 0, 1_000), (1_010, 0, 0)]
    assert node.counters()["usids"][NEXT] == {"packets": 4, "bytes": 4_000}


def balanced(node: LosslessSwitch) -> None:
    """The account of the buffer is what waits in the queues, and nobody is lost."""
    assert node.buffer.total == sum(sum(port.class_bytes) for port in node.egress)
    lost = sum(node.drops.values())
    assert node.received == lost + sum(port.offered_packets for port in node.egress)
    assert node.buffer.total <= node.buffer.config.bytes_total


PORTS = st.integers(0, 3)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("data"), PORTS, st.integers(0, 7), st.integers(60, 3_000), st.sampled_from([26, 26, 0, 48])),
        st.tuples(st.just("pfc"), PORTS, st.sampled_from([0, 5, 60, 2_000]), st.sampled_from([3, 3, 4]), st.just(0)),
        st.tuples(st.just("order"), st.integers(0, 4), PORTS, st.just(0), st.just(0)),
    ),
    max_size=60,
)
ORDERS = (
    lambda port: SetForwarding(1, False),
    lambda port: SetForwarding(1, True),
    lambda port: SetImpairment(1, port, Impairment(up=False)),
    lambda port: SetImpairment(1, port, Impairment(rate_bps=1_000_000_000, jitter_ns=3_000)),
    lambda port: SetEcn(1, True, port, 1_000, 2_000),
)


def script(events: list[tuple[Any, ...]], gaps: list[int]) -> list[Input]:
    found, now = [], 10
    for number, ((kind, first, second, third, fourth), gap) in enumerate(zip(events, gaps, strict=False)):
        now += gap
        if kind == "data":
            body = roce(0, second, 0xC000 + number % 5, size=third, dscp=fourth, number=number)
            found.append(frame(body, now, first, number))
        elif kind == "pfc":
            found.append(pfc(second, now, first, third, number))
        else:
            found.append(Input(now, Rank.COMMAND, 0, number, ORDERS[first](second)))
    return sorted(found, key=lambda entry: entry[:4])


@given(EVENTS, st.lists(st.sampled_from([0, 0, 1, 64, 84, 500, 1_000, 5_000]), min_size=60, max_size=60), st.data())
@settings(max_examples=150, deadline=None)
def test_the_result_does_not_depend_on_how_time_is_cut(events: list[Any], gaps: list[int], data: st.DataObject) -> None:
    lossless = replace(LOSSLESS, watchdog_ns=30_000, restore_ns=10_000, quanta=200)
    whole, pieces = switch(lossless), switch(lossless)
    if data.draw(st.booleans()):
        pieces.set_witness(Witness(Choice(), Dscp()))
    end = 3_000_000
    wanted = whole.advance(script(events, gaps), end)
    balanced(whole)
    rest, found = script(events, gaps), []
    instants = {entry.at_ns + near for entry in rest for near in (-1, 0, 1)} | {entry[1] for entry in wanted}
    cuts = data.draw(st.lists(st.sampled_from(sorted(instants | {11})), max_size=12, unique=True))
    for until in [*sorted(cut for cut in cuts if 0 < cut < end), end]:
        found += pieces.advance([entry for entry in rest if entry.at_ns <= until], until)
        rest = [entry for entry in rest if entry.at_ns > until]
        balanced(pieces)
        timeout = pieces.next_timeout()
        assert timeout is None or timeout > until
    assert found == wanted
    assert pieces.counters() == whole.counters()


def test_a_pair_is_a_port_and_a_class() -> None:
    config = switch_config(
        replace(Topology.demo(), switch={"forwarding": "ecmp", "lossless": "pfc", "pfc_classes": "3,4"}), "p0-t0-0"
    )
    node = build_switch(config)
    assert isinstance(node, LosslessSwitch)
    assert set(node.counters()["pfc"]) == set(range(8))
    assert set(node.counters()["pfc"][0]) == {3, 4}
    assert len(node.buffer.stock) == 8 * CLASSES


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.binary(max_size=70), st.booleans(), st.integers(0, 3)), max_size=12), st.integers(0, 80))
def test_no_bytes_raise_and_every_frame_is_accounted_for(noises: list[tuple[bytes, bool, int]], cut: int) -> None:
    good = bytes(roce(0, 3, size=80))
    frames = []
    for number, (noise, control, port) in enumerate(noises):
        body = noise if number % 3 == 0 else good[:cut] + noise if number % 3 == 1 else noise[:8] + good[8:]
        frames.append(frame(ControlFrame(body) if control else bytearray(body), 10, port, number))
    for node in (switch(), build_switch(replace(CONFIG, lossless=None, ports=(EgressConfig(),) * 4))):
        node.set_witness(Witness(Choice(), Dscp()))
        sent = node.advance(sorted(frames, key=lambda entry: entry[:4]), 1_000_000)
        assert node.received == len(frames) == len(sent) + sum(node.drops.values())
