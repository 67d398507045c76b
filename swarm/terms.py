"""What the two ends of a QP pair agree on: offers, options, timers and EV profiles, and the commands that say so.

Owns the drawing of terms inside what the settings allow, and the commands that set a QP pair up with them. Each side's
terms are two tables: `offer` for CreateQp (the other side hears it in its ConnectQp) and `timers` for ModifyQp.

MRC 1.0 section 3 (limits of both directions, options both must offer), controller API (profiles).
"""

from typing import Any, Final

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from nicd.compose import nic_settings
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from nicd.core.commands_paths import CreateEvProfile, ModifyEvProfile
from swarm.case import Flow

PROFILE: Final = 1
"""Number of the profile that a case makes on every NIC."""
FORMATS: Final = ("ecmp", "stev", "srv6", "srv6_srh")


def draw_terms(rng: Rng, topology: Topology) -> dict[str, dict[str, Any]]:
    """Terms of both sides; often none."""
    if rng.chance(PPM * 2 // 3):
        return {}
    return {side: {"offer": _offer(rng, topology), "timers": _timers(rng, topology)} for side in ("a", "b")}


def _offer(rng: Rng, topology: Topology) -> dict[str, Any]:
    settings = nic_settings(topology)
    return {
        "mpr": 1 + rng.below(settings.mpr_units),
        "max_wimm": 1 + rng.below(settings.max_wimm),
        "trim_nack": settings.trim_nack and rng.chance(PPM * 3 // 4),
        "dynamic_mpr": rng.chance(PPM // 2),
        "service_time": rng.chance(PPM // 2),
    }


def _timers(rng: Rng, topology: Topology) -> dict[str, Any]:
    settings = nic_settings(topology)
    found: dict[str, Any] = {}
    if rng.chance(PPM // 3):
        # The RTO must stay above the tail probe.
        least = (settings.tail_probe_ns // 1_024).bit_length()
        found["timeout_exponent"] = min(24, least + rng.below(4))
    if rng.chance(PPM // 3):
        found |= {"retry_linear": rng.below(8), "retry_exponential": rng.below(12)}
    return found


def draw_profile(rng: Rng, topology: Topology) -> dict[str, Any]:
    """Arguments that configure a profile; often none."""
    if rng.chance(PPM * 3 // 4):
        return {}
    planes = topology.planes
    active, reserve = 1 + rng.below(16), rng.below(4)
    return {
        "mode": "auto",
        "format": FORMATS[rng.below(len(FORMATS))],
        "count": planes * (active + reserve),
        "reserve": planes * reserve,
        "min_active": 1 + rng.below(planes * active),
    }


def profile_commands(profile: dict[str, Any]) -> list[Any]:
    """What a NIC is told to have the profile of a case."""
    if not profile:
        return []
    return [
        CreateEvProfile(0, PROFILE),
        ModifyEvProfile(0, PROFILE, state="offline", **profile),
        ModifyEvProfile(0, PROFILE, state="online"),
    ]


def qp_commands(flow: Flow, side: str, peer_index: int, profile: dict[str, Any]) -> list[Any]:
    """What makes one end of a QP pair: created, connected, ready to send."""
    own, other = flow.terms.get(side, {}), flow.terms.get("b" if side == "a" else "a", {})
    ends = [(flow.qpn_a, flow.psn_ab), (flow.qpn_b, flow.psn_ba)]
    (qpn, psn_send), (peer_qpn, psn_receive) = ends if side == "a" else ends[::-1]
    heard = {f"peer_{name}": value for name, value in other.get("offer", {}).items()}
    return [
        CreateQp(0, qpn, PROFILE if profile else None, **own.get("offer", {})),
        ConnectQp(0, qpn, peer_index, peer_qpn, psn_send, psn_receive, **heard),
        ModifyQp(0, qpn, "rts", **own.get("timers", {})),
    ]
