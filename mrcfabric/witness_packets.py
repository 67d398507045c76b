"""What a witness reads from a packet that is followed: who sent it, its PSN, and of which PSNs an answer speaks.

Owns how a followed packet is recognised by its bytes, for each transport. `witness` says when it looks, `choice` which
packets are followed. MRC and RC have different opcodes and UET a port of its own, so nobody has to say which one a
fabric runs.

An acknowledgement of MRC or UET is followed when its bitmap shows a followed PSN, when a followed PSN caused it, or
when one is among the last `REACH` that it completes. RC acknowledges many packets at once, and how many at once differs
by message: an acknowledgement is followed when a followed PSN is among the last ones that it completes, `STEPS` times
as many as have come since the acknowledgement before it, and at least `REACH`. So a few lost ones do no harm. Of an
acknowledgement without one before it nobody knows how far it reaches: all PSNs of a window may be meant.
"""

from typing import Any, Final
from zlib import crc32

from mrcfabric import witness_uet
from mrcfabric.choice import Choice, Chooser
from mrcfabric.lids import nic_of
from mrcfabric.naming import nic_address, nic_of_address
from mrcfabric.uet_ends import ContextEnds, is_uet
from mrcfabric.units import Buffer
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import CE, Dscp
from mrcfabric.wire.fastpath import Peeked, peeker, read_aeth, read_nack, read_sack
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    BTH_SIZE,
    EXTENSION_OFFSET,
    FLAG_RTX,
    INNER_DESTINATION,
    INNER_OFFSET,
    IPV6_SIZE,
    NACK,
    NACK_REASONS,
    NEXT_HEADER_UDP,
    OUTER_DESTINATION,
    PSN_MASK,
    SACK,
    UDP_SIZE,
)
from mrcfabric.wire.layout import DATA_OPCODES as DATA
from mrcfabric.wire.lrh import LRH_SIZE, dlid_of, sl_of, slid_of
from mrcfabric.wire.lrh_rc import LrhPeeked, LrhPeeker
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.wire.roce import RcPeeked, rc_peeker, read_rc_aeth, read_selective_aeth
from mrcfabric.wire.roce_layout import (
    KIND_NAK,
    KIND_RNR,
    NAK_INVALID_REQUEST,
    NAK_REMOTE_ACCESS,
    NAK_REMOTE_OPERATIONAL,
    NAK_SEQUENCE,
    RC_ACK,
    RC_DATA_OPCODES,
    SYNDROME_KIND_SHIFT,
)
from mrcfabric.wire.uet import uet_peeker
from mrcfabric.wire.uet_layout import REQUESTS
from mrcfabric.wire.vcrc import VCRC_SIZE

REACH: Final = 64
STEPS: Final = 4
REACH_MAX: Final = 1 << 16
FLOWS_MAX: Final = 4096
"""Flows of RC whose last acknowledgement is remembered; the oldest is forgotten first."""
KINDS: Final = {SACK: "sack", ACKNOWLEDGE: "ack", NACK: "nack"}
NAK_NAMES: Final = {
    NAK_SEQUENCE: "sequence",
    NAK_INVALID_REQUEST: "invalid_request",
    NAK_REMOTE_ACCESS: "remote_access",
    NAK_REMOTE_OPERATIONAL: "remote_operational",
}
_NEXT_HEADER: Final = 6
_ADDRESSES: Final = 8
"""Where the addresses begin in an IPv6 header."""
_CHECKSUM_SIZE: Final = 2
"""Of UDP, at its end."""
_RESERVED: Final = 4
"""Where the BTH has the byte with FECN and BECN."""

About = dict[str, Any]


class PacketReader:
    """Recognises the packets of one choice."""

    __slots__ = (
        "_contexts", "_ends", "_heard", "_lmc", "_peek", "_peek_lid", "_peek_rc", "_peek_selective", "_peek_uet",
        "chooser",
    )  # fmt: skip

    def __init__(self, choice: Choice, dscp: Dscp, options: WireOptions = DEFAULT_OPTIONS) -> None:
        self.chooser = Chooser(choice)
        self._ends = self.chooser.ends
        self._peek = peeker(dscp, options=options)
        self._peek_rc = rc_peeker(options=options)
        self._peek_selective = rc_peeker(selective=True, options=options)
        self._lmc = options.lid_lmc
        self._peek_lid = LrhPeeker(0, max(0, options.lid_lmc), options)
        # Whether UET's packets end in a sum is seen by trying.
        self._peek_uet = tuple(uet_peeker(dscp=dscp, crc=crc) for crc in ("crc32", "none"))
        self._contexts = ContextEnds()
        self._heard: dict[tuple[bytes, bytes, int], int] = {}
        """RC: (source, destination, QPN) -> up to which PSN the latest acknowledgement went."""

    def look(self, packet: Buffer) -> About | None:
        """The `packet` of a statement about this packet if it is followed, else None. Never raises."""
        if self._lmc >= 0:
            return self._look_lid(packet)
        if srh.follows(packet):
            stripped = srh.strip(packet)
            if stripped is None:
                return None
            packet = stripped
        plain = len(packet) > IPV6_SIZE and packet[_NEXT_HEADER] == NEXT_HEADER_UDP
        destination = bytes(packet[OUTER_DESTINATION if plain else INNER_DESTINATION])
        if self._ends and destination not in self._ends:
            return None
        if plain and is_uet(packet):
            return self._look_uet(packet)
        if not plain:
            peeked = self._peek(packet)
            if peeked[0] is None:
                return self._look_mrc(packet, peeked, destination)
        return self._look_rc(packet, destination, 0 if plain else INNER_OFFSET)

    # MRC.

    def _look_mrc(self, packet: Buffer, peeked: Peeked, destination: bytes) -> About | None:
        source, opcode, qpn, psn = peeked[9], peeked[2], peeked[4], peeked[5]
        if opcode in DATA:
            if not self.chooser.data(source, destination, qpn, psn):
                return None
            return _described(packet, peeked, destination, "trimmed" if peeked[8] < 0 else "data")
        if opcode not in KINDS or peeked[8] < 0 or not self.chooser.concerns(source, destination, qpn):
            return None
        said = _said(packet, opcode, psn)
        if not self._speaks(said, destination, source):
            return None
        return {**_described(packet, peeked, destination, KINDS[opcode]), **said}

    def _speaks(self, said: About, source: bytes, destination: bytes) -> bool:
        """Whether an acknowledgement is about a followed packet that went from `source` to `destination`."""
        if "wanted" in said:
            return any(self.chooser.chosen(source, destination, said["wanted"], 1))
        spans = [((said["cack"] - REACH + 1) & PSN_MASK, REACH)]
        if said.get("caused") is not None:
            spans.append((said["caused"], 1))
        if any(True for first, count in spans for _ in self.chooser.chosen(source, destination, first, count)):
            return True
        bitmap = said.get("bitmap", 0)
        if not bitmap:
            return False
        base = said["base"]
        return any(
            bitmap >> ((psn - base) & PSN_MASK) & 1
            for psn in self.chooser.chosen(source, destination, base, bitmap.bit_length())
        )

    # UET.

    def _look_uet(self, packet: Buffer) -> About | None:
        seen = self._contexts.see(packet)
        if seen is None or seen.kind not in witness_uet.FOLLOWED:
            return None
        looks = (peek(packet) for peek in self._peek_uet)
        peeked = next((one for one in looks if one[0] is None), None)
        if peeked is None:
            return None
        about = witness_uet.described(packet, peeked, seen)
        if seen.kind in REQUESTS:
            return about if self.chooser.data(seen.source, seen.destination, seen.qpn, about["psn"]) else None
        if not self.chooser.concerns(seen.source, seen.destination, seen.qpn or None):
            return None
        said = witness_uet.said(packet, peeked)
        return {**about, **said} if self._speaks(said, seen.destination, seen.source) else None

    # RC.

    def _look_rc(self, packet: Buffer, destination: bytes, base: int) -> About | None:
        """A packet of RC whose own IPv6 header begins at `base`."""
        selective = False
        peeked = self._peek_rc(packet)
        if peeked[0] is not None:
            selective = True
            peeked = self._peek_selective(packet)
            if peeked[0] is not None:
                return None
        source, opcode, qpn, psn = peeked[8], peeked[2], peeked[3], peeked[4]
        if opcode in RC_DATA_OPCODES:
            if not self.chooser.data(source, destination, qpn, psn):
                return None
            return _described_rc(packet, peeked, destination, "data", base)
        if opcode != RC_ACK or not self.chooser.concerns(source, destination, qpn):
            return None
        said = _said_rc(packet, psn, peeked[6], selective)
        if not self._answers(said, source, destination, qpn):
            return None
        return {**_described_rc(packet, peeked, destination, _answer_kind(said), base), **said}

    def _look_lid(self, packet: Buffer) -> About | None:
        """A packet of RC behind an LRH. Its ends are NICs, whose addresses elsewhere stand for them here."""
        peeked = self._peek_lid(packet)
        if peeked[0] is not None:
            return None
        _, _, opcode, qpn, psn, _, start, *_ = peeked
        source = nic_address(max(-1, nic_of(slid_of(packet), self._lmc)))
        destination = nic_address(max(-1, nic_of(dlid_of(packet), self._lmc)))
        if opcode in RC_DATA_OPCODES:
            if not self.chooser.data(source, destination, qpn, psn):
                return None
            return _described_lid(packet, peeked, self._lmc, "data")
        if opcode != RC_ACK or not self.chooser.concerns(source, destination, qpn):
            return None
        said = _said_rc(packet, psn, start, False)
        if not self._answers(said, source, destination, qpn):
            return None
        return {**_described_lid(packet, peeked, self._lmc, _answer_kind(said)), **said}

    def _answers(self, said: About, source: bytes, destination: bytes, qpn: int) -> bool:
        """Whether an acknowledgement of RC from `source` speaks of a followed packet."""
        reach = self._reach((source, destination, qpn), said["cack"])
        spans = [((said["cack"] - reach + 1) & PSN_MASK, reach)]
        spans += [(said[name], 1) for name in ("wanted", "caused") if name in said]
        return any(True for first, count in spans for _ in self.chooser.chosen(destination, source, first, count))

    def _reach(self, flow: tuple[bytes, bytes, int], cack: int) -> int:
        """How many PSNs up to `cack` this acknowledgement may be the first to speak of."""
        before = self._heard.get(flow)
        if before is None:
            if len(self._heard) >= FLOWS_MAX:
                del self._heard[next(iter(self._heard))]
            self._heard[flow] = cack
            return REACH_MAX
        ahead = (cack - before) & PSN_MASK
        if ahead > PSN_MASK >> 1:
            # One of a pass before: it completes nothing new.
            return REACH
        self._heard[flow] = cack
        return min(REACH_MAX, max(REACH, STEPS * ahead))


def _described(packet: Buffer, peeked: Peeked, destination: bytes, kind: str) -> About:
    _, traffic_class, _, flags, qpn, psn, ev, _, _, source, _ = peeked
    # A trimmed packet keeps only its headers up to the BTH. Acknowledgements differ in what follows the BTH.
    end = EXTENSION_OFFSET if kind in ("data", "trimmed") else len(packet)
    return {
        "kind": kind,
        "source": nic_of_address(source),
        "destination": nic_of_address(destination),
        "qpn": qpn,
        "psn": psn,
        "ev": ev,
        "rtx": bool(flags & FLAG_RTX),
        "ce": traffic_class & CE == CE,
        "size": len(packet),
        "print": crc32(packet[INNER_OFFSET:end]),
    }


def _described_rc(packet: Buffer, peeked: RcPeeked, destination: bytes, kind: str, base: int) -> About:
    _, traffic_class, _, qpn, psn, _, _, _, source, sport = peeked
    # Fields that the ICRC does not count may change on the way, the hop limit and the traffic class always.
    bth = base + IPV6_SIZE + UDP_SIZE
    end = bth + BTH_SIZE if kind == "data" else len(packet)
    mark = crc32(packet[base + _ADDRESSES : bth - _CHECKSUM_SIZE])
    mark = crc32(packet[bth + _RESERVED + 1 : end], crc32(packet[bth : bth + _RESERVED], mark))
    return {
        "kind": kind,
        "source": nic_of_address(source),
        "destination": nic_of_address(destination),
        "qpn": qpn,
        "psn": psn,
        "sport": sport,
        # RC's packets do not say that they were sent before: their first sender does.
        "rtx": False,
        "ce": traffic_class & CE == CE,
        "size": len(packet),
        "print": mark,
    }


def _described_lid(packet: Buffer, peeked: LrhPeeked, lmc: int, kind: str) -> About:
    _, mark, _, qpn, psn, *_ = peeked
    source, destination = slid_of(packet), dlid_of(packet)
    # The VL may change on the way, and FECN; the VCRC follows the VL.
    end = LRH_SIZE + BTH_SIZE if kind == "data" else -VCRC_SIZE
    print_ = crc32(packet[LRH_SIZE + _RESERVED + 1 : end], crc32(packet[1 : LRH_SIZE + _RESERVED]))
    numbers = [None if nic_of(lid, lmc) < 0 else nic_of(lid, lmc) for lid in (source, destination)]
    return {
        "kind": kind,
        "source": numbers[0],
        "destination": numbers[1],
        "qpn": qpn,
        "psn": psn,
        # The path: which of the destination's LIDs the packet goes to.
        "sport": destination & (1 << lmc) - 1,
        "dlid": destination,
        "sl": sl_of(packet),
        "rtx": False,
        "ce": mark == CE,
        "size": len(packet),
        "print": print_,
    }


def _answer_kind(said: About) -> str:
    """The kind of an acknowledgement of RC."""
    return "nack" if "wanted" in said else "ack"


def _said(packet: Buffer, opcode: int, psn: int) -> About:
    """What an acknowledgement of MRC says of PSNs."""
    if opcode == ACKNOWLEDGE:
        syndrome, msn = read_aeth(packet)
        return {"cack": psn, "syndrome": syndrome, "msn": msn}
    if opcode == NACK:
        reason, _, wanted, _ = read_nack(packet)
        return {"wanted": wanted, "reason": NACK_REASONS.get(reason, str(reason))}
    _, probe, offset, _, cack, _, base, bitmap, *_ = read_sack(packet)
    return {
        "cack": cack,
        "caused": None if probe else cack + offset & PSN_MASK,
        "base": cack + base & PSN_MASK,
        "bitmap": bitmap,
    }


def _said_rc(packet: Buffer, psn: int, start: int, selective: bool) -> About:
    """What an acknowledgement of RC says of PSNs. A NAK completes all before the PSN that it names."""
    said: About = {}
    if selective:
        syndrome, msn, said["caused"] = read_selective_aeth(packet, start)
    else:
        syndrome, msn = read_rc_aeth(packet, start)
    said |= {"cack": psn, "syndrome": syndrome, "msn": msn}
    kind = syndrome >> SYNDROME_KIND_SHIFT
    if kind in (KIND_NAK, KIND_RNR):
        name = "receiver_not_ready" if kind == KIND_RNR else NAK_NAMES.get(syndrome, f"0x{syndrome:02x}")
        said |= {"cack": psn - 1 & PSN_MASK, "wanted": psn, "reason": name}
    return said


def covers(about: About, psn: int) -> bool:
    """Whether an acknowledgement says that this PSN has arrived."""
    if "cack" not in about:
        return False
    if (about["cack"] - psn) & PSN_MASK <= PSN_MASK >> 1 or about.get("caused") == psn:
        return True
    place = (psn - about.get("base", 0)) & PSN_MASK
    return place < 64 and bool(about.get("bitmap", 0) >> place & 1)
