"""The settings of a switch that an operator may change, and the configuration of one switch.

Owns defaults, bounds and the step from shares of the bandwidth-delay product to bytes. The topology says which switch
has which ports and table; `mrcfabric.egress` uses the figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from mrcfabric import vl_settings
from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.egress_config import CONTROL_BURST_BYTES, EgressConfig
from mrcfabric.errors import ConfigError, bounds, out_of_order
from mrcfabric.rng import PPM
from mrcfabric.vl_settings import CreditKnobs, credit_fault
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.trim import TRIM_BYTES_DEFAULT, TRIM_BYTES_MIN
from mrcfabric.wire.usid import END
from switchd.core import settings_bfd, settings_bgp, settings_forwarding, settings_lft, settings_lossless
from switchd.core.buffer import BufferConfig
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.forwarding.lft import LftConfig
from switchd.core.routing.config import RoutingConfig, RoutingKnobs
from switchd.core.settings_bgp import bgp_fault
from switchd.core.settings_credits import CreditConfig
from switchd.core.settings_forwarding import ForwardingKnobs
from switchd.core.settings_lft import LftKnobs
from switchd.core.settings_lossless import LosslessKnobs, class_fault, headroom_fault

Towards: TypeAlias = Literal["nic", "t0", "t1"]
"""The kind of node that a port leads to."""

_MULTICAST: Final = 0xFF
SHARE_MAX: Final = 100.0
"""Beyond a hundred bandwidth-delay products a threshold is a typing mistake."""

_GROUPS: Final = (settings_forwarding, settings_lossless, settings_lft, vl_settings, settings_bgp, settings_bfd)
_LEAST: Final = {name: value for group in _GROUPS for name, value in group.LEAST.items()}
_MOST: Final = {name: value for group in _GROUPS for name, value in group.MOST.items()}
_CHOICES: Final = {name: names for group in _GROUPS for name, names in group.CHOICES.items()}


@dataclass(frozen=True)
class SwitchSettings(RoutingKnobs, CreditKnobs, LftKnobs, LosslessKnobs, ForwardingKnobs):
    """Settings of every switch. Shares are of one plane's bandwidth-delay product. Raises ConfigError.

    MRC 1.0 leaves the figures to the deployment; the defaults follow the advice of UEC 1.0 3.6.17.
    """

    ecn: bool = True
    """RED on T0 up-links and T1 ports."""
    # MRC 1.0: no marks on the last hop, so that a mark always means the path and never the receiver.
    ecn_last_hop: bool = False
    """RED also on T0 down-links, a deliberate difference for experiments."""
    ecn_min: float = 0.2
    """Up to this share nothing is marked."""
    ecn_max: float = 0.8
    """From this share on everything is marked."""
    ecn_max_ppm: int = PPM
    """Marking probability just below `ecn_max`, in millionths."""
    trim: bool = True
    """Trim packets that find a queue full; otherwise drop them."""
    trim_last_hop: bool = True
    """The same on T0 down-links."""
    trim_bytes: int = TRIM_BYTES_DEFAULT
    """Bytes kept of a trimmed packet, counted from its outer header."""
    data: float = 1.0
    """Share that a port's data queue holds; more is trimmed or dropped."""
    data_last_hop: float = 1.5
    """The same on T0 down-links."""
    control: float = 1.0
    """Share that a port's control queue holds; more is dropped."""
    control_reserve: float = 0.25
    """Share of that queue that trimmed packets must leave free; otherwise a flood of them would displace
    acknowledgements."""
    # UEC CMS: trimmed packets get a share of the link, at most half; ours travel with the acknowledgements.
    control_share: float = 0.5
    """The share of a link that the control class may take while data waits; 1 is strict priority."""
    control_burst_bytes: int = CONTROL_BURST_BYTES
    """How many bytes it may be ahead of that share. If it is less than a data packet, control gets less than its
    share."""
    # RFC 9800 4.1.2
    adjacency: bool = False
    """Every port has a uSID of its own besides its peer's, local to the switch: a packet that names it leaves by that
    port."""
    # RFC 9800 4.1.1 counts each shift; Linux counts each switch.
    hop_limit_per_shift: bool = False
    """The price in hops of a packet with the same uSID several times in a row: True one hop per shift, False one in
    all."""

    # RFC 8754 4.3: an address that is no segment of this node is routed; Linux does that too.
    route_foreign: bool = True
    """Forward a packet whose active uSID is a neighbour's to that neighbour, unchanged; False: drop it as
    `not_own_usid`."""

    def __post_init__(self) -> None:
        for knob in fields(self):
            _check_type(knob.name, getattr(self, knob.name), knob.default)
            _check_bounds(knob.name, getattr(self, knob.name))
        for name in ("ecn_min", "ecn_max", "data", "data_last_hop", "control"):
            share = getattr(self, name)
            if not 0 <= share <= SHARE_MAX or (share == 0 and name != "ecn_min"):
                raise _wrong(name, share, f"a share of the bandwidth-delay product, above 0, up to {SHARE_MAX:g}")
        if self.ecn_min > self.ecn_max:
            raise out_of_order("switch.ecn_min", self.ecn_min, "switch.ecn_max", self.ecn_max, equal=True)
        if not 0 <= self.ecn_max_ppm <= PPM:
            raise _wrong("ecn_max_ppm", self.ecn_max_ppm, f"0 to {PPM}")
        if not 0 < self.control_share <= 1:
            raise _wrong("control_share", self.control_share, "a share of the link, above 0, up to 1")
        if not 0 <= self.control_reserve < 1:
            raise _wrong("control_reserve", self.control_reserve, "a share of the control queue, from 0, below 1")
        if self.control_burst_bytes < 0:
            raise _wrong("control_burst_bytes", self.control_burst_bytes, "bytes, from 0")
        if self.trim_bytes < TRIM_BYTES_MIN:
            raise _wrong("trim_bytes", self.trim_bytes, f"at least {TRIM_BYTES_MIN}")
        if (fault := class_fault(self)) is not None:
            name, wanted = fault
            raise _wrong(name, getattr(self, name), wanted)
        if (wrong := credit_fault(self) or bgp_fault(self)) is not None:
            raise wrong
        if headroom_fault(self.pfc_headroom):
            raise _wrong("pfc_headroom", self.pfc_headroom, "exact, deployed, or a number of bytes")

    def _marks_out_of_order(self, min_bytes: int, max_bytes: int, bdp_bytes: int) -> ConfigError:
        """One of the two may be a share of the bandwidth-delay product."""
        ends = []
        for name, share, given, size in (
            ("ecn_min", self.ecn_min, self.ecn_min_bytes, min_bytes),
            ("ecn_max", self.ecn_max, self.ecn_max_bytes, max_bytes),
        ):
            shown = str(size) if given else f"{share:g} ({size} of {bdp_bytes} bytes)"
            ends += [f"switch.{name}_bytes" if given else f"switch.{name}", shown]
        return out_of_order(*ends, equal=True)

    def egress(
        self,
        towards: Towards,
        bdp_bytes: int,
        *,
        rate_bps: int,
        delay_ns: int,
        dscp: Dscp,
        ev_order: EvOrder,
        seed: str,
    ) -> EgressConfig:
        """The configuration of a port that leads to a NIC, a T0 or a T1; `bdp_bytes` of one plane."""
        last_hop = towards == "nic"
        ecn_min_bytes = self.ecn_min_bytes or int(self.ecn_min * bdp_bytes)
        ecn_max_bytes = self.ecn_max_bytes or _bytes(self.ecn_max, bdp_bytes)
        if ecn_max_bytes < ecn_min_bytes:
            raise self._marks_out_of_order(ecn_min_bytes, ecn_max_bytes, bdp_bytes)
        return EgressConfig(
            rate_bps=rate_bps,
            delay_ns=delay_ns,
            data_bytes_max=_bytes(self.data_last_hop if last_hop else self.data, bdp_bytes),
            control_bytes_max=_bytes(self.control, bdp_bytes),
            ecn=self.ecn_last_hop if last_hop else self.ecn,
            ecn_min_bytes=ecn_min_bytes,
            ecn_max_bytes=ecn_max_bytes,
            ecn_max_ppm=self.ecn_max_ppm,
            trim=self.trim_last_hop if last_hop else self.trim,
            trim_bytes=self.trim_bytes,
            trim_dscp=dscp.trimmed_lasthop if last_hop else dscp.trimmed,
            trimmable_dscps=(dscp.trimmable, dscp.trimmable_retx),
            control_share_ppm=max(1, round(self.control_share * PPM)),
            control_burst_bytes=self.control_burst_bytes,
            control_reserve_ppm=int(self.control_reserve * PPM),
            ev_order=ev_order,
            seed=seed,
        )


@dataclass(frozen=True, slots=True)
class LosslessConfig:
    """What a lossless switch has besides; its ports are of eight classes each. Raises ConfigError."""

    buffer: BufferConfig
    quanta: int
    """Length of a pause, in quanta."""
    watchdog_ns: int = 0
    restore_ns: int = 0


@dataclass(frozen=True, slots=True)
class SwitchConfig:
    """One switch, ready to be built. Raises ConfigError."""

    name: str
    usid: int
    """Its own uSID, 16 bits, not zero."""
    block: int
    """The 32-bit locator block of the fabric."""
    fib: Mapping[int, int]
    """Next uSID -> egress port; copied, and read-only from then on."""
    ports: tuple[EgressConfig, ...]
    dscp: Dscp = field(default_factory=Dscp)
    hop_limit_per_shift: bool = False
    """See `SwitchSettings`."""
    route_foreign: bool = True
    """Likewise."""
    towards: tuple[Towards, ...] = ()
    """The kind of node that each port leads to, for metrics; may be empty."""
    peers: tuple[str, ...] = ()
    """The name of the node that each port leads to; may be empty."""
    adjacency: Mapping[int, int] = field(default_factory=dict)
    """uSIDs that only this switch knows -> egress port; copied, and read-only from then on."""
    ecmp: EcmpConfig | None = None
    """The table of a switch that forwards by NIC address; None: by uSIDs."""
    lossless: LosslessConfig | None = None
    """Its buffer and its pauses; None: ports drop what they cannot hold."""
    lft: LftConfig | None = None
    """The table of a switch that forwards by LID."""
    credits: CreditConfig | None = None
    """Its service levels, where it grants credit; then it has a table by LID too."""
    routing: RoutingConfig | None = None
    """Its routing core, which fills the table by NIC addresses; None: nobody does, the table stands."""

    def __post_init__(self) -> None:
        where = self.name or "switch"
        if not 0 <= self.block < 1 << 32:
            raise ConfigError(f"{where}: block", f"{self.block:#x} is no 32-bit block")
        # RFC 4291 2.7; MRC 1.0 5: multicast is not trimmed, and never gets as far as a queue.
        if self.block >> 24 == _MULTICAST:
            raise ConfigError(f"{where}: block", f"{self.block:#x} is multicast", "wanted: a unicast block")
        if not END < self.usid < 1 << 16:
            raise ConfigError(f"{where}: usid", f"{self.usid:#x} is no uSID", "0x1 to 0xffff")
        for name in ("fib", "adjacency"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
            self._check_table(f"{where}: {name}", getattr(self, name))
        if twice := self.fib.keys() & self.adjacency.keys():
            raise ConfigError(f"{where}: adjacency", f"{min(twice):#x} is in the table too")
        for name, ends in (("towards", self.towards), ("peers", self.peers)):
            if ends and len(ends) != len(self.ports):
                raise ConfigError(f"{where}: {name}", f"{len(ends)} entries for {len(self.ports)} ports")
        if self.ecmp is not None and not {*self.ecmp.down, *self.ecmp.up} <= set(range(len(self.ports))):
            raise ConfigError(f"{where}: ecmp", "names a port that is not there", f"0 to {len(self.ports) - 1}")
        if self.routing is not None and self.ecmp is None:
            raise ConfigError(f"{where}: routing", "a routing core fills a table by NIC addresses, which is not there")
        self._check_lossless(where)

    def _check_lossless(self, where: str) -> None:
        credited = {isinstance(port, CreditEgressConfig) for port in self.ports}
        if (credited and credited != {self.credits is not None}) or (self.credits is None) != (self.lft is None):
            raise ConfigError(f"{where}: ports", "a switch with credits has ports with VLs and a table by LID")
        kinds = {isinstance(port, ClassEgressConfig) for port in self.ports}
        if kinds and kinds != {self.lossless is not None}:
            raise ConfigError(f"{where}: ports", "a lossless switch has ports of eight classes, another has not")
        if self.lossless is not None and self.lossless.buffer.ports != len(self.ports):
            raise ConfigError(f"{where}: lossless", f"headroom of {self.lossless.buffer.ports} ports, not of all")

    def _check_table(self, where: str, table: Mapping[int, int]) -> None:
        for usid, port in table.items():
            if not END < usid < 1 << 16 or usid == self.usid:
                raise ConfigError(where, f"{usid:#x} can be nobody's next uSID here")
            if not 0 <= port < len(self.ports):
                raise ConfigError(where, f"uSID {usid:#x} leads to port {port}", f"0 to {len(self.ports) - 1}")


def _bytes(share: float, bdp_bytes: int) -> int:
    return max(1, int(share * bdp_bytes))


def _check_type(name: str, value: object, default: object) -> None:
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise _wrong(name, value, "true or false")
    elif isinstance(default, str):
        if not isinstance(value, str):
            raise _wrong(name, value, "a name")
    elif isinstance(value, bool) or not isinstance(value, int if isinstance(default, int) else (int, float)):
        raise _wrong(name, value, "a whole number" if isinstance(default, int) else "a number")


def _check_bounds(name: str, value: object) -> None:
    """Of the knobs in the tables of a group."""
    if name in _CHOICES and value not in _CHOICES[name]:
        raise _wrong(name, value, "one of " + ", ".join(_CHOICES[name]))
    if name in _LEAST or name in _MOST:
        least, most = _LEAST.get(name, 1), _MOST.get(name, 1 << 62)
        assert isinstance(value, int)
        if not least <= value <= most:
            raise _wrong(name, value, bounds(_LEAST.get(name, 1), _MOST.get(name)))


def _wrong(name: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"switch.{name}", f"{value!r} will not do", f"wanted: {wanted}")
