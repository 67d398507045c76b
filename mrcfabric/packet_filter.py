"""Which packets a tap or another observer shows: a filter on bytes at fixed places.

Owns the fields of a filter and the function that tests one packet. The function never raises, whatever bytes a peer has
sent. The packets come from `tap` and the drivers.

An empty field lets everything pass; a field with several values lets each of them pass; all fields must hold. A packet
with a segment routing header is read behind that header. A plain packet of RoCE, UET or InfiniBand has no plane and no
EV. Answers of UET name contexts and no QPs: whose they are is known from the first request that was seen of their
context.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from struct import Struct
from typing import Any, Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.lids import nic_of
from mrcfabric.naming import PLANES_MAX, nic_address, usid_fields
from mrcfabric.uet_ends import ContextEnds, UetSeen, is_uet
from mrcfabric.units import Buffer
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import Dscp, dscp_of
from mrcfabric.wire.entropy import EV_MAX, ev_from_wire
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    BTH_OFFSET,
    BTH_SIZE,
    DATA_OPCODES,
    ENDPOINT_QP,
    ENDPOINT_REQUEST,
    ENDPOINT_RESPONSE,
    EXTENSION_OFFSET,
    FLAG_RTX,
    INNER_DESTINATION,
    INNER_OFFSET,
    INNER_SOURCE,
    IPV6_SIZE,
    NACK,
    NEXT_HEADER_UDP,
    PROBE,
    QPN_MAX,
    SACK,
    UDP_OFFSET,
)
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import LRH_SIZE, MANAGEMENT_VL, dlid_of, slid_of, vl_of
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.wire.roce_layout import CNP, KIND_NAK, RC_ACK, RC_OPCODE_NAMES, SYNDROME_KIND_SHIFT
from mrcfabric.wire.uet_layout import ACK_CC, CONTROL, CONTROL_PROBE, FLAG_RETX, REQUESTS
from mrcfabric.wire.uet_layout import NACK as UET_NACK
from mrcfabric.wire.usid import ACTIVE_IN_PACKET

KINDS: Final = ("data", "ack", "sack", "nack", "probe", "endpoint", "trimmed", "rtx", "cnp", "control", "smp", "link")
"""The kinds a filter can name. `data`: whole data packets, first transmissions and retransmissions; `trimmed`: the rest
of a trimmed one; `rtx`: retransmissions among both; `ack`: transport acknowledgements, NAKs of RoCE included; `sack`:
acknowledgements with a bitmap, those of UET are `ack` too; `nack`: NAKs of RoCE, NACKs of MRC and UET; `cnp`: RoCE's
congestion notifications; `control`: UET's control packets, of which probes are `probe` too; `endpoint`: everything to
QP 2, a NIC's probes to itself included; `smp`: InfiniBand's management packets; `link`: link control frames, which have
no other field."""
VALUES_MAX: Final = 1024
"""Most values of one field."""
PORT_MAX: Final = 0xFFFF
NIC_MAX: Final = 1 << 24
"""Numbers of NICs are below this."""

Matches: TypeAlias = Callable[[Buffer], bool]

_KIND_OF_OPCODE: Final = {
    **dict.fromkeys(DATA_OPCODES, "data"),
    ACKNOWLEDGE: "ack",
    SACK: "sack",
    NACK: "nack",
    PROBE: "probe",
    ENDPOINT_REQUEST: "endpoint",
    ENDPOINT_RESPONSE: "endpoint",
}
_NEXT_HEADER: Final = 6
_LRH_EXTENSION: Final = LRH_SIZE + BTH_SIZE
_FLOW = Struct(">I")
_SOURCE_PORT = Struct(">H")
# BTH: opcode, byte of flags and padding, P_Key, DestQP word, PSN word.
_BTH = Struct(">BxHII")
assert _BTH.size == BTH_SIZE


@dataclass(frozen=True, slots=True)
class PacketFilter:
    """The conditions on a packet. The default lets everything pass. Raises ConfigError that names `filter.FIELD`."""

    ports: tuple[int, ...] = ()
    """Ports through which the packet leaves the node."""
    qps: tuple[tuple[int, int], ...] = ()
    """(number of the receiving NIC, QPN there). The two directions of a QP are two such pairs: its own NIC and number
    for what it receives, its peer's for what it sends."""
    peers: tuple[int, ...] = ()
    """Numbers of NICs: the packet comes from one of them or goes to one."""
    evs: tuple[int, ...] = ()
    """Entropy values it carries."""
    planes: tuple[int, ...] = ()
    """Planes of the packet's next uSID."""
    kinds: tuple[str, ...] = ()
    """See `KINDS`."""

    def __post_init__(self) -> None:
        for name, most in _WHOLE.items():
            _check_list(name, getattr(self, name), most)
        _check_length("qps", self.qps)
        for pair in self.qps:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ConfigError("filter.qps", f"{pair!r} is no pair", "wanted: [NIC, QPN]")
            _check_whole("qps", pair[0], NIC_MAX)
            _check_whole("qps", pair[1], QPN_MAX)
        _check_length("kinds", self.kinds)
        for kind in self.kinds:
            if kind not in KINDS:
                raise ConfigError("filter.kinds", f"{kind!r} is no kind of packet", "known: " + ", ".join(KINDS))

    @property
    def open(self) -> bool:
        """Whether every packet that leaves through one of `ports` passes, so that nobody needs to read its bytes."""
        return not (self.qps or self.peers or self.evs or self.planes or self.kinds)

    def settings(self) -> dict[str, Any]:
        """The fields that are not empty, as plain data: the inverse of `from_settings`."""
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_settings(cls, raw: object) -> "PacketFilter":
        """From a table of lists; None is the open filter. Raises ConfigError, also for an unknown field."""
        if raw is None:
            return cls()
        if not isinstance(raw, Mapping):
            raise ConfigError("filter", f"{raw!r} is no table of fields")
        known = [field.name for field in fields(cls)]
        values: dict[str, Any] = {}
        for name, value in raw.items():
            if name not in known:
                raise ConfigError(f"filter.{name}", "no such field", "known: " + ", ".join(known))
            if not isinstance(value, list | tuple):
                raise ConfigError(f"filter.{name}", f"{value!r} is no list")
            values[name] = tuple(tuple(one) if isinstance(one, list) else one for one in value)
        return cls(**values)

    def matcher(self, dscp: Dscp, options: WireOptions = DEFAULT_OPTIONS) -> Matches:
        """The function that tests a packet's bytes against all fields but `ports`. It never raises for them."""
        if self.open:
            return lambda _packet: True
        if options.lid_lmc >= 0:
            return self._lid_matcher(options.lid_lmc)
        qps = frozenset((nic_address(nic), qpn) for nic, qpn in self.qps)
        peers = frozenset(nic_address(nic) for nic in self.peers)
        evs, planes, kinds = frozenset(self.evs), frozenset(self.planes), frozenset(self.kinds)
        trimmed, order = dscp.trimmed_table(), options.ev_order
        matches_uet = self._matcher_uet(dscp)

        def matches(packet: Buffer) -> bool:
            """Test the cheapest field first; a packet too short for a field fails that field."""
            if isinstance(packet, ControlFrame):
                return link_alone
            length = len(packet)
            if length < IPV6_SIZE:
                return False
            plain = packet[_NEXT_HEADER] == NEXT_HEADER_UDP
            if plain and (pathed or is_uet(packet)):
                return not pathed and matches_uet(packet)
            if planes and usid_fields(int.from_bytes(packet[ACTIVE_IN_PACKET], "big"))[1] not in planes:
                return False
            # Offsets are those behind an outer header.
            skip = -INNER_OFFSET if plain else srh.SRH_SIZE if srh.follows(packet) else 0
            if length < skip + BTH_OFFSET + BTH_SIZE:
                return planes_alone
            destination = bytes(packet[skip + INNER_DESTINATION.start : skip + INNER_DESTINATION.stop])
            opcode, _, qp, psn = _BTH.unpack_from(packet, skip + BTH_OFFSET)
            if qps and (destination, qp & QPN_MAX) not in qps:
                return False
            if peers and destination not in peers:
                source = bytes(packet[skip + INNER_SOURCE.start : skip + INNER_SOURCE.stop])
                if source not in peers:
                    return False
            if evs:
                (flow,) = _FLOW.unpack_from(packet, skip + IPV6_SIZE)
                (source_port,) = _SOURCE_PORT.unpack_from(packet, skip + UDP_OFFSET)
                if ev_from_wire(flow, source_port, order) not in evs:
                    return False
            behind = packet[skip + EXTENSION_OFFSET : skip + EXTENSION_OFFSET + 1]
            return not kinds or not kinds.isdisjoint(_kinds(opcode, qp, psn, trimmed[dscp_of(packet)], behind))

        pathed = bool(planes or evs)
        link_alone = self._link_alone
        planes_alone = not (qps or peers or evs or kinds)
        return matches

    @property
    def _link_alone(self) -> bool:
        """Whether link control frames pass. They are no packets: none of their bytes are a field."""
        return "link" in self.kinds and not (self.qps or self.peers or self.evs or self.planes)

    def _lid_matcher(self, lmc: int) -> Matches:
        """`matcher` for packets that begin with an LRH."""
        qps, peers, kinds = frozenset(self.qps), frozenset(self.peers), frozenset(self.kinds)
        pathed, link_alone = bool(self.planes or self.evs), self._link_alone

        def matches(packet: Buffer) -> bool:
            if isinstance(packet, ControlFrame):
                return link_alone
            if pathed or len(packet) < LRH_SIZE + BTH_SIZE:
                return False
            opcode, _, qp, _ = _BTH.unpack_from(packet, LRH_SIZE)
            to = nic_of(dlid_of(packet), lmc)
            if qps and (to, qp & QPN_MAX) not in qps:
                return False
            if peers and to not in peers and nic_of(slid_of(packet), lmc) not in peers:
                return False
            return not kinds or not kinds.isdisjoint(_lid_kinds(packet, opcode))

        return matches

    def _matcher_uet(self, dscp: Dscp) -> Matches:
        """The same for packets of UET, and for all fields that these have."""
        qps = frozenset((nic_address(nic), qpn) for nic, qpn in self.qps)
        peers = frozenset(nic_address(nic) for nic in self.peers)
        kinds, trimmed, ends = frozenset(self.kinds), dscp.trimmed_table(), ContextEnds()

        def matches(packet: Buffer) -> bool:
            seen = ends.see(packet)
            if seen is None or (qps and (seen.destination, seen.qpn) not in qps):
                return False
            if peers and peers.isdisjoint((seen.destination, seen.source)):
                return False
            return not kinds or not kinds.isdisjoint(_uet_kinds(seen, trimmed[dscp_of(packet)]))

        return matches


def _kinds(opcode: int, qp: int, psn: int, trimmed: int, extension: Buffer) -> tuple[str, ...]:
    """Which of `KINDS` a packet is; none for an unknown opcode. `extension` is what follows its BTH."""
    if opcode in RC_OPCODE_NAMES:
        return _rc_kinds(opcode, extension)
    if qp & QPN_MAX == ENDPOINT_QP:
        return ("endpoint",)
    kind = _KIND_OF_OPCODE.get(opcode, "")
    if kind != "data":
        return (kind,)
    if trimmed:
        kind = "trimmed"
    return (kind, "rtx") if psn >> 24 & FLAG_RTX else (kind,)


def _rc_kinds(opcode: int, extension: Buffer) -> tuple[str, ...]:
    """Which of `KINDS` a packet of RoCE is."""
    if opcode != RC_ACK:
        return ("cnp" if opcode == CNP else "data",)
    nak = len(extension) > 0 and extension[0] >> SYNDROME_KIND_SHIFT == KIND_NAK
    return ("ack", "nack") if nak else ("ack",)


def _lid_kinds(packet: Buffer, opcode: int) -> tuple[str, ...]:
    """Which of `KINDS` a packet of InfiniBand is."""
    if vl_of(packet) == MANAGEMENT_VL:
        return ("smp",)
    if opcode not in RC_OPCODE_NAMES or opcode == CNP:
        return ()
    return _rc_kinds(opcode, packet[_LRH_EXTENSION : _LRH_EXTENSION + 1])


def _uet_kinds(seen: UetSeen, trimmed: int) -> tuple[str, ...]:
    """Which of `KINDS` a packet of UET is."""
    if seen.kind in REQUESTS:
        kind = "trimmed" if trimmed else "data"
        return (kind, "rtx") if seen.flags & FLAG_RETX else (kind,)
    if seen.kind == CONTROL:
        return ("control", "probe") if seen.following == CONTROL_PROBE else ("control",)
    if seen.kind == UET_NACK:
        return ("nack",)
    return ("ack", "sack") if seen.kind == ACK_CC else ("ack",)


_WHOLE: Final = {"ports": PORT_MAX, "peers": NIC_MAX, "evs": EV_MAX, "planes": PLANES_MAX - 1}


def _check_list(name: str, values: object, most: int) -> None:
    _check_length(name, values)
    assert isinstance(values, tuple)
    for value in values:
        _check_whole(name, value, most)


def _check_length(name: str, values: object) -> None:
    if not isinstance(values, tuple):
        raise ConfigError(f"filter.{name}", f"{values!r} is no list")
    if len(values) > VALUES_MAX:
        raise ConfigError(f"filter.{name}", f"{len(values)} values are too many", f"{VALUES_MAX} at most")


def _check_whole(name: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ConfigError(f"filter.{name}", f"{value!r} will not do", f"wanted: a whole number, 0 to {most}")
