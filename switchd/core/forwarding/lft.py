"""Forwarding by LID: a table from destination to port, and adaptive routing and local repair inside a group of ports.

Owns the table, which a subnet manager writes in blocks of 64 LIDs, and which port of the group a packet takes. A port
that has `1 << LMC` LIDs may be reached on as many ways, each of them fixed. What is below a switch is reached by one
port; all else by any of `group`, of which the table names one:

off      the packet takes the port that the table names.
packet   the port with the least to send; among equals the one after the port that was chosen last.
flowlet  as `packet`, but a flow (SLID, DLID, destination QP) that has not paused for `flowlet_ns` stays on its port.

What neighbours say of their own ways counts besides. A port of the group behind which a LID cannot be reached is left
out for it as long as another one is there (FLFN); one that is congested for it comes after all others for as long as
was said (ARN), where packets choose. What a neighbour has said is forgotten when the port towards it loses its carrier.

With `failover_ns` a port of the group that lost its carrier is left out so long afterwards, whatever the table says:
the first part of SHIELD, fast link fault recovery. Without it what the table sends there is lost.

Sources: IBTA 14.2.5.6 (linear forwarding tables), 18.2.4.3 (relay); SHIELD: documentation of NVIDIA.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.lrh import LEAST, LID_MAX
from mrcfabric.wire.routing_notice import CONGESTED, LOST, Notice
from switchd.core.events import EcmpMember

NO_PORT: Final = 0xFF
"""In a table: no way to this LID."""
BLOCK_LIDS: Final = 64
ADAPTIVE: Final = ("off", "packet", "flowlet")
FLOWS_MAX: Final = 1 << 16
"""Flows whose port is remembered; beyond it the switch forgets all."""


@dataclass(frozen=True, slots=True)
class LftConfig:
    """The table of one switch. Raises ConfigError."""

    table: bytes
    """By LID, from 0 on: the port, or `NO_PORT`."""
    group: tuple[int, ...] = ()
    """Ports that lead to the same destinations, as the up-links of a fat tree do."""
    adaptive: str = "off"
    flowlet_ns: int = 0
    """For how long a flow must pause to take another port."""
    failover_ns: int = -1
    """How long after a loss of carrier, or its return, the group changes; negative: never."""

    def __post_init__(self) -> None:
        if len(self.table) > LID_MAX + 1:
            raise ConfigError("lft.table", f"{len(self.table)} LIDs", f"at most {LID_MAX + 1}")
        if len(set(self.group)) != len(self.group):
            raise ConfigError("lft.group", f"a port stands twice in {self.group}")
        if self.adaptive not in ADAPTIVE:
            raise ConfigError("lft.adaptive", f"{self.adaptive!r} will not do", "one of " + ", ".join(ADAPTIVE))
        if self.flowlet_ns < 0:
            raise ConfigError("lft.flowlet_ns", f"{self.flowlet_ns} will not do", "nanoseconds, from 0")


class LftForwarding:
    """The forwarding of one switch."""

    def __init__(self, config: LftConfig, ports: int) -> None:
        self.config = config
        self.table = bytearray(config.table)
        self.load: Callable[[Instant, int], int] = lambda _at, _port: 0
        """How much a port has to send; the switch says so once it has ports."""
        self._members = frozenset(config.group)
        self._living = config.group
        self._turn = 0
        """Where in the group the port stands that was chosen last, and one more."""
        self._flows: dict[bytes, tuple[int, Instant]] = {}
        self._dead: set[int] = set()
        self._avoided: dict[int, int] = {}
        """By LID: bit p: the neighbour behind port p has no way to it."""
        self._congested: dict[int, dict[int, Instant]] = {}
        """By LID and port: until when the neighbour behind it holds its way to be congested."""
        self._changes: list[tuple[Instant, int, bool]] = []
        self.next_change_ns: Instant = NEVER
        """`Forwarding.next_change_ns`."""
        self._routed = [0] * ports
        self.moves = 0
        """How often the group has changed."""

    def set_block(self, number: int, ports: bytes) -> None:
        """Write the entries of LIDs from `64 * number` on; the table grows as far as is needed."""
        start = number * BLOCK_LIDS
        missing = start + len(ports) - len(self.table)
        if missing > 0:
            self.table += bytes((NO_PORT,)) * missing
        self.table[start : start + len(ports)] = ports

    def route(self, at_ns: Instant, in_port: int, packet: Buffer) -> tuple[int, Buffer] | str:
        """`Forwarding.route`."""
        if len(packet) < LEAST:
            return "short"
        lid = packet[2] << 8 | packet[3]
        table = self.table
        port = table[lid] if lid < len(table) else NO_PORT
        if port >= len(self._routed):
            return "no_route"
        if port in self._members:
            living = self._living
            if lid in self._avoided:
                mask = self._avoided[lid]
                # With no way left anywhere a packet goes where the table says.
                living = tuple(one for one in living if not mask >> one & 1) or living
            if self.config.adaptive != "off" and len(living) > 1:
                port = self._choose(at_ns, packet, lid, living)
            elif port not in living and living:
                port = living[lid % len(living)]
        self._routed[port] += 1
        return port, packet

    def _choose(self, at_ns: Instant, packet: Buffer, lid: int, living: tuple[int, ...]) -> int:
        """The port for a packet, of these members of the group."""
        if self.config.adaptive == "packet":
            return self._least(at_ns, lid, living)
        # DLID; SLID; the QP, whose byte in front may change on the way.
        flow = bytes(packet[2:4]) + bytes(packet[6:8]) + bytes(packet[13:16])
        port, last_ns = self._flows.get(flow, (NO_PORT, 0))
        if port not in living or at_ns - last_ns > self.config.flowlet_ns:
            port = self._least(at_ns, lid, living)
            if len(self._flows) >= FLOWS_MAX:
                self._flows.clear()
        self._flows[flow] = port, at_ns
        return port

    def _least(self, at_ns: Instant, lid: int, living: tuple[int, ...]) -> int:
        count = len(living)
        places = [(self._turn + step) % count for step in range(count)]
        if lid in self._congested:
            until = self._congested[lid]
            place = min(places, key=lambda one: (until.get(living[one], at_ns) > at_ns, self.load(at_ns, living[one])))
        else:
            place = min(places, key=lambda one: self.load(at_ns, living[one]))
        self._turn = (place + 1) % count
        return living[place]

    def heard(self, at_ns: Instant, port: int, notice: Notice) -> int:
        """A neighbour says how it stands with its ways; returns for how many LIDs that changes which ports are left."""
        if port not in self._members:
            return 0
        bit, changed = 1 << port, 0
        for first, count in notice.ranges:
            for lid in range(first, first + count):
                if notice.kind == CONGESTED:
                    self._congested.setdefault(lid, {})[port] = at_ns + notice.hold_ns
                    continue
                before = self._avoided.get(lid, 0)
                after = before | bit if notice.kind == LOST else before & ~bit
                changed += before != after
                self._avoid(lid, after)
        return changed

    def _avoid(self, lid: int, mask: int) -> None:
        if mask:
            self._avoided[lid] = mask
        else:
            self._avoided.pop(lid, None)

    @property
    def avoided(self) -> int:
        """For how many LIDs a port is left out."""
        return len(self._avoided)

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """`Forwarding.carrier`: the group follows after `failover_ns`, if it does at all."""
        if not up:
            for lid, mask in [*self._avoided.items()]:
                self._avoid(lid, mask & ~(1 << port))
            for said in self._congested.values():
                said.pop(port, None)
        if self.config.failover_ns < 0 or port not in self._members:
            return
        self._changes.append((at_ns + self.config.failover_ns, port, up))
        self.next_change_ns = self._changes[0][0]

    def follow(self, at_ns: Instant) -> list[EcmpMember]:
        """`Forwarding.follow`."""
        told = []
        while self._changes and self._changes[0][0] <= at_ns:
            change_ns, port, up = self._changes.pop(0)
            (self._dead.discard if up else self._dead.add)(port)
            living = tuple(member for member in self.config.group if member not in self._dead)
            if living != self._living:
                self._living = living
                self._turn = 0
                self.moves += 1
                told.append(EcmpMember(change_ns, port, up, len(living)))
        self.next_change_ns = self._changes[0][0] if self._changes else NEVER
        return told

    @property
    def living(self) -> tuple[int, ...]:
        """The members of the group as it is now."""
        return self._living

    def chosen(self, packet: Buffer) -> dict[str, Any] | None:
        """`Forwarding.chosen`: nothing hashes here."""
        return None

    def counters(self) -> dict[str, Any]:
        """`lft` {port: packets}, and `group_moves`."""
        return {"lft": dict(enumerate(self._routed)), "group_moves": self.moves}
