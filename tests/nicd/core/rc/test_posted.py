"""A posted WRITE knows its PSNs and its place among all bytes of the QP."""

from mrcfabric.rng import Rng
from nicd.core.commands import PostWrite
from nicd.core.memory import MemoryTable
from nicd.core.rc.posted import Posted


def test_a_message_begins_at_its_psn_and_its_byte() -> None:
    region = MemoryTable(Rng("x"), 4, 1 << 20, 1 << 20).register(0, 4_096, 1, 3, None)
    message = Posted(PostWrite(0, 9, 77, 1, 0, 100, 0x5000, 3), region, memoryview(bytes(100)), 4, 70, 12_345)
    assert (message.wr_id, message.psn_first, message.base, message.length) == (77, 70, 12_345, 100)
