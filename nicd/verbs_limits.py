"""The limits of a QP in the host API: what an application asks for, hands to its peer, and learns from the NIC.

Owns the names and their checks on both sides of the socket. `nicd.core.mrc.limits` gives the limits their meaning and
computes what two offers agree to. The application itself carries an `Endpoint` to the peer. MRC 1.0 section 3.
"""

from collections.abc import Mapping
from typing import Any, Final

from nicd.verbs_codec import Endpoint, QpLimits, QpOffer, VerbsError

COUNTS: Final = ("mpr", "max_wimm", "qps_per_peer", "send_peers", "incast", "profile")
OPTIONS: Final = ("trim_nack", "dynamic_mpr", "service_time")
ASKED: Final = (*COUNTS, *OPTIONS)
RETRY_TIMERS: Final = ("timeout_exponent", "retry_linear", "retry_exponential")
_COUNT_MAX: Final = (1 << 24) - 1


def checked(args: Mapping[str, Any], counts: tuple[str, ...], options: tuple[str, ...] = ()) -> dict[str, Any]:
    """The given arguments, checked for their kinds. VerbsError otherwise; the NIC checks bounds."""
    found: dict[str, Any] = {}
    for name in (*counts, *options):
        value = args.get(name)
        if value is None:
            continue
        if name in options and type(value) is not bool:
            raise VerbsError(f"{name} must be true or false, not {value!r:.40}")
        if name in counts and (type(value) is not int or not 0 <= value <= _COUNT_MAX):
            raise VerbsError(f"{name} must be a whole number from 0 to {_COUNT_MAX}, not {value!r:.40}")
        found[name] = value
    return found


def known(limits: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    """The given limits. VerbsError for an unknown name, which the NIC would ignore."""
    for name in limits:
        if name not in names:
            raise VerbsError(f"no limit is called {name!r:.40}; there are {', '.join(names)}")
    return limits


def asked(args: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that an application asks for when it creates a QP."""
    return checked(args, COUNTS, OPTIONS)


def offered(peer: Any) -> dict[str, Any]:
    """The limits in an `Endpoint` of the peer, as arguments of ConnectQp; there may be none."""
    if peer is None:
        return {}
    names = QpOffer._fields
    if type(peer) is not list or len(peer) != len(names):
        raise VerbsError(f"the peer's offer must be [{', '.join(names)}]")
    values = checked(dict(zip(names, peer, strict=True)), COUNTS, OPTIONS)
    return {f"peer_{name}": value for name, value in values.items()}


def endpoint_of(nic_index: int, psn: int, result: Mapping[str, Any]) -> Endpoint:
    """What the peer must learn of a QP that was created with this result."""
    offer = QpOffer(*(result[name] for name in QpOffer._fields)) if "mpr" in result else None
    return Endpoint(nic_index, result["qpn"], psn, offer)


def limits_of(result: Mapping[str, Any]) -> QpLimits | None:
    """The limits of a connection; None where the NIC does not report them."""
    if "send_mpr" not in result:
        return None
    return QpLimits(*(result[name] for name in QpLimits._fields))
