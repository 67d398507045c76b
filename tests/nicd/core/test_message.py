"""A posted WRITE: the numbers it travels with."""

import pytest

from nicd.core.commands import PostWrite
from nicd.core.memory import Region
from nicd.core.message import Message


@pytest.mark.spec("MRC 1.0", "7.5")
@pytest.mark.parametrize(("imm", "rqmsn"), [(None, 0), (7, 5)])
def test_the_numbers_of_a_message(imm: int | None, rqmsn: int) -> None:
    """MSN: 16 bits of its index on the QP; RQMSN: of messages with an immediate alone."""
    region = Region(1, 2, 0, memoryview(bytearray(16)))
    message = Message(PostWrite(0, 1, 3, 1, 0, 16, 9, 2, imm), region, region.view, 0x1_0002, 5)
    assert (message.msn, message.rqmsn, message.wr_id, message.remote_va) == (2, rqmsn, 3, 9)
    assert not message.done
