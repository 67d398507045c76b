"""Computes the state of a topology's NICs without starting anything: QPs x EVs x MPR -> bytes -> QPs on a chip.

Owns the tables of the plan. `nicd.core.{mrc,rc,uet}.footprint` have the widths and sums.
`orchestrator.sim.state_sweep` measures what too small a memory costs.
"""

from dataclasses import replace
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.compose import nic_settings
from nicd.core.mrc.footprint import (
    contexts_of,
    limits_of,
    nic_bytes,
    on_chip_bytes,
    peer_bytes,
    qp_bytes,
)
from nicd.core.rc import footprint as rc
from nicd.core.settings import NicSettings
from nicd.core.transports import resident_max, slot_bytes
from nicd.core.uet import footprint as uet

EVS = (16, 64, 128, 256)
"""Active EVs of the what-if table, without those that the number of planes does not divide."""
MPR_UNITS = (1, 8, 32, 128, 255)
PSNS = (64, 256, 1_024, 4_096, 32_768)
"""Packets in flight of the what-if table of RC."""
SRAM_MIB = (1, 2, 4, 8, 16, 32, 64)
QPS = 1_024
"""The default number of QPs of a NIC."""
QPS_MAX = 1 << 20


def state_table(topology: Topology, qps: int, peers: int | None = None) -> dict[str, Any]:
    """Sizes of one QP, of one destination, and of a NIC with so many QPs, with every table at its limit.

    `peers`: destinations of these QPs. By default each QP has its own, as far as there are NICs. Raises ConfigError.
    """
    if not 1 <= qps <= QPS_MAX:
        raise ConfigError("--qps", f"{qps} QPs", f"1 to {QPS_MAX}")
    most = max(1, min(qps, topology.nics - 1))
    if peers is not None and not 1 <= peers <= qps:
        raise ConfigError("--peers", f"{peers} destinations of {qps} QPs", f"1 to {qps}")
    peers = most if peers is None else peers
    knobs = nic_settings(topology)
    planes = topology.planes
    if knobs.transport == "rc":
        return _of_rc(knobs, planes, qps)
    if knobs.transport == "uet":
        return _of_uet(knobs, planes, qps)
    pieces = qp_bytes(limits_of(knobs, planes), knobs.ev_bits)
    chip = on_chip_bytes(pieces)
    peer = peer_bytes(planes, contexts_of(knobs, planes), knobs.ev_bits, 0)
    own = nic_bytes(knobs.regions_max, knobs.deny_entries_max)
    return {
        "qp_bytes": pieces,
        "qp_on_chip_bytes": chip,
        "qp_on_host_bytes": sum(pieces.values()) - chip,
        "peer_bytes": peer,
        "nic_bytes": own,
        "qps": qps,
        "peers": peers,
        "total_on_chip_bytes": qps * chip + peers * sum(peer.values()) + sum(own.values()),
        **_chip(knobs, planes, qps),
        "resident_by_sram": _by_sram(knobs, planes, qps),
        "qp_bytes_by_evs_and_mpr": _by_evs_and_mpr(knobs, planes),
    }


def _of_rc(knobs: NicSettings, planes: int, qps: int) -> dict[str, Any]:
    """The table of an RC NIC: nothing about destinations, and a row per recovery beside that of the settings."""
    pieces = rc.qp_bytes(knobs, rc.limits_of(knobs))
    chip = rc.on_chip_bytes(pieces)
    own = rc.nic_bytes(knobs.regions_max)
    return {
        "qp_bytes": pieces,
        "qp_on_chip_bytes": chip,
        "qp_on_host_bytes": sum(pieces.values()) - chip,
        "nic_bytes": own,
        "qps": qps,
        "total_on_chip_bytes": qps * chip + sum(own.values()),
        **_chip(knobs, planes, qps),
        "resident_by_sram": _by_sram(knobs, planes, qps),
        "qp_bytes_by_psns": _by_psns(knobs),
    }


def _of_uet(knobs: NicSettings, planes: int, qps: int) -> dict[str, Any]:
    """The table of a UET NIC: what QPs to one destination share is counted with each."""
    pieces = uet.qp_bytes(knobs, uet.limits_of(knobs))
    chip = uet.on_chip_bytes(pieces)
    own = uet.nic_bytes(knobs.regions_max)
    return {
        "qp_bytes": pieces,
        "qp_on_chip_bytes": chip,
        "qp_on_host_bytes": sum(pieces.values()) - chip,
        "nic_bytes": own,
        "qps": qps,
        "total_on_chip_bytes": qps * chip + sum(own.values()),
        **_chip(knobs, planes, qps),
        "resident_by_sram": _by_sram(knobs, planes, qps),
    }


def _by_psns(knobs: NicSettings) -> list[dict[str, Any]]:
    """On-chip bytes of one RC QP: a row per recovery, a column per number of packets that may be out."""
    rows = []
    for recovery in ("go_back_n", "selective", "out_of_order"):
        row: dict[str, Any] = {"recovery": recovery}
        for psns in PSNS:
            other = replace(knobs, rc_recovery=recovery, rc_psns_max=psns)
            row[f"psns_{psns}"] = rc.on_chip_bytes(rc.qp_bytes(other, rc.limits_of(other)))
        rows.append(row)
    return rows


def _chip(knobs: NicSettings, planes: int, qps: int) -> dict[str, Any]:
    """How many QPs the on-chip memory of the settings holds."""
    resident = resident_max(knobs, planes)
    if resident is None:
        return {"sram": "unlimited", "resident_qps": qps, "spilled_qps": 0}
    return {
        "sram_bytes": knobs.sram_bytes,
        "slot_bytes": slot_bytes(knobs, planes),
        "resident_qps": min(resident, qps),
        "spilled_qps": max(0, qps - resident),
        "miss_ns": knobs.sram_miss_ns,
    }


def _by_sram(knobs: NicSettings, planes: int, qps: int) -> list[dict[str, Any]]:
    rows = []
    for mib in SRAM_MIB:
        resident = resident_max(replace(knobs, sram_bytes=mib << 20), planes)
        assert resident is not None
        rows.append({"sram_mib": mib, "resident": min(resident, qps), "spilled": max(0, qps - resident)})
    return rows


def _by_evs_and_mpr(knobs: NicSettings, planes: int) -> list[dict[str, Any]]:
    """On-chip bytes of one QP: a row per number of active EVs, a column per tracking window in packets."""
    rows = []
    for evs in EVS:
        if evs % planes:
            continue
        row: dict[str, Any] = {"evs": evs}
        for units in MPR_UNITS:
            other = replace(knobs, evs_active=evs, ev_min_active=0, mpr_units=units)
            row[f"mpr_{units * 128}"] = on_chip_bytes(qp_bytes(limits_of(other, planes), knobs.ev_bits))
        rows.append(row)
    return rows
