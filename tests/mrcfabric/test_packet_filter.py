"""What a filter lets pass: every field alone, all together, and bytes that are no packet."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.lids import base_lid
from mrcfabric.naming import nic_address, port_mac, usid_of
from mrcfabric.packet_filter import KINDS, VALUES_MAX, PacketFilter
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import Dscp, set_dscp
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.flow_control import INIT
from mrcfabric.wire.flow_control import encode as encode_link
from mrcfabric.wire.layout import ENDPOINT_QP, OP_EV_PROBE, WRITE_MIDDLE, WRITE_ONLY
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh_rc import LrhControlTemplate, LrhDataTemplate
from mrcfabric.wire.options import WireOptions
from mrcfabric.wire.pfc import encode
from mrcfabric.wire.roce import CnpTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import NAK_SEQUENCE, RC_WRITE_MIDDLE
from mrcfabric.wire.smp import GET, NODE_INFO, request
from mrcfabric.wire.smp import encode as encode_smp
from mrcfabric.wire.templates import ControlTemplate, DataTemplate
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet_layout import CC_NSCC, CONTROL_CREDIT, CONTROL_PROBE, FLAG_RETX, RUD_REQUEST
from mrcfabric.wire.uet_templates import UetTemplate
from mrcfabric.wire.usid import build
from tests.support.packets import one_of_each
from tests.support.uet_packets import FIRST

DSCP = Dscp()
EV = 0x0001_8002
PLANE = 3
CONTAINER = build(0xFCBB_BB00, (usid_of(1, PLANE, 5), usid_of(3, PLANE, 1)))
FROM, TO, QPN, OWN_QPN = 4, 9, 0x77, 0x55


def data(rtx: bool = False, qpn: int = QPN, options: WireOptions | None = None) -> bytearray:
    template = DataTemplate(nic_address(FROM), nic_address(TO), qpn, dscp=DSCP, options=options or WireOptions())
    return template.build(WRITE_MIDDLE, 5, 6, 7, 0x1000, 0xABCD, 1 << 20, EV, CONTAINER, b"payload!" * 32, rtx=rtx)


def control(kind: str) -> bytearray:
    """From `TO` back to `FROM`."""
    template = ControlTemplate(nic_address(TO), nic_address(FROM), OWN_QPN, QPN, dscp=DSCP)
    way = (EV, CONTAINER)
    made = {
        "sack": lambda: template.sack(*way, EV, 0, 0, 5, 1, 0, 0, 0, 0),
        "nack": lambda: template.nack(*way, 1, EV, 5, 0),
        "ack": lambda: template.acknowledge(*way, 5, 0x1F, 1),
        "probe": lambda: template.probe(*way, 1, 0),
        "endpoint": lambda: template.endpoint_request(*way, 1, OP_EV_PROBE, 0, 0),
    }
    return made[kind]()


def passes(packet: bytes | bytearray | memoryview, **fields: Any) -> bool:
    return PacketFilter(**fields).matcher(DSCP)(packet)


def test_the_open_filter_asks_nothing() -> None:
    assert PacketFilter().open
    assert PacketFilter(ports=(3,)).open
    assert not PacketFilter(evs=(0,)).open
    assert passes(b"anything")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"qps": ((TO, QPN),)}, True),
        ({"qps": ((FROM, QPN),)}, False),
        ({"qps": ((TO, QPN + 1), (TO, QPN))}, True),
        ({"peers": (FROM,)}, True),
        ({"peers": (TO,)}, True),
        ({"peers": (1, 2)}, False),
        ({"evs": (EV,)}, True),
        ({"evs": (EV + 1,)}, False),
        ({"planes": (PLANE,)}, True),
        ({"planes": (0, 1)}, False),
        ({"kinds": ("data",)}, True),
        ({"kinds": ("rtx", "sack")}, False),
        ({"planes": (PLANE,), "evs": (EV,), "qps": ((TO, QPN),), "kinds": ("data",), "peers": (FROM,)}, True),
        ({"planes": (PLANE,), "evs": (EV,), "qps": ((TO, QPN),), "kinds": ("ack",), "peers": (FROM,)}, False),
    ],
)
def test_every_field(fields: dict[str, Any], expected: bool) -> None:
    assert passes(data(), **fields) is expected
    assert passes(memoryview(data()), **fields) is expected
    assert passes(srh.insert(data(), srh.outer_with(CONTAINER, CONTAINER)), **fields) is expected


@pytest.mark.parametrize("kind", ["sack", "nack", "ack", "probe", "endpoint"])
def test_the_kinds_of_control(kind: str) -> None:
    packet = control(kind)
    assert [name for name in KINDS if passes(packet, kinds=(name,))] == [kind]


@pytest.mark.parametrize("outer", [None, CONTAINER], ids=["plain", "pinned"])
def test_packets_of_roce(outer: bytes | None) -> None:
    there = RcDataTemplate(nic_address(FROM), nic_address(TO), QPN, 0xC001, dscp=26, outer=outer)
    back = CnpTemplate(nic_address(TO), nic_address(FROM), OWN_QPN, 0xC001, dscp=48, outer=outer)
    packets = {
        ("data",): there.make(RC_WRITE_MIDDLE, 5, b"payload!" * 32),
        ("ack",): back.ack(5, 1),
        ("ack", "nack"): back.ack(5, 1, NAK_SEQUENCE),
        ("cnp",): back.cnp(),
    }
    for kinds, packet in packets.items():
        assert tuple(name for name in KINDS if passes(packet, kinds=(name,))) == kinds
        assert passes(packet, peers=(FROM,))
        assert passes(packet, peers=(TO,))
        assert not passes(packet, peers=(FROM + 1,))
        assert passes(packet, qps=((TO, QPN), (FROM, OWN_QPN)))
        assert passes(packet, qps=((TO, QPN),)) is (kinds == ("data",))
        assert passes(packet, planes=(PLANE,)) is (outer is not None)
        for size in range(len(packet)):
            passes(packet[:size], kinds=("ack",), qps=((TO, QPN),))


def test_packets_of_uet() -> None:
    there, back = UetTemplate(nic_address(FROM), nic_address(TO)), UetTemplate(nic_address(TO), nic_address(FROM))
    write = FIRST._replace(pid=0, resource=QPN, initiator=OWN_QPN)
    data, answer = there.request(0xC001, RUD_REQUEST, 0, 0, 5, 7, 9, write, b"payload!" * 40), (0xC001, 0)
    again = there.request(0xC001, RUD_REQUEST, FLAG_RETX, 0, 5, 7, 9, write, b"payload!" * 40)
    probe, credit = there.control(1, CONTROL_PROBE, 0, 5, 7, 9), back.control(1, CONTROL_CREDIT, 0, 5, 9, 7)
    packets = [
        (data, ("data",), TO),
        (again, ("data", "rtx"), TO),
        (trim(again, 128, DSCP.trimmed), ("trimmed", "rtx"), TO),
        (back.ack(*answer, 0, 5, 9, 7, CC_NSCC, 1, 0, 0, 0), ("ack", "sack"), FROM),
        (back.nack(*answer, 1, 5, 9, 7), ("nack",), FROM),
        (credit, ("control",), FROM),
        (probe, ("probe", "control"), TO),
    ]
    match = PacketFilter(qps=((TO, QPN),)).matcher(DSCP), PacketFilter(qps=((FROM, OWN_QPN),)).matcher(DSCP)
    assert not match[1](packets[3][0]), "nobody has seen a request of that context"
    for packet, kinds, end in packets:
        assert tuple(name for name in KINDS if passes(packet, kinds=(name,))) == kinds
        assert passes(packet, peers=(FROM,))
        assert passes(packet, peers=(TO,))
        assert not passes(packet, peers=(FROM + 1,))
        assert not passes(packet, planes=(PLANE,))
        assert not passes(packet, evs=(EV,))
        assert (match[0](packet), match[1](packet)) == (end == TO, end == FROM)
        for size in range(len(packet)):
            passes(packet[:size], kinds=("ack",), qps=((TO, QPN),))
    other = there.request(0xC001, RUD_REQUEST, 0, 0, 5, 8, 9, write._replace(initiator=1, resource=1), b"payload!" * 40)
    assert not match[0](other)


def test_a_link_control_frame_is_of_its_own_kind_and_has_no_fields() -> None:
    frame = encode(port_mac("p0-t0-0", 1), {3: 9})
    assert [name for name in KINDS if passes(frame, kinds=(name,))] == ["link"]
    assert passes(frame)
    for fields in ({"planes": (0,)}, {"evs": (0,)}, {"peers": (FROM,)}, {"qps": ((TO, QPN),)}):
        assert not passes(frame, **fields)
        assert not passes(frame, **fields, kinds=("link",))


def test_the_kinds_of_data() -> None:
    cut = trim(data(rtx=True), 128, DSCP.trimmed)
    assert [name for name in KINDS if passes(data(), kinds=(name,))] == ["data"]
    assert [name for name in KINDS if passes(data(rtx=True), kinds=(name,))] == ["data", "rtx"]
    assert [name for name in KINDS if passes(cut, kinds=(name,))] == ["trimmed", "rtx"]
    last_hop = data()
    set_dscp(last_hop, DSCP.trimmed_lasthop)
    assert passes(last_hop, kinds=("trimmed",))


def test_a_probe_to_oneself_is_an_endpoints() -> None:
    template = DataTemplate(nic_address(FROM), nic_address(FROM), ENDPOINT_QP, dscp=DSCP)
    probe = template.build(WRITE_ONLY, 1, 0, 0, 0, 0, 0, EV, CONTAINER, b"")
    assert [name for name in KINDS if passes(probe, kinds=(name,))] == ["endpoint"]


def test_the_other_order_of_the_entropy_value() -> None:
    options = WireOptions(ev_order=EvOrder.PORT_HIGH)
    assert PacketFilter(evs=(EV,)).matcher(DSCP, options)(data(options=options))


EVERYTHING = PacketFilter(
    qps=((TO, QPN),), peers=(FROM,), evs=(EV,), planes=tuple(range(8)), kinds=KINDS
).matcher(DSCP)  # fmt: skip


@given(st.binary(max_size=200))
def test_any_bytes_have_an_answer(noise: bytes) -> None:
    assert EVERYTHING(noise) is False


@given(st.sampled_from(sorted(one_of_each().values(), key=bytes)), st.integers(0, 200))
def test_any_part_of_a_packet_has_an_answer(packet: bytearray, end: int) -> None:
    EVERYTHING(packet[:end])
    PacketFilter(planes=(0,)).matcher(DSCP)(packet[:end])


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"color": []}, r"filter\.color: no such field"),
        ({"evs": 5}, r"filter\.evs: 5 is no list"),
        ({"evs": [-1]}, r"filter\.evs: -1 will not do"),
        ({"evs": [True]}, "True will not do"),
        ({"evs": [0] * (VALUES_MAX + 1)}, "too many"),
        ({"qps": [[1, 2, 3]]}, "is no pair"),
        ({"qps": [5]}, "5 is no pair"),
        ({"qps": [[1, 1 << 24]]}, r"filter\.qps: 16777216 will not do"),
        ({"planes": [8]}, "0 to 7"),
        ({"kinds": ["cheese"]}, "'cheese' is no kind of packet"),
        ("all", "no table of fields"),
    ],
)
def test_what_cannot_be_asked(raw: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        PacketFilter.from_settings(raw)


def test_there_and_back_as_data() -> None:
    wanted = PacketFilter(ports=(1,), qps=((1, 3), (2, 4)), kinds=("data", "rtx"))
    assert wanted.settings() == {"ports": (1,), "qps": ((1, 3), (2, 4)), "kinds": ("data", "rtx")}
    assert PacketFilter.from_settings(wanted.settings()) == wanted
    assert PacketFilter.from_settings({"qps": [[1, 3]]}).qps == ((1, 3),)
    assert PacketFilter.from_settings(None) == PacketFilter()


# InfiniBand.

LMC = 1
LIDS = base_lid(FROM, LMC) + 1, base_lid(TO, LMC) + 1
LRH_DATA = bytes(LrhDataTemplate(*LIDS, QPN).make(RC_WRITE_MIDDLE, 5, b"payload!", 0, 0, 0))
LRH_BACK = LrhControlTemplate(*reversed(LIDS), OWN_QPN)
LRH = {
    "data": LRH_DATA, "ack": bytes(LRH_BACK.ack(5, 1)), "nack": bytes(LRH_BACK.ack(5, 1, NAK_SEQUENCE)),
    "smp": bytes(encode_smp(request(GET, NODE_INFO, (1,), 7))), "link": encode_link(INIT, 0, 0, 9),
}  # fmt: skip


def lid_passes(packet: bytes, lmc: int = LMC, **fields: Any) -> bool:
    return PacketFilter(**fields).matcher(DSCP, WireOptions(lid_lmc=lmc))(packet)


@pytest.mark.parametrize("kind", LRH)
def test_every_kind_of_infiniband_is_told(kind: str) -> None:
    found = {name for name in KINDS if lid_passes(LRH[kind], kinds=(name,))}
    assert found == {kind} | ({"ack"} if kind == "nack" else set())


@pytest.mark.parametrize("lmc", [0, 1, 3])
def test_lids_are_the_numbers_of_nics(lmc: int) -> None:
    last = (1 << lmc) - 1
    packet = LrhDataTemplate(base_lid(FROM, lmc) + last, base_lid(TO, lmc) + last, QPN).make(RC_WRITE_MIDDLE, 5, b"")
    for nic in (FROM, TO):
        assert lid_passes(packet, lmc, peers=(nic,))
        assert not lid_passes(packet, lmc, peers=(nic + 1,))
        assert lid_passes(packet, lmc, qps=((nic, QPN),)) == (nic == TO)
    assert not lid_passes(packet, lmc, planes=(0,))
    assert not lid_passes(packet, lmc, evs=(0,))
    assert lid_passes(packet, lmc, peers=(FROM,), qps=((TO, QPN),), kinds=("data",))


@given(st.sampled_from(sorted(LRH)), st.integers(0, 300), st.binary(max_size=60))
def test_any_part_of_a_packet_of_infiniband_has_an_answer(kind: str, end: int, noise: bytes) -> None:
    for packet in (bytes(LRH[kind])[:end], noise, ControlFrame(noise)):
        for fields in ({"peers": (TO,)}, {"kinds": KINDS}, {"qps": ((TO, QPN),)}):
            lid_passes(packet, **fields)
