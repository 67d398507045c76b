"""The credits of one port, both ways: what it may send to its neighbour, and what it lets its neighbour send to it.

Owns the counts of blocks by VL and what flow control packets say. Pure arithmetic: when such packets leave is the
business of `mrcfabric.credit_egress`, and what fills the buffer that of switches and NICs.

All counts are modulo 4096. A packet that was sent and lost on the link is missing in the receiver's count until the
next flow control packet, which says how many blocks were sent: the receiver then counts what is lost as received, and
can grant it anew.

A port begins with packets of the operand INIT, and grants and takes grants only when it has heard one itself. Who hears
INIT although the VL has begun knows that the neighbour begins anew; it counts from zero too and says INIT once.

Source: IBTA 7.9.4.
"""

from mrcfabric.errors import ConfigError
from mrcfabric.wire.flow_control import BLOCKS_MAX, INIT, MODULUS, NORMAL, FlowControl, encode, may_start
from mrcfabric.wire.link import ControlFrame


def check_blocks(where: str, blocks: tuple[int, ...], frame_blocks: int) -> None:
    """Raises ConfigError for buffers that cannot be granted, or hold no packet of so many blocks."""
    for vl, count in enumerate(blocks):
        if not frame_blocks <= count <= BLOCKS_MAX:
            what = f"{count} blocks for VL {vl}"
            raise ConfigError(where, what, f"{frame_blocks} (the largest packet) to {BLOCKS_MAX}")


class LinkCredits:
    """The account of one port. Lists are indexed by VL."""

    __slots__ = ("answer", "begun", "blocks", "granted", "held", "held_peak", "limit", "received", "sent", "told")

    def __init__(self, blocks: tuple[int, ...]) -> None:
        """`blocks`: by VL, the buffer for what comes in."""
        vls = len(blocks)
        self.blocks = blocks
        self.begun = [False] * vls
        """Whether the neighbour has said INIT. Until then nothing may be sent, and nothing else is heard."""
        self.answer = [True] * vls
        """Whether the next flow control packet says INIT."""
        self.sent = [0] * vls
        """Blocks sent: FCTBS."""
        self.limit = [0] * vls
        """The neighbour's last FCCL."""
        self.received = [0] * vls
        """Blocks received, what was lost included."""
        self.held = [0] * vls
        """Blocks that came in and are still in the buffer."""
        self.held_peak = [0] * vls
        self.granted = [0] * vls
        """The FCCL that was said last."""
        self.told = [-1] * vls
        """FCTBS and FCCL as said last, in one number; -1: nothing was, or it got lost."""

    # What it may send.

    def may_start(self, vl: int, blocks: int) -> bool:
        """Whether the neighbour has room for a packet of so many blocks."""
        return self.begun[vl] and may_start(self.limit[vl], self.sent[vl], blocks)

    def credit(self, vl: int) -> int:
        """Blocks that may be sent now."""
        left = (self.limit[vl] - self.sent[vl]) % MODULUS
        return left if self.begun[vl] and left <= BLOCKS_MAX else 0

    def spend(self, vl: int, blocks: int) -> None:
        """A packet of so many blocks starts."""
        self.sent[vl] = (self.sent[vl] + blocks) % MODULUS

    # What it lets the neighbour send.

    def take(self, vl: int, blocks: int) -> bool:
        """A packet of so many blocks has come in. False: there is no room, and it must be dropped."""
        self.received[vl] = (self.received[vl] + blocks) % MODULUS
        held = self.held[vl] + blocks
        if held > self.blocks[vl]:
            return False
        self.held[vl] = held
        if held > self.held_peak[vl]:
            self.held_peak[vl] = held
        return True

    def free(self, vl: int, blocks: int) -> None:
        """So many blocks of what came in have left the buffer."""
        left = self.held[vl] - blocks
        assert left >= 0, f"VL {vl}: more blocks left than came in"
        self.held[vl] = left

    def grant(self, vl: int) -> int:
        """The FCCL that the buffer allows now; what came in before the VL has begun is not counted."""
        received = self.received[vl] if self.begun[vl] else 0
        return (received + self.blocks[vl] - self.held[vl]) % MODULUS

    def untold(self, vl: int) -> int:
        """Blocks that could be granted beyond what was said last."""
        return (self.grant(vl) - self.granted[vl]) % MODULUS

    # Flow control packets.

    def stale(self, vl: int) -> bool:
        """Whether the neighbour may not know how things stand: they have changed, or what was said got lost."""
        return self.told[vl] != (self.sent[vl] << 12 | self.grant(vl))

    def packet(self, vl: int) -> ControlFrame:
        """The flow control packet that leaves now."""
        fctbs, fccl = self.sent[vl], self.grant(vl)
        self.granted[vl] = fccl
        self.told[vl] = fctbs << 12 | fccl
        operand = INIT if self.answer[vl] or not self.begun[vl] else NORMAL
        self.answer[vl] = False
        return encode(operand, vl, fctbs, fccl)

    def forget(self, vl: int) -> None:
        """What was said last got lost, or may not count when it comes."""
        self.told[vl] = -1

    def heard(self, said: FlowControl, answered: bool) -> None:
        """A good flow control packet for one of the VLs has come.

        `answered`: the neighbour can have heard an INIT of this port since it said this one.
        """
        vl = said.vl
        if said.operand == INIT:
            self.answer[vl] = self.begun[vl] or not answered
            self.begun[vl] = True
            self.sent[vl] = 0
            if self.answer[vl]:
                self.told[vl] = -1
        elif not self.begun[vl]:
            return
        self.limit[vl] = said.fccl
        self.received[vl] = said.fctbs
