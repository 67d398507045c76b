"""The ports of a NIC with VLs: room, what comes in, and who is told of credit."""

import pytest

from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.wire.flow_control import INIT, NORMAL, FlowControl, encode, parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.smp import GET, NODE_INFO, request
from mrcfabric.wire.smp import encode as encode_smp
from nicd.compose import nic_config
from nicd.core.class_ports import ports_of
from nicd.core.credit_holder import CreditHolder
from nicd.core.credit_ports import NO_VL, OVERRUN, CreditPorts, CreditReceiver
from nicd.core.stats import TAKEN
from nicd.core.timers import Timers
from tests.support.credit_link import ib_packet

CONFIG = CreditEgressConfig(rate_bps=8_000_000_000, delay_ns=100, overhead_bytes=0, blocks=(20, 20), frame_blocks=1)


def ports(count: int = 2, fccl: int = 20) -> CreditPorts:
    """Ports whose neighbours have granted so many blocks on each VL."""
    made = CreditPorts((CONFIG,) * count, 100, "test")
    made.begin(1)
    for port in range(count):
        for vl in (0, 1):
            made.heard(20, port, FlowControl(INIT, vl, 0, fccl))
    made.run(50)
    made.out.clear()
    return made


def test_a_port_without_credit_has_no_room_once_its_queue_is_full() -> None:
    made = ports(fccl=2)
    made.track(100)
    assert made.room == 0b11
    for number in range(3):
        made.offer(100, 1, ib_packet(98, number=number), False)
    made.depart(made.next_ns)
    assert made.room == 0b01
    made.heard(300, 1, FlowControl(NORMAL, 0, 0, 6))
    assert made.next_ns == 300
    made.depart(300)
    assert made.room == 0b11, "one packet waits behind the one on the wire"


def test_packets_of_another_vl_do_not_take_the_room_of_data() -> None:
    made = ports(fccl=0)
    made.track(100)
    made.offer(100, 0, ib_packet(98, 1), True)
    made.offer(100, 0, ib_packet(98, 1), True)
    assert made.room == 0b11


def test_what_comes_in_is_granted_again_when_the_nic_has_dealt_with_it() -> None:
    made, seen = ports(), list[int]()

    def onward(now: int, port: int, packet: object) -> str:
        seen.append(made._credited[port].credits.held[1])
        return TAKEN

    receiver = CreditReceiver(made, onward, onward, {}, CreditHolder(Timers(), made).done)
    assert receiver.receive(1_000, 0, ib_packet(130, 1)) == TAKEN
    assert seen == [3]
    made.run(2_000)
    said = [parse(one[2]) for one in made.out]
    assert said == [FlowControl(NORMAL, 1, 0, 23)]


def test_what_it_does_not_take_itself_goes_on_or_has_a_reason() -> None:
    made, drops = ports(), dict[str, int]()
    receiver = CreditReceiver(made, lambda *_: "onward", lambda *_: "managed", drops, CreditHolder(Timers(), made).done)
    assert receiver.receive(1_000, 0, encode(NORMAL, 0, 0, 30)) == TAKEN
    assert receiver.receive(1_000, 0, encode(NORMAL, 5, 0, 30)) == "onward"
    assert receiver.receive(1_000, 0, ControlFrame(b"nonsense")) == "onward"
    assert receiver.receive(1_000, 0, bytearray(5)) == "onward"
    assert receiver.receive(1_000, 0, ib_packet(130, 15)) == "onward"
    assert receiver.receive(1_000, 0, encode_smp(request(GET, NODE_INFO, (1,), 1))) == "managed"
    assert receiver.receive(1_000, 0, ib_packet(130, 7)) == NO_VL
    assert receiver.receive(1_000, 0, ib_packet(1_342, 0)) == OVERRUN
    assert drops == {NO_VL: 1, OVERRUN: 1}
    made.set_carrier(1_001, 0, False)
    assert receiver.receive(1_002, 0, encode(NORMAL, 0, 0, 30)) == "onward", "a dead port hears nothing"


def test_ports_are_made_as_they_are_configured() -> None:
    fabric = Topology(
        planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_sl": 1},
        switch={"forwarding": "lft", "lossless": "credits", "vls": 3},
    )  # fmt: skip
    config = nic_config(fabric, "h001")
    made = ports_of(config, 100)
    assert isinstance(made, CreditPorts)
    assert (made.count, made.vls(0), made.data_vl(1)) == (2, 3, 1)
    assert config.ports[0].delay_ns == fabric.ports("h001")[0].delay_ns
    object.__setattr__(config, "ports", (CONFIG, EgressConfig()))
    with pytest.raises(ConfigError, match="all alike"):
        ports_of(config, 100)
