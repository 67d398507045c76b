"""One transmission of one PSN, as the tables of a requestor keep it: what was sent, where, when, and what became of it.

Owns the record and its states. `inflight` and `path_order` change them.
"""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.message import Message

INFLIGHT: Final = 0
LOST: Final = 1
DONE: Final = 2
"""States of a transmission: in flight; judged lost and waiting to be sent again; acknowledged or sent again."""


class Sent:
    """One transmission of one PSN."""

    __slots__ = (
        "cause", "ev", "index", "message", "offset", "opcode", "passed_ns", "place", "plane", "psn", "sent_ns",
        "silences", "size", "spared", "state", "tries", "trims", "way",
    )  # fmt: skip

    def __init__(
        self, psn: int, message: Message, offset: int, size: int, opcode: int, ev: int, plane: int, sent_ns: Instant,
        tries: int, index: int,
    ) -> None:  # fmt: skip
        self.psn = psn
        self.message = message
        self.offset = offset
        self.size = size
        self.opcode = opcode
        self.ev = ev
        """Index of its EV in the profile."""
        self.plane = plane
        """And that EV's plane."""
        self.sent_ns = sent_ns
        self.tries = tries
        """Retransmissions before this one."""
        self.silences = 0
        """How many of them followed a timeout. Only these double the RTO: after a NACK the plain RTO holds."""
        self.trims = 0
        """How many of them followed a trim."""
        self.spared = 0
        """How many of them, and whether this one, followed a loss that does not use up its retries."""
        self.index = index
        """Number of the transmission on the QP."""
        self.state = INFLIGHT
        self.cause = ""
        """Why it was judged lost."""
        self.way = 0
        """Number of its path's record when it left."""
        self.place = 0
        """Number of the transmission on that path."""
        self.passed_ns = 0
        """If a packet overtook it on its path: how long after that one had left it was known to have arrived."""

    def follow(self, old: "Sent") -> None:
        """It is sent again because `old` was judged lost."""
        # MRC 1.0 section 3: all causes use one retry budget, but only timeouts lengthen the RTO.
        self.silences = old.silences + (old.cause == "timeout")
        self.trims = old.trims + (old.cause == "trim")
        self.spared = old.spared
