"""The demonstration as a scenario: training processes over a fabric that is being broken, made for a topology.

Owns what breaks when, in base RTTs, and what must hold. How a scenario is carried out, shown, judged and reported is
the same for all (`orchestrator.runs`, `orchestrator.measures`, `orchestrator.report`).
"""

from dataclasses import replace
from typing import Any, Final

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import MIB, NS_PER_S
from orchestrator.faults.checks import DEADLY
from orchestrator.hosts.cluster import Cluster
from orchestrator.planning.abilities import has_evs
from orchestrator.runs.worker_placement import ring_order
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.process_kinds import ALL_REDUCE
from orchestrator.scenario.resolve import resolve
from orchestrator.yamlfile.document import Document

TRAINING: Final = "training"
TENSOR_MIB_MAX: Final = 1024
"""Every rank holds its gradient several times over, and all ranks may be on this host."""
BASELINE_RTTS: Final = 45
"""The load is steady after a few round trips; then nothing is broken for the rest of this time."""
STEADY_RTTS: Final = 5
FLAP_RTTS: Final = 5
FLAPS: Final = 3
OUTAGE_RTTS: Final = 25
"""How long dead switches stay dead."""
PORT_RTTS: Final = 60
"""How long the NIC port is down: long enough to read a share from it."""
SETTLE_RTTS: Final = 15
"""The share of a NIC with a port down is taken after this long: what was lost on the port is there by then."""
T1_KILLS: Final = 4
RECOVERY_RTTS: Final = 45
"""Between the end of one fault and the begin of the next: EVs come back by probes, and goodput is looked at."""
STEPS_MAX: Final = 6
"""A run ends at the latest when so many steps at full rate would have passed since the last fault."""
LINGER_RTTS: Final = 30
"""After the last fault; the steps that were begun take as long again."""
LOOK_RTTS: Final = 5
PORT_SHARE_TOLERANCE: Final = 0.05
"""How far the goodput of a NIC with one port down may be from (planes - 1) / planes."""
BASELINE_SHARE_MIN: Final = 0.936
"""Goodput before the first fault, as a share of what headers leave for payload: 0.9 of line rate at 4096 bytes."""
SCENARIO: Final = "demonstration"
"""What complaints call it: it stands in no file."""


def plan_of(topology: Topology, tensor_mib: int = 16, buckets: int = 32) -> Plan:
    """The demonstration on a topology. Raises ConfigError for one that has nothing to lose or is congested by itself,
    and for sizes that cannot be."""
    _check_sizes(topology, tensor_mib, buckets)
    document = Document(SCENARIO, scenario_of(topology, tensor_mib, buckets))
    return resolve(document, seed=topology.seed, topology=topology)


def stand_alone(plan: Plan, cluster: Cluster) -> None:
    """Give each switch that is to die a process of its own on its host: it must not take others with it."""
    dying = {name for fault in plan.all_faults if fault.kind in DEADLY for name in fault.struck}
    cluster.sites = replace(cluster.sites, alone=frozenset(dying))


def scenario_of(topology: Topology, tensor_mib: int, buckets: int) -> dict[str, Any]:
    """The scenario as plain data, as a file would say it. Raises ConfigError for a topology that will not do."""
    method = timetable(topology)
    return {
        "name": topology.name,
        "description": "Ranks train over the fabric while it is being broken: what each fault cost.",
        "length": f"{_length_rtts(topology, tensor_mib, method)}rtt",
        "look": f"{LOOK_RTTS}rtt",
        "settle": f"{RECOVERY_RTTS}rtt",
        "workload": [
            {
                "name": TRAINING,
                "kind": ALL_REDUCE,
                "ranks": [nic_name(nic) for nic in ring_order(topology)],
                "tensor_bytes": tensor_mib * MIB,
                "buckets": buckets,
                "linger": f"{LINGER_RTTS}rtt",
            }
        ],
        "method": method,
        "expect": _expectations(topology, method),
    }


def timetable(topology: Topology) -> list[dict[str, Any]]:
    """What breaks, in order: entries of `method`. Raises ConfigError for a topology that will not do."""
    for key, least in (("planes", 2), ("t0_per_plane", 2), ("t1_per_plane", 2)):
        if getattr(topology, key) < least:
            raise ConfigError(f"topology.{key}", "too small for the demonstration", f"at least {least}")
    check_wide(topology)
    planes, t1s = topology.planes, topology.t1_per_plane
    reduced, one_link = (planes - 1) / planes, 1 / (planes * t1s)
    links = [link_name(topology, planes // 4, 0, 1), link_name(topology, planes // 2, 1, t1s - 1)]
    killed = [t1_name(plane, place % t1s) for place, plane in enumerate(spread(min(T1_KILLS, planes), planes))]
    nic, port = topology.nics // 4, planes * 5 // 8
    flap = {"fault": "flap", "period": f"{2 * FLAP_RTTS}rtt", "duty": 0.5, "count": FLAPS}
    away = {"fault": "switch_reboot", "for": f"{OUTAGE_RTTS}rtt"}
    # (name, how long, what, of which parts, what can be had meanwhile, what viewers read)
    rows: list[tuple[str, int, dict[str, Any], dict[str, Any], float, str]] = [
        (
            "flaps",
            FLAP_RTTS * (2 * FLAPS - 1),
            flap,
            {"links": links},
            1 - one_link,
            f"{len(links)} T0-T1 links flap {FLAPS} times",
        ),
        (
            "t1s-killed",
            OUTAGE_RTTS,
            away,
            {"nodes": killed},
            1 - len(killed) * one_link,
            f"{len(killed)} T1s killed, each in another plane",
        ),
        (
            "port-lost",
            PORT_RTTS,
            {"fault": "nic_port_down", "for": f"{PORT_RTTS}rtt"},
            {"nic_ports": f"{nic_name(nic)}:{port}"},
            reduced,
            f"{nic_name(nic)} loses port {port}",
        ),
        ("t0-dies", OUTAGE_RTTS, away, {"nodes": t0_name(planes * 3 // 8, 1)}, reduced, "a T0 dies"),
    ]
    found, at_rtts = [], BASELINE_RTTS
    for name, rtts, fault, selector, leaves, title in rows:
        entry = {"name": name, "title": title, "at": f"{at_rtts}rtt", **fault, "selector": selector}
        found.append({**entry, "leaves": round(leaves, 4)})
        at_rtts += rtts + RECOVERY_RTTS
    return found


def _expectations(topology: Topology, method: list[dict[str, Any]]) -> list[dict[str, Any]]:
    least = BASELINE_SHARE_MIN * payload_share(topology.mtu_bytes)
    wanted = (topology.planes - 1) / topology.planes
    port = next(entry for entry in method if entry["fault"] == "nic_port_down")
    nic = port["selector"]["nic_ports"].partition(":")[0]
    return [
        {"name": "no QP failed", "measure": "qp_errors", "at_most": 0},
        {"name": "no rank failed, no step lost", "measure": "completed", "of": TRAINING, "at_least": 1},
        {"name": "steps that every rank finished", "measure": "steps", "of": TRAINING, "at_least": 2},
        *(
            [
                {
                    "name": "EVs neither GOOD nor SKIP at the end",
                    "measure": "evs",
                    "of": ["assumed_bad", "denied"],
                    "at_most": 0,
                }
            ]
            if has_evs(topology)
            else []
        ),
        {"name": "NIC ports down at the end", "measure": "ports_down", "at_most": 0},
        {"name": "the whole timetable took place", "measure": "faults_over", "at_least": len(method)},
        {
            "name": f"goodput before the faults at least {least:.2g} of line rate",
            "measure": "goodput",
            "from": f"{STEADY_RTTS}rtt",
            "to": f"{BASELINE_RTTS}rtt",
            "at_least": round(least, 4),
        },
        {
            "name": f"goodput with one NIC port down within 5 points of {topology.planes - 1}/{topology.planes}",
            "measure": "goodput",
            "of": nic,
            "during": port["name"],
            "skip": f"{SETTLE_RTTS}rtt",
            "relative_to": "baseline",
            "at_least": round(wanted - PORT_SHARE_TOLERANCE, 4),
            "at_most": round(wanted + PORT_SHARE_TOLERANCE, 4),
        },
    ]


def _length_rtts(topology: Topology, tensor_mib: int, method: list[dict[str, Any]]) -> int:
    """When the run is over at the latest: room for the last steps, which a large tensor or a slow port makes long."""
    last = method[-1]
    rate_bps = topology.planes * min([topology.rate_bps, *topology.link_rates_bps.values()])
    step_ns = 2 * tensor_mib * MIB * 8 * NS_PER_S // rate_bps
    steps_rtts = STEPS_MAX * (1 + step_ns // topology.base_rtt_ns())
    return int(last["at"].removesuffix("rtt")) + OUTAGE_RTTS + LINGER_RTTS + RECOVERY_RTTS + steps_rtts


def _check_sizes(topology: Topology, tensor_mib: int, buckets: int) -> None:
    if not 1 <= tensor_mib <= TENSOR_MIB_MAX:
        raise ConfigError(f"--tensor-mib {tensor_mib}", "impossible", f"1 to {TENSOR_MIB_MAX}")
    most = min(1023, tensor_mib * MIB // (4 * topology.nics))
    if not 1 <= buckets <= most:
        raise ConfigError(f"--buckets {buckets}, --tensor-mib {tensor_mib}", "impossible", f"1 to {most} buckets")


def link_name(topology: Topology, plane: int, t0: int, t1: int) -> str:
    """The cable between a T0 and a T1 of a plane."""
    return topology.parse_link(f"{t0_name(plane, t0)}~{t1_name(plane, t1)}").name


def spread(count: int, over: int) -> list[int]:
    """`count` different numbers below `over`, as far apart as they can be."""
    return [place * over // count for place in range(count)]


def payload_share(mtu_bytes: int) -> float:
    """What full packets leave of line rate for payload."""
    return mtu_bytes / (mtu_bytes + DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES)


def check_wide(topology: Topology) -> None:
    """Raises ConfigError where the uplinks of a T0 do not carry all that its NICs can send.

    All traffic of the demonstration crosses T1s: it would be congested before anything breaks, and what a NIC gets,
    with a port down too, would be what the others leave it. Neither can be held against line rate.
    """
    for t0 in topology.switch_names():
        if topology.parse_node(t0).tier != "t0":
            continue
        down = up = 0
        for end in topology.ports(t0):
            rate_bps = topology.link_rates_bps.get(end.link, topology.rate_bps)
            down, up = (down + rate_bps, up) if end.towards == "nic" else (down, up + rate_bps)
        if up < down:
            found = f"{t0} has uplinks for {up / down:.0%} of what its NICs send, and the demonstration needs all of it"
            hint = "t1_per_plane not below nics_per_t0, no slow links; `mrcfabric run` and `perf` take any"
            raise ConfigError("topology", found, hint)
