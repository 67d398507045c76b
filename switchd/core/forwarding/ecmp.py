"""Equal-cost multipath: a packet goes to the NIC that its address names, by one of several up-links that a hash picks.

Owns the table (arithmetic over NIC numbers, nothing per NIC), the two hashes, and which members of a group live. One
flow keeps one member while the group stays as it is (RFC 2992). The hash is over
source and destination address, next header and both UDP ports, with a seed.

- `mix`: a 64-bit finaliser over all words. Seeds make switches independent of one another.
- `crc`: CRC-32 whose seed is XORed in at the end. CRC is linear, so two switches with groups of the same size (a power
  of two) pick alike but for a fixed exchange of members: the second one uses one member per member of the first.

Only up-links are a group. A packet towards a port that is dead has no other way, and is lost behind it.
"""

from dataclasses import dataclass, replace
from struct import Struct, error
from typing import Any, Final
from zlib import crc32

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_address
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, IPV6_SIZE, NEXT_HEADER_UDP
from switchd.core.events import EcmpMember

FLOWS_MAX: Final = 1 << 16
"""Flows whose hash is remembered; beyond it the switch forgets all and computes again, which changes no choice."""

# Version and class; next header; hop limit; the two halves of the destination.
_LOOK: Final = Struct(">H4xBB16xQQ")
# Version and class; next header; hop limit; addresses and UDP ports.
_KNOWN: Final = Struct(">H4xBB36s")
_WORDS: Final = Struct(">QQQQ")
_PORTS: Final = Struct(">HH")
_ADDRESSES_OFFSET: Final = 8
_FLOW_END: Final = IPV6_SIZE + _PORTS.size
_CLASS_SHIFT: Final = 12
_VERSION: Final = 6
_NIC_PREFIX: Final = int.from_bytes(nic_address(0)[:8], "big")
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class EcmpConfig:
    """The table of one switch and how it chooses. Raises ConfigError.

    NICs `first` to `first + len(down) * nics_per_port - 1` are below the switch, `nics_per_port` behind each of `down`;
    all others of the fabric are behind any of `up`.
    """

    nics: int
    """NICs of the fabric; addresses of others have no route."""
    first: int
    down: tuple[int, ...]
    nics_per_port: int
    up: tuple[int, ...] = ()
    seed: int = 0
    """64 bits."""
    common_seed: int = 0
    """That of every switch while hashes are polarised."""
    crc: bool = False
    """The linear hash instead of the mixing one."""
    resilient: bool = False
    """A dead member moves its own flows only; otherwise a hash modulo the number of living members moves most."""
    failover_ns: int = -1
    """How long after a loss of carrier, or its return, the group changes; negative: never."""

    def __post_init__(self) -> None:
        if self.nics_per_port < 1 or self.nics < 1 or self.first < 0:
            raise ConfigError("ecmp", f"{self.nics} NICs from {self.first}, {self.nics_per_port} per port")
        if len({*self.down, *self.up}) != len(self.down) + len(self.up):
            raise ConfigError("ecmp", f"a port stands twice among {self.down} and {self.up}")


class EcmpForwarding:
    """The forwarding of one switch."""

    def __init__(self, config: EcmpConfig) -> None:
        self.config = config
        self._routed = [0] * (1 + max((*config.down, *config.up), default=0))
        """By port: packets sent there."""
        self.moves = 0
        """How often the group has changed."""
        self._living = config.up
        self._dead: set[int] = set()
        self._changes: list[tuple[Instant, int, bool]] = []
        """Changes of carrier that the group does not follow yet: instant at which it does, port, up."""
        self.next_change_ns: Instant = NEVER
        """`Forwarding.next_change_ns`."""
        self._flows: dict[bytes, int] = {}
        """Addresses and UDP ports of a flow -> its port; UDP over IPv6 only."""
        self._below = len(config.down) * config.nics_per_port
        self._own_seed = config.seed
        self._before: tuple[Instant, int, dict[bytes, int]] = (-1, config.seed, self._flows)
        """When the seed was last set, and what was so before that instant: the seed, and the flows remembered."""

    def route(self, at_ns: Instant, in_port: int, packet: Buffer) -> tuple[int, Buffer] | str:
        """`Forwarding.route`."""
        try:
            head, next_header, hop_limit, flow = _KNOWN.unpack_from(packet)
            port = self._flows[flow]
        except (error, KeyError):
            return self._find(packet)
        if next_header != NEXT_HEADER_UDP or hop_limit <= 1 or head >> _CLASS_SHIFT != _VERSION:
            return self._find(packet)
        return self._pass(packet, hop_limit, port)

    def _find(self, packet: Buffer) -> tuple[int, Buffer] | str:
        """Route a packet of a flow that is new, or one that is unusual."""
        if len(packet) < IPV6_SIZE:
            return "short"
        head, next_header, hop_limit, prefix, number = _LOOK.unpack_from(packet)
        if head >> _CLASS_SHIFT != _VERSION:
            return "not_ipv6"
        number -= 1
        if prefix != _NIC_PREFIX or not 0 <= number < self.config.nics:
            return "no_route"
        if hop_limit <= 1:
            return "hop_limit"
        flow = bytes(packet[_ADDRESSES_OFFSET:_FLOW_END])
        below = number - self.config.first
        if 0 <= below < self._below:
            port = self.config.down[below // self.config.nics_per_port]
        else:
            port = self._choose(flow, next_header)
            if port < 0:
                return "no_route"
        if next_header == NEXT_HEADER_UDP and len(flow) == _FLOW_END - _ADDRESSES_OFFSET:
            if len(self._flows) >= FLOWS_MAX:
                self._flows.clear()
            self._flows[flow] = port
        return self._pass(packet, hop_limit, port)

    def _pass(self, packet: Buffer, hop_limit: int, port: int) -> tuple[int, Buffer]:
        """Take a hop off the packet, or off a copy of one that cannot be written."""
        self._routed[port] += 1
        try:
            # RFC 8200 3
            packet[HOP_LIMIT_OFFSET] = hop_limit - 1  # type: ignore[index]
        except TypeError:
            packet = bytearray(packet)
            packet[HOP_LIMIT_OFFSET] = hop_limit - 1
        return port, packet

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """`Forwarding.carrier`: the group follows after `failover_ns`, if it does at all."""
        if self.config.failover_ns < 0 or port not in self.config.up:
            return
        self._changes.append((at_ns + self.config.failover_ns, port, up))
        self.next_change_ns = self._changes[0][0]

    def set_common(self, at_ns: Instant, common: bool) -> tuple[int, int] | None:
        """Hash with the common seed or with the own one from `at_ns` on. None: that was so just before this instant.

        Returns how many flows towards up-links were remembered, and how many of them leave by another one now. Of
        several calls at one instant the last one counts.
        """
        if self._before[0] != at_ns:
            self._before = at_ns, self.config.seed, self._flows
        _, seed_before, flows_before = self._before
        seed = self.config.common_seed if common else self._own_seed
        self.config = replace(self.config, seed=seed)
        if seed == seed_before:
            self._flows = flows_before
            return None
        self._flows = {}
        hashed = [(flow, port) for flow, port in flows_before.items() if port in self.config.up]
        living = bool(self._living)
        moved = sum(living and self._choose(flow, NEXT_HEADER_UDP) != port for flow, port in hashed)
        return len(hashed), moved

    @property
    def living(self) -> tuple[int, ...]:
        """The members of the group as it is now."""
        return self._living

    def chosen(self, packet: Buffer) -> dict[str, Any] | None:
        """`Forwarding.chosen`: the living up-links, and the hash by which one of them was picked."""
        _, next_header, _, _, number = _LOOK.unpack_from(packet)
        if 0 <= number - 1 - self.config.first < self._below:
            return None
        value = self._hash(bytes(packet[_ADDRESSES_OFFSET:_FLOW_END]), next_header)
        return {"members": list(self._living), "hash": value}

    def counters(self) -> dict[str, Any]:
        """`ecmp` {up-link: packets that the hash sent there}, and `ecmp_moves`."""
        return {"ecmp": {port: self._routed[port] for port in self.config.up}, "ecmp_moves": self.moves}

    def follow(self, at_ns: Instant) -> list[EcmpMember]:
        """`Forwarding.follow`."""
        told = []
        while self._changes and self._changes[0][0] <= at_ns:
            change_ns, port, up = self._changes.pop(0)
            (self._dead.discard if up else self._dead.add)(port)
            living = tuple(member for member in self.config.up if member not in self._dead)
            if living != self._living:
                self._living = living
                self.moves += 1
                self._flows.clear()
                told.append(EcmpMember(change_ns, port, up, len(living)))
        self.next_change_ns = self._changes[0][0] if self._changes else NEVER
        return told

    def _choose(self, flow: bytes, next_header: int) -> int:
        """The up-link of a flow; negative: there is none."""
        return self._member(self._hash(flow, next_header)) if self._living else -1

    def _hash(self, flow: bytes, next_header: int) -> int:
        """The hash of a flow, by which `_member` picks."""
        udp = next_header == NEXT_HEADER_UDP and len(flow) == _FLOW_END - _ADDRESSES_OFFSET
        ports = flow[-_PORTS.size :] if udp else bytes(_PORTS.size)
        addresses = flow[: _WORDS.size]
        if self.config.crc:
            return crc32(addresses + bytes((next_header,)) + ports) ^ self.config.seed & 0xFFFF_FFFF
        words = *_WORDS.unpack(addresses), next_header << 32 | int.from_bytes(ports, "big")
        return mixed(self.config.seed, words)

    def _member(self, value: int) -> int:
        """The member that a hash picks among the living."""
        if self.config.resilient:
            port = self.config.up[value % len(self.config.up)]
            if port not in self._dead:
                return port
            value //= len(self.config.up)
        return self._living[value % len(self._living)]


def mixed(seed: int, words: tuple[int, ...]) -> int:
    """64 bits that depend on every bit of the seed and of the words (of 64 bits each) in their order."""
    # Steele, Lea, Flood 2014: the finaliser of splitmix64, after each word.
    value = seed
    for word in words:
        value = (value ^ word) + 0x9E3779B97F4A7C15 & _MASK
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
        value ^= value >> 31
    return value
