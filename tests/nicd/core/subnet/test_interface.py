"""What a NIC answers to directed-route requests, and what it drops."""

from dataclasses import replace

import pytest

from mrcfabric.lids import base_lid, node_guid
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.wire.flow_control import INIT
from mrcfabric.wire.flow_control import encode as flow_control
from mrcfabric.wire.smp import (
    CHANNEL_ADAPTER,
    GET,
    LFT,
    NODE_DESCRIPTION,
    NODE_INFO,
    OK,
    PORT_ACTIVE,
    PORT_INFO,
    SELF_PORT,
    SET,
    UNSUPPORTED,
    Smp,
    answer,
    encode,
    parse,
    request,
    step,
)
from mrcfabric.wire.smp_attributes import NodeInfo, PortInfo
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.core.subnet.interface import BAD_SMP


def lone() -> Nic:
    """A NIC of two ports of which the links have begun."""
    fabric = Topology(
        planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=4, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_lmc": 1},
        switch={"forwarding": "lft", "lossless": "credits"},
    )  # fmt: skip
    nic = Nic(nic_config(fabric, "h002"))
    inits = [Input(50, Rank.FRAME, port, vl, flow_control(INIT, vl, 0, 64)) for port in (0, 1) for vl in (0, 1)]
    nic.advance(inits, 5_000)
    return nic


def asked(nic: Nic, one: Smp, port: int = 1) -> list[Smp]:
    """What a NIC answers to a request of its neighbour at a port."""
    found = step(one, SELF_PORT)
    assert found is not None
    sent = nic.advance([Input(10_000, Rank.FRAME, port, 9, encode(found[1]))], 20_000)
    assert all(entry[0] == port for entry in sent)
    answers = [parse(entry[2]) for entry in sent if len(entry[2]) > 6]
    return [one for one in answers if one is not None]


def test_who_it_is_and_how_its_port_stands() -> None:
    (one,) = asked(lone(), request(GET, NODE_INFO, (1,), 5))
    info = NodeInfo.parse(one.data)
    assert (one.status, one.transaction_id) == (OK, 5)
    assert (info.node_type, info.ports, info.local_port, info.node_guid) == (CHANNEL_ADAPTER, 2, 2, node_guid("h002"))
    (one,) = asked(lone(), request(GET, PORT_INFO, (1,), 5, 2))
    port = PortInfo.parse(one.data)
    assert (port.lid, port.lmc, port.state) == (base_lid(2, 1), 1, PORT_ACTIVE)
    (one,) = asked(lone(), request(GET, NODE_DESCRIPTION, (1,), 5))
    assert one.data.rstrip(b"\0") == b"h002"


@pytest.mark.parametrize(
    "one", [request(GET, LFT, (1,), 5), request(SET, NODE_INFO, (1,), 5), request(GET, PORT_INFO, (1,), 5, 1)]
)
def test_what_it_has_not_is_unsupported(one: Smp) -> None:
    (found,) = asked(lone(), one)
    assert found.status == UNSUPPORTED


def test_what_is_not_for_it_is_dropped() -> None:
    good = request(GET, NODE_INFO, (1,), 5)
    passing = request(GET, NODE_INFO, (1, 1), 5)
    back = replace(answer(good), hop_pointer=1, d=1)
    trap = replace(good, method=5)
    for one in (passing, trap):
        nic = lone()
        assert asked(nic, one) == []
        assert nic.counters()["drops"][BAD_SMP] == 1
    nic = lone()
    nic.advance([Input(10_000, Rank.FRAME, 0, 9, encode(back))], 20_000)
    assert nic.counters()["drops"][BAD_SMP] == 1, "nobody has asked"
    spoilt = bytearray(encode(replace(good, hop_pointer=1)))
    spoilt[80] ^= 4
    nic.advance([Input(30_000, Rank.FRAME, 0, 10, spoilt)], 40_000)
    assert nic.counters()["drops"][BAD_SMP] == 2
