"""The two records of the requestor: a message, and one transmission of one of its packets.

Owns the fields only. Everything a retransmission needs is here, so that a packet can be made again from memory.
"""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.commands import PostWrite
from nicd.core.memory import Region

INFLIGHT: Final = 0
LOST: Final = 1
DONE: Final = 2
"""States of a transmission: out; judged lost and waiting to be sent again; acknowledged or sent again."""


class Message:
    """One posted WRITE."""

    __slots__ = ("imm", "length", "msn", "r_key", "region", "remote_va", "rqmsn", "sent", "view", "wr_id")

    def __init__(self, work: PostWrite, region: Region, view: memoryview, number: int, rqmsn: int) -> None:
        self.wr_id = work.wr_id
        self.region = region
        self.view = view
        self.length = work.length
        self.remote_va = work.remote_va
        self.r_key = work.r_key
        self.imm = work.imm
        # MRC 1.0 METH: index of the message on the QP, 16 bits.
        self.msn = number & 0xFFFF
        # MRC 1.0 METH: of with-immediate messages only.
        self.rqmsn = rqmsn if work.imm is not None else 0
        self.sent = 0
        """Bytes that have been sent at least once."""


class Sent:
    """One transmission of one PSN."""

    __slots__ = (
        "cause", "ev", "index", "message", "offset", "opcode", "psn", "sent_ns", "size", "state", "tries",
    )  # fmt: skip

    def __init__(
        self,
        psn: int,
        message: Message,
        offset: int,
        size: int,
        opcode: int,
        ev: int,
        sent_ns: Instant,
        tries: int,
        index: int,
    ) -> None:
        self.psn = psn
        self.message = message
        self.offset = offset
        self.size = size
        self.opcode = opcode
        self.ev = ev
        """Index of its EV in the profile."""
        self.sent_ns = sent_ns
        self.tries = tries
        """Retransmissions before this one."""
        self.index = index
        """Number of the transmission on the QP."""
        self.state = INFLIGHT
        self.cause = ""
        """Why it was judged lost."""
