"""What the two ends of a QP grant each other: windows, immediates, and the options that both must offer.

Owns the offer of one end, its defaults from settings and hints, its bounds, and what two offers agree to. The
application carries the offers from end to end (MRC 1.0 section 3: connection data travel out of band); requestor and
responder obey them.
"""

from typing import Final, NamedTuple

from mrcfabric.errors import RefusedError
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from nicd.core.settings import MPR_UNIT, NicSettings

# MRC 1.0 SETH: eight bits of units.
MPR_UNITS_MAX: Final = 255
# MRC 1.0: a responder tracks at least this many units; hints never ask for less.
MPR_UNITS_HINTED_LEAST: Final = 8
WINDOWS_HINTED: Final = 3
"""A window sized by hints holds this many bandwidth-delay products: the congestion window of 1.5, twice, because what
arrives behind a gap is tracked while the gap is filled."""
HINT_MAX: Final = 1 << 20
# MRC 1.0, controller API: the local ACK timeout is 1.024 us times a power of two.
TIMEOUT_UNIT_NS: Final = 1_024
TIMEOUT_EXPONENT_MAX: Final = 24
RETRY_LINEAR_MAX: Final = 7
RETRY_EXPONENTIAL_MAX: Final = 25


class Offer(NamedTuple):
    """What one end grants to the other."""

    mpr: int
    """Tracking window of its responder, units of 128 PSNs."""
    max_wimm: int
    """Early immediates that its responder holds."""
    trim_nack: bool
    """It can send, or understand, NACKs for trimmed packets."""
    dynamic_mpr: bool
    """It can advertise, or obey, a window in each SACK."""
    service_time: bool
    """It takes the time that a packet waited for its SACK out of the echoed time stamp, or expects that."""

    def record(self) -> dict[str, int | str | bool | None]:
        """As a result of a command."""
        return dict(self._asdict())


class Hints(NamedTuple):
    """What the application expects; 0: it gives no hint."""

    qps_per_peer: int = 0
    send_peers: int = 0
    incast: int = 0
    """Peers that send to this NIC at the same time."""


class Limits(NamedTuple):
    """The limits that a connected QP obeys."""

    receive_mpr: int
    """Our tracking window, units of 128 PSNs."""
    send_mpr: int
    """The peer's tracking window, units of 128 PSNs."""
    receive_wimm: int
    send_wimm: int
    trim_nack: bool
    dynamic_mpr: bool
    service_time: bool

    def record(self) -> dict[str, int | str]:
        """For the table of QPs."""
        return {name: int(value) for name, value in self._asdict().items()}


def hints_of(command: CreateQp) -> Hints:
    """The hints of a command. RefusedError for one that cannot be a number of peers."""
    hints = Hints(command.qps_per_peer, command.send_peers, command.incast)
    for name, value in hints._asdict().items():
        if not 0 <= value <= HINT_MAX:
            raise RefusedError(f"a hint {name} of {value}; possible are 0 (unknown) to {HINT_MAX}")
    return hints


def own_offer(settings: NicSettings, command: CreateQp, hints: Hints, bdp_bytes: int) -> Offer:
    """What a new QP grants; `bdp_bytes` is the NIC's. RefusedError names what is out of bounds."""
    mpr = command.mpr
    if mpr is None:
        mpr = _hinted_mpr(settings, hints, bdp_bytes)
    # MRC 1.0 section 3: a window of nothing would never let a packet through.
    if not 1 <= mpr <= settings.mpr_units:
        raise RefusedError(f"an MPR of {mpr}; this NIC tracks 1 to {settings.mpr_units} times {MPR_UNIT} PSNs per QP")
    max_wimm = settings.max_wimm if command.max_wimm is None else command.max_wimm
    if not 1 <= max_wimm <= settings.max_wimm:
        raise RefusedError(f"a max_wimm of {max_wimm}; this NIC holds 1 to {settings.max_wimm} per QP")
    return Offer(
        mpr,
        max_wimm,
        settings.trim_nack and command.trim_nack is not False,
        settings.dynamic_mpr if command.dynamic_mpr is None else command.dynamic_mpr,
        settings.service_time if command.service_time is None else command.service_time,
    )


def peer_offer(own: Offer, command: ConnectQp) -> Offer:
    """What the peer grants by the command; where that says nothing, as our own. RefusedError as in `own_offer`."""
    mpr = own.mpr if command.peer_mpr is None else command.peer_mpr
    if not 1 <= mpr <= MPR_UNITS_MAX:
        raise RefusedError(f"a peer MPR of {mpr}; possible are 1 to {MPR_UNITS_MAX}")
    max_wimm = own.max_wimm if command.peer_max_wimm is None else command.peer_max_wimm
    if max_wimm < 1:
        raise RefusedError(f"a peer max_wimm of {max_wimm}")
    return Offer(
        mpr,
        max_wimm,
        own.trim_nack if command.peer_trim_nack is None else command.peer_trim_nack,
        own.dynamic_mpr if command.peer_dynamic_mpr is None else command.peer_dynamic_mpr,
        own.service_time if command.peer_service_time is None else command.peer_service_time,
    )


def agree(own: Offer, peer: Offer) -> Limits:
    """The limits of a QP: windows as each end grants them, and the options that both offer."""
    return Limits(
        own.mpr,
        peer.mpr,
        own.max_wimm,
        peer.max_wimm,
        own.trim_nack and peer.trim_nack,
        own.dynamic_mpr and peer.dynamic_mpr,
        own.service_time and peer.service_time,
    )


def retry_timers(settings: NicSettings, command: ModifyQp) -> tuple[int, int, int]:
    """(RTO in ns, linear, exponential retries) of a QP that becomes RTS. RefusedError names what is out of bounds."""
    exponent = command.timeout_exponent
    rto_ns = settings.rto_ns if exponent is None else TIMEOUT_UNIT_NS << min(max(exponent, 0), TIMEOUT_EXPONENT_MAX)
    linear = settings.retry_linear if command.retry_linear is None else command.retry_linear
    exponential = settings.retry_exponential if command.retry_exponential is None else command.retry_exponential
    if exponent is not None and not 0 <= exponent <= TIMEOUT_EXPONENT_MAX:
        raise RefusedError(f"a timeout of 1.024 us times 2 to {exponent}; possible are 0 to {TIMEOUT_EXPONENT_MAX}")
    if rto_ns <= settings.tail_probe_ns:
        raise RefusedError(f"an RTO of {rto_ns} ns is not above the tail probe's {settings.tail_probe_ns} ns")
    if not 0 <= linear <= RETRY_LINEAR_MAX:
        raise RefusedError(f"{linear} linear retries; possible are 0 to {RETRY_LINEAR_MAX}")
    if not 0 <= exponential <= RETRY_EXPONENTIAL_MAX:
        raise RefusedError(f"{exponential} exponential retries; possible are 0 to {RETRY_EXPONENTIAL_MAX} (for ever)")
    return rto_ns, linear, exponential


def _hinted_mpr(settings: NicSettings, hints: Hints, bdp_bytes: int) -> int:
    """The window of a QP with hints: its share of what the NIC can have in flight."""
    sharing = max(1, hints.qps_per_peer) * max(1, hints.incast)
    if sharing == 1:
        return settings.mpr_units
    packets = WINDOWS_HINTED * bdp_bytes // (settings.mtu_bytes * sharing)
    return min(settings.mpr_units, max(MPR_UNITS_HINTED_LEAST, -(-packets // MPR_UNIT)))
