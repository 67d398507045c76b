"""Writes down, as statements, what a node does with the packets that are followed.

Owns how it recognises a followed packet by its bytes, what a statement says, and how many statements it keeps. `choice`
says which packets are followed. Ports (`egress`), switches and NICs tell the witness what they do, and
`orchestrator.tracing` joins the statements of many nodes into the way of one packet. A witness changes nothing that it
sees: the event trace of a node is the same with and without it.

A statement is a table with its number `n` (from 1), `at_ns`, and `step`:

    offer   a packet wants to leave by `port`: `data_bytes` and `control_bytes` wait there already, by class, and the
            wire is busy for `wire_ns` more; `verdict` is `queued`, `trimmed`, or why it was refused. With `packet`,
            and at the NIC that sends data again, `cause`
    depart  the packet of statement `of` starts; its last bit is at the peer at `arrival_ns`; `marked`: CE was set here
    carry   a fault of the link acted on it: `lost` names the fault that lost it, or `touched` lists what faults did
    drop    it never reached a port: `reason`. With `packet`
    take    a NIC has dealt with it: `verdict`. With `packet`

`packet` is {kind, source, destination (numbers of NICs, or None), qpn, psn, ev, rtx, ce, size, print}; `print` is a
number that stays the same all the way; two packets that were sent separately almost never share it. A SACK adds
{cack, caused (None: a probe), base, bitmap}, a NACK {reason}, a transport acknowledgement {syndrome, msn}. An
acknowledgement is followed when its bitmap shows a followed PSN, when a followed PSN caused it, or when one is among
the last `REACH` that it completes.
"""

from collections import deque
from typing import Any, Final
from zlib import crc32

from mrcfabric.choice import Choice, Chooser
from mrcfabric.naming import nic_of_address
from mrcfabric.node import Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import CE, Dscp, ecn_of
from mrcfabric.wire.fastpath import Peeked, peeker, read_aeth, read_nack, read_sack
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    EXTENSION_OFFSET,
    FLAG_RTX,
    INNER_DESTINATION,
    INNER_OFFSET,
    NACK,
    NACK_REASONS,
    PSN_MASK,
    SACK,
)
from mrcfabric.wire.layout import DATA_OPCODES as DATA
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

STATEMENTS_MAX: Final = 16_384
"""Most statements kept for the reader; beyond it the oldest is dropped and counted in `lost`."""
WAITING_MAX: Final = 4096
"""Most packets in queues whose departure has not been told yet."""
REACH: Final = 64
KINDS: Final = {SACK: "sack", ACKNOWLEDGE: "ack", NACK: "nack"}


class Witness:
    """The statements of one node. The driver of a core makes it and hands it to the core's `set_witness`."""

    def __init__(self, choice: Choice, dscp: Dscp, options: WireOptions = DEFAULT_OPTIONS) -> None:
        self.chooser = Chooser(choice)
        self.lost = 0
        """Statements that were dropped before anybody read them."""
        self._peek = peeker(dscp, options=options)
        self._ends = self.chooser.ends
        self._statements: deque[dict[str, Any]] = deque()
        self._last = 0
        self._told = 0
        self._waiting: dict[int, tuple[Any, int, bool]] = {}
        """id() of a packet -> (the packet, which keeps the id valid; number of its offer; whether it came marked)."""
        self._again: tuple[Buffer, str] = (b"", "")
        """The packet that a NIC has built to send again and offers to its port next, and the cause."""
        self._departed = (0, 0)
        """Of the latest departure: number of its offer (0: that packet is not followed), and when it was."""

    # What the node tells.

    def look(self, packet: Buffer) -> dict[str, Any] | None:
        """The `packet` of a statement about this packet if it is followed, else None. Never raises."""
        if srh.follows(packet):
            stripped = srh.strip(packet)
            if stripped is None:
                return None
            packet = stripped
        if self._ends and bytes(packet[INNER_DESTINATION]) not in self._ends:
            return None
        peeked = self._peek(packet)
        if peeked[0] is not None:
            return None
        source, destination = peeked[9], bytes(packet[INNER_DESTINATION])
        opcode, qpn, psn = peeked[2], peeked[4], peeked[5]
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

    def sent_again(self, packet: Buffer, cause: str) -> None:
        """A NIC has built a packet again for this cause, and offers this very object to its port next."""
        self._again = packet, cause

    def offered(
        self, at_ns: Instant, port: int, packet: Buffer, found: tuple[int, int, int], verdict: str,
        waits: Buffer | None,
    ) -> None:  # fmt: skip
        """A packet came to a port. `found`: waiting bytes of data and of control, and for how long the wire is busy.

        `waits`: the object that is in the queue now; None: the packet was refused.
        """
        about = self.look(packet)
        if about is None:
            return
        statement = {"at_ns": at_ns, "step": "offer", "port": port, "verdict": verdict, "packet": about}
        statement |= dict(zip(("data_bytes", "control_bytes", "wire_ns"), found, strict=True))
        if packet is self._again[0]:
            statement["cause"] = self._again[1]
        number = self._state(statement)
        if waits is not None:
            if len(self._waiting) >= WAITING_MAX:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[id(waits)] = (waits, number, about["ce"])

    def departed(self, start_ns: Instant, transmit: Transmit) -> None:
        """A port has begun to send a packet. Writes a statement if the packet is followed."""
        entry = self._waiting.pop(id(transmit.packet), None)
        self._departed = (0 if entry is None else entry[1], start_ns)
        if entry is not None:
            marked = not entry[2] and ecn_of(transmit.packet) == CE
            statement = {"at_ns": start_ns, "step": "depart", "of": entry[1], "arrival_ns": transmit.arrival_ns}
            self._state({**statement, "marked": marked})

    def carried(self, lost: str | None, touched: list[str]) -> None:
        """Tells what faults of the link did to the packet that departed last."""
        number, at_ns = self._departed
        if number and (lost is not None or touched):
            statement: dict[str, Any] = {"at_ns": at_ns, "step": "carry", "of": number}
            self._state(statement | ({"touched": touched} if lost is None else {"lost": lost}))

    def dropped(self, at_ns: Instant, packet: Buffer, reason: str) -> None:
        """The node dropped a packet before it reached a port."""
        about = self.look(packet)
        if about is not None:
            self._state({"at_ns": at_ns, "step": "drop", "reason": reason, "packet": about})

    def taken(self, at_ns: Instant, about: dict[str, Any], verdict: str) -> None:
        """A NIC has dealt with a packet."""
        self._state({"at_ns": at_ns, "step": "take", "verdict": verdict, "packet": about})

    # What others ask.

    def after(self, since: int, limit: int) -> dict[str, Any]:
        """At most `limit` statements after number `since`; forgets those up to `since`, which have been read.

        `last` is the next `since` to ask with, `lost` counts dropped statements, `more` says whether others wait.
        """
        statements = self._statements
        while statements and statements[0]["n"] <= since:
            statements.popleft()
        found = [statement for statement, _ in zip(statements, range(limit), strict=False)]
        last = found[-1]["n"] if found else max(since, self._last)
        self._told = max(self._told, min(last, self._last))
        return {"statements": found, "last": last, "lost": self.lost, "more": len(found) < len(statements)}

    def _state(self, statement: dict[str, Any]) -> int:
        self._last += 1
        self._statements.append({"n": self._last, **statement})
        if len(self._statements) > STATEMENTS_MAX:
            self.lost += self._statements.popleft()["n"] > self._told
        return self._last

    def _speaks(self, said: dict[str, Any], source: bytes, destination: bytes) -> bool:
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


def _described(packet: Buffer, peeked: Peeked, destination: bytes, kind: str) -> dict[str, Any]:
    _, traffic_class, _, flags, qpn, psn, ev, _, _, source = peeked
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


def _said(packet: Buffer, opcode: int, psn: int) -> dict[str, Any]:
    """What an acknowledgement says of PSNs."""
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


def covers(about: dict[str, Any], psn: int) -> bool:
    """Whether an acknowledgement says that this PSN has arrived."""
    if "cack" not in about:
        return False
    if (about["cack"] - psn) & PSN_MASK <= PSN_MASK >> 1 or about.get("caused") == psn:
        return True
    place = (psn - about.get("base", 0)) & PSN_MASK
    return place < 64 and bool(about.get("bitmap", 0) >> place & 1)
