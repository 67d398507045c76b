"""Tables of RoCE's own headers against bits by hand."""

from mrcfabric.wire.bth import Bth
from mrcfabric.wire.roce_headers import CnpReserved, RcBth, SelectiveAck
from mrcfabric.wire.roce_layout import CNP_RESERVED_SIZE, SELECTIVE_SIZE


def test_the_bth_by_hand() -> None:
    header = RcBth(
        opcode=0x81, dest_qp=0x123456, psn=0xABCDEF, a=1, se=1, m=1, pad_count=3, p_key=0x8001, becn=1, fecn=1
    )
    assert header.emit() == bytes.fromhex("81f08001" + "c0123456" + "80abcdef")
    assert RcBth.parse(header.emit()) == header
    assert RcBth.SIZE == Bth.SIZE == 12


def test_what_stands_behind_it() -> None:
    assert SelectiveAck(0xABCDEF).emit() == bytes.fromhex("00abcdef")
    assert (SelectiveAck.SIZE, CnpReserved.SIZE) == (SELECTIVE_SIZE, CNP_RESERVED_SIZE)
