"""One posted WRITE, as its requestor keeps it until it is complete. MRC 1.0 METH: its numbers."""

from nicd.core.commands import PostWrite
from nicd.core.memory import Region


class Message:
    """One posted WRITE."""

    __slots__ = (
        "done", "imm", "length", "msn", "psn_first", "psn_last", "r_key", "region", "remote_va", "rqmsn", "sent",
        "view", "wr_id",
    )  # fmt: skip

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
        self.psn_first = -1
        self.psn_last = -1
        """PSNs of its first and last packet, once those have been sent."""
        self.done = False
        """Whether it completed before an older message did."""
