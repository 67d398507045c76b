"""Which system a case has, and in what its settings depart from the bundle.

Owns the choice of a bundle and the variations: transport, recovery, windows, congestion control, forwarding, pauses and
the buffer behind them. Any other knob may be drawn too, by the tables of its settings class (`swarm.knobs`). What does
not go together is put back to what the bundle has.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.topology_file import read_system
from nicd.compose import nic_config
from nicd.core.settings import NicSettings
from orchestrator.planning.combination import check_combination
from swarm.draw import one_of
from swarm.knobs import FIXED, draw_knobs, nic_bounds, put_back, switch_bounds
from switchd.compose import switch_config
from switchd.core.settings import SwitchSettings

STREAM: Final = "swarm systems"
"""First name of all random streams of this series."""
STRUCTURE: Final = frozenset(
    {"transport", "uet_mode", "uet_cc", "rc_path", "rc_recovery", "cc", "rc_data_dscp", "rc_ack_dscp"}
)
"""Knobs that are chosen here and nowhere else."""
BUNDLES: Final = ("mrc", "roce", "roce", "roce-no-pfc", "roce-pfc-only", "roce-pfc-only", "irn", "roce-40g")
"""What is drawn from, what has pauses more often: they have the most to go wrong. A list of its own, because another
bundle would change what every seed draws."""
LATER_BUNDLES: Final[dict[int, tuple[str, ...]]] = {4: ("uet", "uet-rccc", "uet-both", "uet-reps")}
"""Remainder of a seed by `TURNS` -> what such a seed draws from instead. These systems came later."""
TURNS: Final = 8
PLENTY_BYTES: Final = 1 << 34

Knobs: TypeAlias = dict[str, Any]


def draw_system(rng: Rng, topology: Topology, seed: int) -> Topology:
    """The same sizes with a system, most often varied."""
    name = one_of(rng, BUNDLES)
    if (later := LATER_BUNDLES.get(seed % TURNS)) is not None:
        name = one_of(Rng(STREAM, seed, "bundle"), later)
    tables = read_system(name).tables
    topology = replace(topology, system=name, dscp=tables.get("dscp", {}))
    nic, switch = dict(tables.get("nic", {})), dict(tables.get("switch", {}))
    if name == "mrc" and rng.chance(PPM * 2 // 3):
        # Alone, MRC has its own series; here it meets switches that pause.
        switch |= {"lossless": "pfc", "pfc_classes": "0,1", "trim": False, "trim_last_hop": False}
    if rng.chance(PPM // 8):
        return _accepted(topology, nic, switch, {}, {})
    own_nic: Knobs = {}
    own_switch: Knobs = {}
    if rng.chance(PPM // 3):
        drawn = draw_knobs(NicSettings, STREAM, seed, 40_000, nic_bounds)
        own_nic = {key: value for key, value in drawn.items() if key not in FIXED | STRUCTURE}
        drawn = draw_knobs(SwitchSettings, STREAM, seed, 40_000, switch_bounds)
        own_switch = {key: value for key, value in drawn.items() if not isinstance(value, float)}
    if nic.get("transport") == "rc":
        _vary_rc(rng, topology, own_nic, own_switch)
    if nic.get("transport") == "uet":
        _vary_uet(rng, topology, own_nic)
    topology = replace(topology, nic=nic, switch=switch)
    _vary_switch(rng, topology, own_switch)
    if switch.get("lossless") == "pfc":
        # A stream of their own: these came later, and leave alone what a seed draws besides.
        _vary_classes(Rng(STREAM, seed, "classes"), own_switch)
    return _accepted(topology, nic, switch, own_nic, own_switch)


def _vary_rc(rng: Rng, topology: Topology, nic: Knobs, switch: Knobs) -> None:
    """Recovery, congestion control, windows, timers and acknowledgements of RC."""
    rtt_ns = topology.base_rtt_ns()
    choices: dict[str, Callable[[], Any]] = {
        "rc_recovery": lambda: one_of(rng, ("go_back_n", "go_back_0", "selective")),
        "rc_window_bytes": lambda: topology.mtu_bytes * one_of(rng, (1, 2, 5, 16, 64)),
        "rc_psns_max": lambda: one_of(rng, (8, 12, 32, 100)),
        "rc_retry_cnt": lambda: rng.below(8),
        "rc_ack_every": lambda: one_of(rng, (0, 1, 2, 16, 300)),
        "rc_ack_dscp": lambda: one_of(rng, (26, 24, 0, 46, 63)),
        "rc_nak_passes": lambda: False,
        "rc_nak_interval_ns": lambda: one_of(rng, (1, rtt_ns, 10 * rtt_ns)),
        "rc_rto_low_ns": lambda: 1 + rng.below(4 * rtt_ns),
        "rc_rto_high_ns": lambda: 1 + rng.below(16 * rtt_ns),
        "rc_rto_low_packets": lambda: rng.below(20),
        "rc_port": lambda: "hash",
        "rc_port_failover": lambda: True,
        "rp_profile": lambda: "100g",
        "np_min_time_between_cnps_ns": lambda: one_of(rng, (1, 1_000, 4_000)),
        "rp_time_reset_ns": lambda: one_of(rng, (500, 5_000)),
        "rp_byte_reset": lambda: one_of(rng, (1, 5_000, 100_000)),
        "rp_dce_tcp_rtt_ns": lambda: one_of(rng, (1, 1_000)),
        "rp_dce_tcp_g_shift": lambda: 1 + rng.below(16),
        "rp_min_rate_mbps": lambda: one_of(rng, (1_000, 5_000)),
        "rp_ai_rate_mbps": lambda: one_of(rng, (1_000, 10_000)),
        "rp_rate_reduce_monitor_period_ns": lambda: one_of(rng, (1, 10_000)),
        "rp_clamp_tgt_rate": lambda: False,
        "np_cnp_dscp": lambda: one_of(rng, (26, 46)),
    }
    nic |= {key: draw() for key, draw in choices.items() if rng.chance(PPM // 5)}
    if not rng.chance(PPM // 12):
        # The default, 67 ms, is six thousand round trips of a small fabric.
        nic["rc_timeout"] = 1 + rng.below(8)
    if rng.chance(PPM // 3):
        nic["cc"] = one_of(rng, ("dcqcn", "none"))
        switch["ecn"] = nic["cc"] == "dcqcn" or rng.chance(PPM // 2)
    if rng.chance(PPM // 6):
        nic["rc_path"], switch["forwarding"] = "pinned", "usid"


def _vary_uet(rng: Rng, topology: Topology, nic: Knobs) -> None:
    """Delivery, congestion control, entropies, credits and contexts of UET."""
    rtt_ns = topology.base_rtt_ns()
    choices: dict[str, Callable[[], Any]] = {
        "uet_mode": lambda: one_of(rng, ("rud", "rod")),
        "uet_cc": lambda: one_of(rng, ("nscc", "rccc", "both", "none")),
        "uet_path": lambda: one_of(rng, ("oblivious", "bitmap", "reps")),
        "uet_crc": lambda: one_of(rng, ("crc32", "crc32c", "none")),
        "uet_penalty_mark": lambda: rng.below(20),
        "uet_penalty_nack": lambda: rng.below(20),
        "uet_penalty_timeout": lambda: rng.below(40),
        "uet_penalty_max": lambda: 1 + rng.below(40),
        "uet_reps_ring": lambda: 1 + rng.below(20),
        "uet_reps_explore": lambda: rng.below(40),
        "uet_reps_freeze_ns": lambda: rng.below(100 * rtt_ns),
        "uet_reorder_ns": lambda: 1 + rng.below(8 * rtt_ns),
        "uet_speculation_ppt": lambda: rng.below(4_000),
        "uet_idle_ppt": lambda: rng.below(3_000),
        "uet_grant_packets": lambda: 1 + rng.below(20),
        "uet_contexts_max": lambda: 1 + rng.below(8),
        "mpr_units": lambda: 1,
        "sack_bytes": lambda: one_of(rng, (1, 5_000, 40_000)),
        "retry_linear": lambda: rng.below(8),
        "retry_exponential": lambda: rng.below(12),
        "uet_plane_leave_ns": lambda: 1 + rng.below(20 * rtt_ns),
        "uet_leave_planes": lambda: False,
        "uet_occc": lambda: True,
        "uet_occc_target_ppt": lambda: rng.below(1_000),
        "uet_occc_increase_ppt": lambda: rng.below(200),
        "uet_occc_decrease_ppt": lambda: rng.below(1_000),
        "uet_occc_gain_ppt": lambda: 1 + rng.below(1_000),
        "uet_occc_floor_ppt": lambda: 1 + rng.below(500),
        "uet_occc_doublings": lambda: rng.below(8),
        "uet_responses_max": lambda: 1 + rng.below(6),
    }
    nic |= {key: draw() for key, draw in choices.items() if rng.chance(PPM // 5)}


def _vary_switch(rng: Rng, topology: Topology, own: Knobs) -> None:
    """The hash, marks, room, and, where switches pause, all about it."""
    packet = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES
    choices: dict[str, Callable[[], Any]] = {
        "ecmp_seed": lambda: "common",
        "ecmp_hash": lambda: "crc",
        "ecmp_resilient": lambda: True,
        "ecmp_failover": lambda: True,
        "ecmp_failover_ns": lambda: rng.below(20_000),
    }
    own |= {key: draw() for key, draw in choices.items() if rng.chance(PPM // 3)}
    if rng.chance(PPM // 2):
        own["ecn_min_bytes"] = 1 + rng.below(4 * packet)
        own["ecn_max_bytes"] = own["ecn_min_bytes"] + rng.below(20 * packet)
        own["ecn_max_ppm"] = 1 + rng.below(PPM)
    if topology.switch.get("lossless") == "pfc":
        if rng.chance(PPM // 8) and topology.nic.get("transport") == "rc":
            own["lossless"] = "off"
        else:
            _vary_pauses(rng, topology, own)
    if rng.chance(PPM // 3):
        # Room for few packets: what does not fit is lost, and somebody has to make that good.
        for key in ("data", "data_last_hop"):
            own[key] = round(one_of(rng, (3, 8, 30)) * packet / topology.plane_bdp_bytes, 3)


def _vary_pauses(rng: Rng, topology: Topology, own: Knobs) -> None:
    packet = topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES
    if topology.nic.get("transport") == "rc" and rng.chance(PPM // 3):
        own["pfc_classes"] = one_of(rng, ("3,4", "0,3", "3,6", "0,1,2,3,4,5,6,7"))
    reserved = own["pfc_reserved_bytes"] = one_of(rng, (0, packet // 2, 4_096, 3 * packet))
    own["pfc_xon_offset_bytes"] = one_of(rng, (0, 100, packet, 3_072, 10 * packet))
    if rng.chance(PPM // 4):
        own["pfc_quanta"] = one_of(rng, (60, 200, 1_000, 20_000))
    if rng.chance(PPM // 3):
        own["pfc_watchdog_ns"] = 1 + rng.below(40 * topology.base_rtt_ns())
        own["pfc_watchdog_restore_ns"] = 1 + rng.below(100 * topology.base_rtt_ns())
    if rng.chance(PPM // 6):
        own["pfc_headroom"] = one_of(rng, ("deployed", "0", str(2 * packet), str(20 * packet)))
    if rng.chance(PPM // 2):
        own["pfc_threshold"] = "static"
        own["pfc_xoff_bytes"] = reserved + 1 + rng.below(one_of(rng, (1, packet, 8 * packet, 40 * packet)))
    else:
        own["pfc_alpha_shift"] = rng.below(7)
    own["pool"] = packet * one_of(rng, (1, 4, 16, 60, 400))
    if reserved < packet:
        # Classes that are not lossless must find room for a packet, or no acknowledgement ever passes.
        own["pool"] = max(own["pool"], packet << int(own.get("pfc_alpha_shift", 0)))


def _vary_classes(rng: Rng, own: Knobs) -> None:
    """Which classes of a port go first, and which part of the wire the others get."""
    if rng.chance(PPM // 5):
        own["class_strict"] = one_of(rng, ("none", "6", "7", "4,6,7", "2,5"))
    if rng.chance(PPM // 5):
        own["class_weights"] = ",".join(str(one_of(rng, (1, 2, 7, 1_000))) for _ in range(8))


def _sized(topology: Topology, pool: int) -> Topology:
    """With a buffer whose pool, at the switch with the most ports, has so many bytes."""
    plenty = replace(topology, switch={**topology.switch, "buffer_bytes": PLENTY_BYTES})
    taken = 0
    for name in topology.switch_names():
        config = switch_config(plenty, name).lossless
        if config is not None:
            taken = max(taken, PLENTY_BYTES - config.buffer.pool_bytes)
    return replace(topology, switch={**topology.switch, "buffer_bytes": taken + pool})


def _accepted(topology: Topology, nic: Knobs, switch: Knobs, own_nic: Knobs, own_switch: Knobs) -> Topology:
    """With the variations that the cores accept together, above those of the bundle."""
    rtt_ns = topology.base_rtt_ns()
    own_nic = {key: max(1, int(value * rtt_ns)) if isinstance(value, float) else value
               for key, value in own_nic.items()}  # fmt: skip
    pool = own_switch.pop("pool", 0)
    while True:
        drawn = replace(topology, nic={**nic, **own_nic}, switch={**switch, **own_switch})
        try:
            if pool and drawn.switch.get("lossless") == "pfc":
                drawn = _sized(drawn, pool)
            nic_config(drawn, next(drawn.nic_names()))
            for name in drawn.switch_names():
                switch_config(drawn, name)
            check_combination(drawn)
            return drawn
        except ConfigError as error:
            put_back(str(error), own_nic, own_switch)
