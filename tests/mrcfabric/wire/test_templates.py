"""What the templates build: the golden packets, and exactly what the complete emitter would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.ack_headers import Aeth, Neth, Seth
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.data_headers import ImmDt, Meth, Reth, Tseth
from mrcfabric.wire.dscp import ECT_0, traffic_class
from mrcfabric.wire.endpoint_headers import Erth, Peth, eeth_class
from mrcfabric.wire.entropy import EvOrder, ev_to_wire
from mrcfabric.wire.header import Header
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.layout import DATA_OPCODES, IMM_OPCODES, NEXT_HEADER_IPV6
from mrcfabric.wire.options import EETH_OP_SHIFTS, WireOptions
from mrcfabric.wire.packet import Packet, emit
from tests.support.packets import DSCP, control_template, data_template, golden_packets
from tests.vectors import wire as golden

u16 = st.integers(0, 0xFFFF)
u24 = st.integers(0, 0xFFFFFF)
u32 = st.integers(0, 0xFFFFFFFF)
u64 = st.integers(0, (1 << 64) - 1)
s16 = st.integers(-0x8000, 0x7FFF)
bits = st.integers(0, 1)
DATA_CLASS = traffic_class(DSCP.trimmable, ECT_0)
RETX_CLASS = traffic_class(DSCP.trimmable_retx, ECT_0)
PROBE_CLASS = traffic_class(DSCP.no_trim, ECT_0)
CONTROL_CLASS = traffic_class(DSCP.control, 0)


def emitted(tc: int, ev: int, *headers: Header, payload: bytes = b"", order: EvOrder = EvOrder.PORT_LOW) -> bytearray:
    label, port = ev_to_wire(ev, order)
    tunnel = Ipv6(
        traffic_class=tc,
        flow_label=label,
        next_header=NEXT_HEADER_IPV6,
        source=golden.SOURCE,
        destination=golden.CONTAINER,
    )
    inner = Ipv6(traffic_class=tc, flow_label=label, source=golden.SOURCE, destination=golden.DESTINATION)
    return emit(Packet([tunnel, inner, Udp(port, 4791), *headers], payload))


@pytest.mark.parametrize("name", golden.ALL)
@pytest.mark.spec("MRC 1.0", "7.5")
def test_golden_packets(name: str) -> None:
    assert golden_packets()[name].hex() == golden.ALL[name].hex()


@pytest.mark.spec("MRC 1.0", "7.5")
@given(
    opcode=st.sampled_from(sorted(DATA_OPCODES)),
    psn=u24,
    numbers=st.tuples(u16, u16),
    place=st.tuples(u64, u32, u32),
    ev=u32,
    payload=st.binary(max_size=64),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    imm=u32,
    stamp=u16,
    order=st.sampled_from(EvOrder),
)
def test_data_packets_are_what_the_emitter_makes(
    opcode: int,
    psn: int,
    numbers: tuple[int, int],
    place: tuple[int, int, int],
    ev: int,
    payload: bytes,
    flags: tuple[bool, bool, bool],
    imm: int,
    stamp: int,
    order: EvOrder,
) -> None:
    a, rtx, ts = flags
    with_imm = opcode in IMM_OPCODES
    template = data_template(ts, WireOptions(ev_order=order))
    # Another size in between: nothing of it may stick to the template.
    template.build(0xC7, 0, 0, 0, 0, 0, 0, 0, golden.CONTAINER, b"else")
    built = template.build(
        opcode,
        psn,
        *numbers,
        *place,
        ev,
        golden.CONTAINER,
        memoryview(payload),
        a=a,
        rtx=rtx,
        imm=imm if with_imm else None,
        timestamp=stamp,
    )
    headers: list[Header] = [
        Bth(opcode, golden.QP, psn, a=int(a), rtx=int(rtx), ts=int(ts)),
        Meth(msn=numbers[0], rqmsn=numbers[1]),
        *([Tseth(stamp)] if ts else []),
        Reth(*place),
        *([ImmDt(imm)] if with_imm else []),
    ]
    tc = RETX_CLASS if rtx else DATA_CLASS
    assert built == emitted(tc, ev, *headers, payload=payload, order=order)


@pytest.mark.spec("MRC 1.0", "7.5")
@given(
    ev=u32,
    entropy=u32,
    m=st.integers(0, 2),
    offsets=st.tuples(s16, s16),
    cack=u24,
    bitmap=u64,
    stamp=u16,
    ooo=st.integers(0, 0x7FFF),
    received=st.integers(0, 1 << 30),
    mpr=st.integers(0, 255),
    rtx=st.booleans(),
    probe_id=st.none() | u16,
    penalty=st.tuples(bits, st.integers(0, 127)),
)
def test_sacks_are_what_the_emitter_makes(
    ev: int,
    entropy: int,
    m: int,
    offsets: tuple[int, int],
    cack: int,
    bitmap: int,
    stamp: int,
    ooo: int,
    received: int,
    mpr: int,
    rtx: bool,
    probe_id: int | None,
    penalty: tuple[int, int],
) -> None:
    built = control_template().sack(
        ev, golden.CONTAINER, entropy, m, offsets[0], cack, offsets[1], bitmap, stamp, ooo, received, mpr, rtx,
        probe_id, *penalty,
    )  # fmt: skip
    signed_id = probe_id if probe_id is None or probe_id < 0x8000 else probe_id - 0x10000
    seth = Seth(
        entropy,
        cack,
        m=m,
        pr=int(probe_id is not None),
        ack_psn_offset=offsets[0] if signed_id is None else signed_id,
        sack_offset=offsets[1],
        sack_bitmap=bitmap,
        mpr=mpr,
        tx_timestamp=stamp,
        ooo_count=ooo,
        restore_cwnd=penalty[0],
        rcv_cwnd_pen=penalty[1],
        # The counter wraps; it never spoils its neighbours.
        rcvd_bytes=received % (1 << 24),
        spdcid=golden.SOURCE_QP,
        dpdcid=golden.QP,
    )
    assert built == emitted(CONTROL_CLASS, ev, Bth(0xDC, golden.QP, cack, rtx=int(rtx)), seth)


@pytest.mark.spec("MRC 1.0", "7.5")
@given(
    ev=u32,
    psn=u24,
    entropy=u32,
    stamp=u16,
    short=u16,
    mask=u32,
    op=st.integers(0, 3),
    shift=st.sampled_from(EETH_OP_SHIFTS),
)
def test_the_other_control_packets_are_what_the_emitter_makes(
    ev: int, psn: int, entropy: int, stamp: int, short: int, mask: int, op: int, shift: int
) -> None:
    options = WireOptions(nack_cc_type=2, eeth_op_shift=shift)
    control = control_template(options)
    way = (ev, golden.CONTAINER)
    ids = {"spdcid": golden.SOURCE_QP, "dpdcid": golden.QP}
    assert control.nack(*way, 0x0B, entropy, psn, stamp) == emitted(
        CONTROL_CLASS, ev, Bth(0xDD, golden.QP, psn), Neth(0x0B, entropy, psn, stamp, cc_type=2, **ids)
    )
    assert control.acknowledge(*way, psn, 0x61, psn) == emitted(
        CONTROL_CLASS, ev, Bth(0xD1, golden.QP, psn), Aeth(psn, 0x61)
    )
    assert control.probe(*way, short, stamp) == emitted(
        PROBE_CLASS, ev, Bth(0xDE, golden.QP, 0), Peth(short, stamp, **ids)
    )
    for data_class, tc in ((False, CONTROL_CLASS), (True, PROBE_CLASS)):
        assert control.endpoint_request(*way, short, op, mask, stamp, data_class) == emitted(
            tc, ev, Bth(0xD8, 2, short), Erth(op, mask, stamp)
        )
    eeth = eeth_class(options)(op, stamp)
    assert control.endpoint_response(*way, short, op, stamp) == emitted(CONTROL_CLASS, ev, Bth(0xD9, 2, short), eeth)
