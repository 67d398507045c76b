"""Ports with eight classes: which class a packet takes, room under pauses, and who is told of them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import QUANTA_MAX, PfcFrame, encode
from mrcfabric.witness import Witness
from nicd.compose import nic_config
from nicd.core.class_ports import ClassPorts, PauseReceiver, ports_of
from nicd.core.events import Completion
from nicd.core.nic import Nic
from nicd.core.ports import Ports
from nicd.core.stats import TAKEN
from tests.nicd.core.fabric import READY_NS, Fabric

CONFIG = ClassEgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0)
"""One byte per nanosecond: a quantum is 64 ns."""
RC_DATA, RC_ACK, MRC_DATA, MRC_SACK = 26, 48, 4, 46
PAUSED = ClassEgressConfig()
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
    assert [entry[1] for entry in made.out] == [200, 700, 800]


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
    assert [entry[0] for entry in made.out] == [1]


def test_what_waited_when_the_pause_came_goes_when_it_ends() -> None:
    made = ports(1)
    made.track(0)
    made.offer(0, 0, packet(), False)
    made.depart(0)
    made.offer(0, 0, packet(), False)
    made.pause(90, 0, pfc(c3=5))
    assert made.next_ns == 90 + 5 * 64
    made.depart(made.next_ns)
    assert [entry[1] for entry in made.out] == [200, 410 + 200]
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
            # At the instant of its end itself, a pause ends with the departures.
            assert egress.paused_until[3] == now or tracked.room >> port & 1 == (egress.paused_until[3] < now)
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

    heard: list[tuple[int, int, int]] = []
    receiver = PauseReceiver(made, onward, lambda now, port, frame: heard.append((now, port, frame.quanta[3])))
    good = encode(bytes(6), {3: 10})
    assert receiver.receive(5, 1, good) == TAKEN
    assert made._classed[1].paused_until[3] == 5 + 640
    bad = ControlFrame(good[:-1] + bytes([good[-1] ^ 1]))
    for body in (packet(), bad, bytes(good)):
        assert receiver.receive(6, 1, body) == "there"
    made.set_carrier(6, 2, False)
    assert receiver.receive(7, 2, good) == "there"
    assert passed == [packet(), bad, good, good]
    assert heard == [(5, 1, 10)]


PAIR = Topology(
    name="pair", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)


class ClassedFabric(Fabric):
    """Every NIC has ports with eight classes; the switches are as usual."""

    def nic(self, name: str, start_ns: int = 0) -> Nic:
        plain = nic_config(self.topology, name)
        ports = tuple(
            ClassEgressConfig(rate_bps=one.rate_bps, delay_ns=one.delay_ns, data_class=0) for one in plain.ports
        )
        return Nic(replace(plain, ports=ports), start_ns)


@pytest.mark.parametrize("watched", [False, True])
def test_a_nic_that_is_paused_sends_no_data_and_goes_on_when_it_may(watched: bool) -> None:
    fabric = ClassedFabric(PAIR)
    fabric.permutation(1, 400_000)
    fabric.write_all(400_000, 2)
    nic = fabric.core("h000")
    if watched:
        nic.set_witness(Witness(Choice(), Dscp()))
    fabric.simulator.run(READY_NS + 5_000)
    now = nic.now_ns
    sent = [port["packets"] for port in nic.counters()["ports"].values()]
    assert min(sent) > 0
    # 512 bit times at 100 Gb/s are 5.12 ns: 51.2 us.
    quanta_ns = PAUSED.quanta_ns(10_000)
    for port in (0, 1):
        assert nic._arrive(now, port, encode(bytes(6), {0: 10_000, 1: 10_000})) == TAKEN
    fabric.simulator.run(now + quanta_ns - 1)
    for port, before in zip(nic.counters()["ports"].values(), sent, strict=True):
        classes = port["classes"]
        assert classes[0]["packets"] + classes[1]["packets"] <= before
        assert classes[0]["pauses"] == 1
    assert sum(port["control_packets"] for port in nic.counters()["ports"].values()) > 0
    assert fabric.finish(5_000_000)
    fabric.verify(400_000)
    assert fabric.total("retransmits") == 0
    assert not any(nic.counters()["drops"].values())


@pytest.mark.parametrize(("xoff_bytes", "delay_ns", "mtu_bytes"), [(20_000, 1_000, 4_096), (60_000, 300, 1_024)])
def test_an_incast_over_lossless_switches_loses_nothing(xoff_bytes: int, delay_ns: int, mtu_bytes: int) -> None:
    """RC without congestion control: only pauses, obeyed in time by every NIC, keep the switches from dropping."""
    topology = Topology(
        name="incast", planes=2, t0_per_plane=2, t1_per_plane=1, nics_per_t0=3, evs_per_qp=16, reserve_evs_per_qp=8,
        link_delay_ns=delay_ns, mtu_bytes=mtu_bytes, nic={"transport": "rc", "cc": "none"},
        switch={
            "forwarding": "ecmp", "lossless": "pfc", "pfc_threshold": "static", "pfc_xoff_bytes": xoff_bytes,
            "buffer_bytes": 1_500_000,
        },
    )  # fmt: skip
    fabric, size = Fabric(topology), 200_000
    names = list(topology.nic_names())
    for index, name in enumerate(names):
        fabric.memory(name, size)
        if index:
            fabric.connect(name, names[0], 100 + index, 200 + index)
            fabric.write(name, 100 + index, 0, 0, size, READY_NS)
    assert fabric.finish(2_000_000)
    drops = [fabric.simulator.node(name).counters()["drops"] for name in topology.switch_names()]
    assert not any(count for one in drops for count in one.values())
    assert fabric.total("retransmits") == 0
    pauses = [port["classes"][3] for name in names for port in fabric.core(name).counters()["ports"].values()]
    assert sum(one["pauses"] for one in pauses) > 0 < sum(one["pause_ns"] for one in pauses)
    assert {event.status for event in fabric.found(Completion)} == {"ok"}


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
