"""A wire that does what a test tells it: lose, cut, mark, hold back, double or change the n-th packet that matches.

Owns the rules and the record of everything that passed. A `Wire` is a node like any other (`mrcfabric.node`) with two
sides of `planes` ports each: ports 0 .. planes-1 face end a, the ones after them end b. Who stands at the ends, and
what is posted there, is `ladder`'s.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final, TypeAlias

from mrcfabric.node import Input, Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import Dscp, mark_ce
from mrcfabric.wire.fastpath import (
    peeker,
    read_aeth,
    read_data,
    read_data_ts,
    read_imm,
    read_nack,
    read_probe,
    read_sack,
)
from mrcfabric.wire.icrc import seal
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    DATA_OPCODES,
    FLAG_A,
    FLAG_RTX,
    FLAG_TS,
    IMM_OPCODES,
    NACK,
    NACK_REASONS,
    OPCODE_NAMES,
    PROBE,
    PSN_MASK,
    SACK,
)
from mrcfabric.wire.trim import TRIM_BYTES_DEFAULT, trim

AB: Final = "ab"
BA: Final = "ba"
DATA: Final = DATA_OPCODES
"""For `opcode=` of a rule: any data packet."""

Fate: TypeAlias = Callable[["Seen", "Wire"], list[tuple[int, Buffer]]]
"""What becomes of a packet: (extra delay, packet) for each copy that goes on."""


@dataclass(slots=True)
class Seen:
    """One packet on the wire, as it came."""

    at_ns: Instant
    direction: str
    """"ab" or "ba"."""
    plane: int
    opcode: int
    psn: int
    """As in the BTH, 24 bits."""
    number: int
    """Of a data packet: how many PSNs after the first of its direction; -1 for others."""
    flags: int
    ev: int
    start: int
    size: int
    """Payload bytes."""
    packet: Buffer
    fate: str = "passed"

    @property
    def rtx(self) -> bool:
        return bool(self.flags & FLAG_RTX)

    @property
    def a(self) -> bool:
        return bool(self.flags & FLAG_A)

    @property
    def _data(self) -> tuple[int, ...]:
        """(RQMSN, MSN, VA, R_Key, DMALen)"""
        if self.flags & FLAG_TS:
            rqmsn, msn, _, _, *rest = read_data_ts(self.packet)
            return (rqmsn, msn, *rest)
        return read_data(self.packet)

    @property
    def rqmsn(self) -> int:
        return self._data[0]

    @property
    def msn(self) -> int:
        """Of a data packet its message, of a transport ACK the number of messages."""
        return read_aeth(self.packet)[1] if self.opcode == ACKNOWLEDGE else self._data[1]

    @property
    def va(self) -> int:
        return self._data[2]

    @property
    def length(self) -> int:
        """DMALen: bytes of the whole message."""
        return self._data[4]

    @property
    def imm(self) -> int | None:
        return read_imm(self.packet, self.start) if self.opcode in IMM_OPCODES else None

    @property
    def sack(self) -> tuple[int, ...]:
        """As `read_sack` has it: m, pr, ack_psn_offset, entropy, cack, mpr, sack_offset, bitmap, ..."""
        assert self.opcode == SACK
        return read_sack(self.packet)

    @property
    def reason(self) -> str:
        """Of a NACK."""
        assert self.opcode == NACK
        reason = read_nack(self.packet)[0]
        return NACK_REASONS.get(reason, str(reason))

    @property
    def syndrome(self) -> int:
        """Of a transport ACK."""
        assert self.opcode == ACKNOWLEDGE
        return read_aeth(self.packet)[0]

    @property
    def probe_id(self) -> int:
        assert self.opcode == PROBE
        return read_probe(self.packet)[0]

    def __str__(self) -> str:
        """One rung of the ladder."""
        arrow = "a -> b" if self.direction == AB else "a <- b"
        which = f"#{self.number}" if self.number >= 0 else f"psn {self.psn}"
        flags = "".join(name for name, on in ((" rtx", self.rtx), (" A", self.a)) if on)
        name = OPCODE_NAMES.get(self.opcode, hex(self.opcode))
        return f"{self.at_ns:>9} {arrow} p{self.plane} {name} {which}{flags} {self.size} B: {self.fate}"


@dataclass(slots=True)
class Rule:
    """Which packets, which of them, and what becomes of those."""

    what: str
    fate: Fate
    match: Callable[[Seen], bool]
    first: int
    """The first match that it concerns, from 1."""
    last: int
    seen: int = 0
    hits: int = 0
    """How many packets it has concerned."""

    def applies(self, packet: Seen) -> bool:
        if not self.match(packet):
            return False
        self.seen += 1
        if not self.first <= self.seen <= self.last:
            return False
        self.hits += 1
        return True


def _within(wanted: Any, value: int) -> bool:
    return wanted is None or (value in wanted if isinstance(wanted, Iterable) else value == wanted)


class Wire:
    """A programmable link bundle between ends a and b; see the module text."""

    def __init__(self, name: str, planes: int, delay_ns: int, dscp: Dscp | None = None) -> None:
        """`delay_ns`: how long every packet is under way inside, one way."""
        self.name = name
        self.now_ns: Instant = 0
        self.planes = planes
        self.delay_ns = delay_ns
        self.dscp = dscp or Dscp()
        self.seen: list[Seen] = []
        """Everything that came in, in order of arrival."""
        self.rules: list[Rule] = []
        self.first_psn = {AB: 0, BA: 0}
        self._peek = peeker(self.dscp)
        self._held: list[tuple[Instant, int, int, Buffer]] = []
        self._sequence = 0

    # -- rules: the first one that applies decides

    def drop(self, **which: Any) -> Rule:
        """Lose packets. `which` as in `rule`."""
        return self.rule("dropped", lambda seen, wire: [], **which)

    def trim(self, last_hop: bool = False, **which: Any) -> Rule:
        """Cut packets as a switch does; `last_hop`: as the T0 above the receiver does."""
        dscp = self.dscp.trimmed_lasthop if last_hop else self.dscp.trimmed
        return self.rule("trimmed", lambda seen, wire: [(0, trim(seen.packet, TRIM_BYTES_DEFAULT, dscp))], **which)

    def mark(self, **which: Any) -> Rule:
        """Set CE."""

        def marked(seen: Seen, wire: Wire) -> list[tuple[int, Buffer]]:
            packet = bytearray(seen.packet)
            mark_ce(packet)
            return [(0, packet)]

        return self.rule("marked", marked, **which)

    def delay(self, by_ns: int, **which: Any) -> Rule:
        """Hold packets back."""
        return self.rule(f"held for {by_ns} ns", lambda seen, wire: [(by_ns, seen.packet)], **which)

    def duplicate(self, after_ns: int = 0, copies: int = 1, **which: Any) -> Rule:
        """Deliver packets once more, `after_ns` later each time."""

        def copied(seen: Seen, wire: Wire) -> list[tuple[int, Buffer]]:
            return [(number * after_ns, bytearray(seen.packet)) for number in range(copies + 1)]

        return self.rule("doubled", copied, **which)

    def change(self, edit: Callable[[bytearray], None], **which: Any) -> Rule:
        """Let `edit` change packets; the ICRC is made good again."""

        def edited(seen: Seen, wire: Wire) -> list[tuple[int, Buffer]]:
            packet = bytearray(seen.packet)
            edit(packet)
            seal(packet)
            return [(0, packet)]

        return self.rule("changed", edited, **which)

    def rule(
        self,
        what: str,
        fate: Fate,
        *,
        direction: str | None = None,
        opcode: int | Iterable[int] | None = None,
        psn: int | Iterable[int] | None = None,
        number: int | Iterable[int] | None = None,
        plane: int | Iterable[int] | None = None,
        rtx: bool | None = None,
        where: Callable[[Seen], bool] | None = None,
        nth: int | None = None,
        first: int = 1,
        times: int | None = None,
    ) -> Rule:
        """A rule of one's own: `nth` match only, or from the `first` on, at most `times`.

        `psn` is what the packet says, `number` counts data packets' PSNs from the first one of their direction.
        """

        def match(seen: Seen) -> bool:
            return (
                (direction is None or seen.direction == direction)
                and _within(opcode, seen.opcode)
                and _within(psn, seen.psn)
                and _within(number, seen.number)
                and _within(plane, seen.plane)
                and (rtx is None or seen.rtx == rtx)
                and (where is None or where(seen))
            )

        begin = first if nth is None else nth
        end = begin if nth is not None else begin + (1 << 60 if times is None else times) - 1
        rule = Rule(what, fate, match, begin, end)
        self.rules.append(rule)
        return rule

    # -- as a node

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        for at_ns, _, port, _, packet in inputs:
            self._pass(at_ns, port, packet)
        out: list[Transmit] = []
        # A packet leaves `delay_ns` before it arrives, so that no driver sees it come too soon.
        while self._held and self._held[0][0] <= until:
            at_ns, _, port, packet = heappop(self._held)
            out.append((port, at_ns + self.delay_ns, packet))
        self.now_ns = until
        return out

    def next_timeout(self) -> Instant | None:
        return self._held[0][0] if self._held else None

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return {"packets": len(self.seen)}

    def _pass(self, at_ns: Instant, port: int, packet: Buffer) -> None:
        direction = AB if port < self.planes else BA
        plane = port if direction == AB else port - self.planes
        fault, _, opcode, flags, _, psn, ev, start, size, *_ = self._peek(packet)
        assert fault is None, f"a {fault} packet came out of a core"
        number = (psn - self.first_psn[direction]) & PSN_MASK if opcode in DATA_OPCODES else -1
        seen = Seen(at_ns, direction, plane, opcode, psn, number, flags, ev, start, size, packet)
        self.seen.append(seen)
        copies = [(0, packet)]
        for rule in self.rules:
            if rule.applies(seen):
                seen.fate = rule.what
                copies = rule.fate(seen, self)
                break
        outlet = port + self.planes if direction == AB else plane
        for later_ns, copy in copies:
            self._sequence += 1
            heappush(self._held, (at_ns + later_ns, self._sequence, outlet, copy))
