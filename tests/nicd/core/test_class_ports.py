"""Ports with eight classes: which class a packet takes, room under pauses, and who is told of them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import QUANTA_MAX, PfcFrame, encode
from nicd.compose import nic_config
from nicd.core.class_ports import ClassPorts, PauseReceiver, ports_of
from nicd.core.ports import Ports
from nicd.core.stats import TAKEN

CONFIG = ClassEgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)
"""One byte per nanosecond: a quantum is 64 ns."""
RC_DATA, RC_ACK, MRC_DATA, MRC_SACK = 26, 48, 4, 46
CLASS_OF = {RC_DATA: 3, RC_ACK: 6, MRC_DATA: 0, MRC_SACK: 6}


def ports(count: int = 3, queue: int = 100) -> ClassPorts:
    return ClassPorts((CONFIG,) * count, queue, Dscp(), "test")


def packet(dscp: int = RC_DATA, size: int = 100) -> bytearray:
    return bytearray((6 << 12 | dscp << 6).to_bytes(2, "big") + bytes(size - 2))


def pfc(**quanta: int) -> PfcFrame:
    """Quanta by class, `c3=10`."""
    times = {int(name[1:]): count for name, count in quanta.items()}
    return PfcFrame(sum(1 << cls for cls in times), tuple(times.get(cls, 0) for cls in range(8)))


@pytest.mark.parametrize("dscp", CLASS_OF)
def test_the_code_point_says_the_class(dscp: int) -> None:
    made = ports()
    made.offer(0, 1, packet(dscp), dscp in (RC_ACK, MRC_SACK))
    assert made._classed[1].class_bytes == [100 if cls == CLASS_OF[dscp] else 0 for cls in range(8)]


def test_a_port_takes_one_packet_on_the_wire_and_one_behind_it() -> None:
    made = ports()
    made.track(0)
    made.offer(0, 1, packet(), False)
    assert (made.room, made.next_ns) == (0b101, 0)
    made.depart(0)
    made.offer(0, 1, packet(RC_ACK, 500), True)
    assert made.room == 0b111
    made.offer(0, 1, packet(), False)
    assert (made.room, made.next_ns) == (0b101, 100)
    made.depart(100)
    made.depart(600)
    assert made.room == 0b111
    assert [entry.arrival_ns for entry in made.out] == [200, 700, 800]


def test_a_paused_port_has_no_room_until_the_very_instant_at_which_the_pause_ends() -> None:
    made = ports()
    made.track(0)
    made.pause(0, 2, pfc(c3=10))
    assert (made.room, made.next_ns) == (0b011, 640)
    made.depart(640)
    assert (made.room, made.next_ns, made.out) == (0b111, NEVER, [])


def test_a_frame_of_no_quanta_makes_room_at_once() -> None:
    made = ports()
    made.track(0)
    made.pause(0, 2, pfc(c3=QUANTA_MAX))
    made.pause(50, 2, pfc(c3=0))
    assert (made.room, made.next_ns) == (0b111, NEVER)


def test_other_classes_go_on_and_their_pauses_take_no_room() -> None:
    made = ports()
    made.track(0)
    made.pause(0, 1, pfc(c3=100, c0=100))
    made.pause(0, 2, pfc(c4=100))
    made.offer(0, 1, packet(RC_ACK), True)
    assert (made.room, made.next_ns) == (0b101, 0)
    made.depart(0)
    assert [entry.port for entry in made.out] == [1]


def test_what_waited_when_the_pause_came_goes_when_it_ends() -> None:
    made = ports(1)
    made.track(0)
    made.offer(0, 0, packet(), False)
    made.depart(0)
    made.offer(0, 0, packet(), False)
    made.pause(90, 0, pfc(c3=5))
    assert made.next_ns == 90 + 5 * 64
    made.depart(made.next_ns)
    assert [entry.arrival_ns for entry in made.out] == [200, 410 + 200]
    assert made.room == 1


def test_a_pause_that_came_while_nobody_sent_is_known_to_the_next_sender() -> None:
    made = ports()
    made.pause(0, 0, pfc(c3=10))
    assert made.next_departure_ns() == NEVER
    made.run(100)
    made.track(200)
    assert (made.room, made.next_ns) == (0b110, 640)
    late = ports()
    late.pause(0, 0, pfc(c3=10))
    late.track(640)
    assert late.room == 0b111


def test_a_port_without_carrier_gets_no_room_from_the_end_of_a_pause() -> None:
    made = ports()
    made.track(0)
    made.pause(0, 1, pfc(c3=10))
    made.set_carrier(100, 1, False)
    made.depart(640)
    assert made.room == 0b101


def test_which_class_is_data_can_be_said() -> None:
    made = ClassPorts((replace(CONFIG, data_class=0),) * 2, 100, Dscp(), "test")
    made.track(0)
    made.pause(0, 0, pfc(c3=10))
    made.pause(0, 1, pfc(c0=10))
    assert made.room == 0b01


STEPS = st.lists(
    st.tuples(
        st.integers(0, 90), st.integers(0, 2), st.sampled_from([20, 64, 90]),
        st.sampled_from([RC_DATA, RC_DATA, RC_ACK, MRC_DATA, "c3", "c3", "c0"]), st.sampled_from([0, 1, 2, 5]),
    ),
    min_size=5, max_size=40,
)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(STEPS)
def test_tracked_or_not_the_same_packets_leave(steps: list[tuple[int, int, int, int | str, int]]) -> None:
    tracked, lazy = ports(queue=1 << 20), ports(queue=1 << 20)
    tracked.track(0)
    now = 0
    for step, port, size, what, quanta in steps:
        now += step
        while tracked.next_ns < now:
            tracked.depart(tracked.next_ns)
        for made in (tracked, lazy):
            if isinstance(what, str):
                made.pause(now, port, pfc(**{what: quanta}))
            else:
                made.offer(now, port, packet(what, size), what == RC_ACK)
        for port, egress in enumerate(tracked._classed):
            assert tracked.room >> port & 1 == (egress.paused_until[3] <= now)
    while tracked.next_ns <= now + 10_000:
        tracked.depart(tracked.next_ns)
    lazy.run(now + 10_000)
    assert sorted(tracked.out) == sorted(lazy.out)
    assert len(lazy.out) == sum(not isinstance(entry[3], str) for entry in steps)
    assert lazy.next_departure_ns() == tracked.next_departure_ns() == NEVER
    assert tracked.room == 0b111


# Frames of neighbours.


def test_pauses_are_taken_out_of_what_comes_in_and_all_else_goes_on() -> None:
    made, passed = ports(), []

    def onward(now: int, port: int, body: bytes) -> str:
        passed.append(body)
        return "there"

    receiver = PauseReceiver(made, onward)
    good = encode(bytes(6), {3: 10})
    assert receiver.receive(5, 1, good) == TAKEN
    assert made._classed[1].paused_until[3] == 5 + 640
    bad = ControlFrame(good[:-1] + bytes([good[-1] ^ 1]))
    for body in (packet(), bad, bytes(good)):
        assert receiver.receive(6, 1, body) == "there"
    made.set_carrier(6, 2, False)
    assert receiver.receive(7, 2, good) == "there"
    assert passed == [packet(), bad, good, good]


def test_the_configuration_says_which_kind_of_ports_a_nic_has() -> None:
    plain = nic_config(Topology.demo(), "h000")
    classed = tuple(ClassEgressConfig(rate_bps=port.rate_bps, delay_ns=port.delay_ns) for port in plain.ports)
    assert type(ports_of(plain, 100)) is Ports
    made = ports_of(replace(plain, ports=classed), 100)
    assert isinstance(made, ClassPorts)
    assert made.count == len(plain.ports)
    mixed = (EgressConfig(), *classed[1:])
    with pytest.raises(ConfigError, match="some have eight classes"):
        ports_of(replace(plain, ports=mixed), 100)
