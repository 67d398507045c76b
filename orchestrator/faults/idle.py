"""Kinds of faults that find nothing to act on in a fabric, and why.

Pure. Such a fault is carried out all the same, and reports say that no packet met it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from mrcfabric.topology import Topology
from orchestrator.faults.kinds import OF_ROUTING
from orchestrator.planning.abilities import hashes, lossless, manages, marks, pauses, routes, trims

_NEEDS: Final[Mapping[str, tuple[Callable[[Topology], bool], str]]] = {
    "pause_storm": (lossless, "no switch of this fabric is lossless (switch.lossless)"),
    "slow_receiver": (lossless, "no switch of this fabric is lossless (switch.lossless)"),
    "pfc_loss": (lossless, "no switch of this fabric is lossless (switch.lossless)"),
    "wrong_headroom": (pauses, "no switch of this fabric pauses its neighbours (switch.lossless: pfc)"),
    "trimming_off": (trims, "no switch of this fabric trims (switch.trim)"),
    "ecn_misconfigured": (marks, "no switch of this fabric marks packets (switch.ecn)"),
    "polarised_hash": (hashes, "no switch of this fabric hashes flows (switch.forwarding: ecmp)"),
    "manager_down": (manages, "no NIC of this fabric runs a subnet manager (nic.sm_nics)"),
    "manager_slow": (manages, "no NIC of this fabric runs a subnet manager (nic.sm_nics)"),
    **dict.fromkeys(OF_ROUTING, (routes, "switches do not route for themselves (switch.routing: static)")),
}


def why_idle(topology: Topology, kind: str) -> str:
    """Why a fault of this kind meets nothing in this fabric; empty: it may meet something."""
    able, why = _NEEDS.get(kind, (None, ""))
    return "" if able is None or able(topology) else why
