"""The agent's own metrics, at `/metrics`: the fabric as a whole, its faults, its fidelity and its map of links.

Owns their definitions, what they read, and the list of all metrics (`SECTIONS`). `mrcfabric.metrics` renders them. The
agent's series carry the label of the fabric and the labels that their definitions name.
"""

import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any, Final

import nicd.metrics
import switchd.metrics
from mrcfabric.metrics import (
    BYTES_PER_BIT,
    COMMON,
    NS,
    Counters,
    Definition,
    Reader,
    Sample,
    by_key,
    families_of_host,
    text,
    value,
)
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.faults.kinds import KINDS

PAIR: Final = ("host", "peer")
TARGETS_CHARS_MAX: Final = 60
"""How much of a fault's targets fits into the label; `mrcfabric fault list` shows all."""
FIDELITY_WALL_S: Final = 0.5
"""How long to wait for a daemon's fidelity; after that its previous answer counts. The agent must answer a scrape
within a second, even while one of its daemons is silent."""


def _nodes(reading: Counters) -> Iterator[Sample]:
    for plane, node, role, alive in reading["nodes"]:
        yield None, (plane, node, role), int(alive)


def _build(reading: Counters) -> Iterator[Sample]:
    build = reading["build"]
    yield None, (build["version"], build["python"], build["system"]), 1


def _fault(reading: Counters) -> Iterator[Sample]:
    for labels in reading["faults_in_force"]:
        yield None, labels, 1


def _of_pairs(name: str, scale: float = 1) -> Reader:
    """Read a figure for each host and peer for which it is known."""

    def read(reading: Counters) -> Iterator[Sample]:
        for row in reading["host_pairs"]:
            if row[name] is not None:
                yield None, (row["host"], row["peer"]), row[name] * scale

    return read


def _of_map(name: str) -> Reader:
    """Read one table of the map of links, by the values of its labels; nothing before the first map."""

    def read(reading: Counters) -> Iterator[Sample]:
        for labels, number in reading["links"].get(name, {}).items():
            yield None, labels, number

    return read


DEFINITIONS = (
    Definition("agent_build_info", "gauge", "1",
               "The versions of mrcfabric and of Python, and the system (mrc, roce, ...), as labels; always 1.",
               "What is running?", _build, ("version", "python", "system")),
    Definition("agent_fabric_time_seconds", "counter", "seconds", "Fabric time that every living node has reached.",
               "How old is this fabric?", value("time", "fabric_ns", scale=NS)),
    Definition("agent_awake_seconds", "counter", "seconds", "Wall time in which fabric time went on.",
               "How long has the fabric worked for that?", value("time", "run_wall_s")),
    Definition("agent_time_running", "gauge", "0 or 1",
               "1 while fabric time goes on; 0 while nothing is pending anywhere, or at a limit.",
               "Is a rate of 0 a fault, or does the fabric just sleep?", value("running")),
    Definition("agent_dilation_effective", "gauge", "ratio", "Wall time over fabric time so far.",
               "How much slower than life is the emulation?", value("dilation")),
    Definition("agent_dilation_nominal", "gauge", "ratio",
               "The fastest pace that was asked for, wall time over fabric time; 0: as fast as the machine goes.",
               "Is the emulation slower than it was meant to be?", value("time", "dilation_nominal")),
    Definition("agent_valid", "gauge", "0 or 1",
               "1 as long as the emulation is faithful: no frame lost by the host, hardly any late.",
               "May the figures be believed?", value("valid")),
    Definition("agent_counted", "counter", "times",
               "Totals over the whole fabric since its launch, all lives of all nodes included, as in `status`.",
               "What has happened at all, nodes that died since included?", by_key("totals"), ("what",)),
    Definition("agent_lives_untold", "counter", "lives",
               "Lives that were ended from outside before they had told all they counted: the totals lack their end.",
               "Are the totals complete?", value("untold")),
    Definition("agent_base_rtt_seconds", "gauge", "seconds", "Round trip of a full packet across an empty plane.",
               "What should a round trip take?", value("base_rtt_ns", scale=NS)),
    Definition("agent_line_rate_bytes_per_second", "gauge", "bytes per second",
               "What one port is built for, unless a link has a rate of its own, in fabric time, framing included.",
               "How much could a plane carry per NIC?", value("rate_bps", scale=BYTES_PER_BIT)),
    Definition("agent_daemons", "gauge", "daemons", "Daemons of the fabric.", "How large is it?", value("daemons")),
    Definition("agent_daemons_alive", "gauge", "daemons", "Daemons that run.", "Is any of them gone?", value("alive")),
    Definition("agent_node_up", "gauge", "0 or 1", "1 while the node's process runs.", "Which nodes are dead?", _nodes,
               ("plane", "node", "role")),
    Definition("agent_faults_active", "gauge", "faults", "Faults in force, by kind.", "What is broken right now?",
               by_key("faults_active"), ("kind",)),
    Definition("agent_fault_active", "gauge", "1", "1 for each fault in force; its targets are shortened.",
               "Which fault explains what the other figures show?", _fault, ("fault", "kind", "targets", "owner")),
    Definition("agent_faults_injected", "counter", "faults", "Faults injected so far, by kind.",
               "How much has been done to this fabric?", by_key("faults_injected"), ("kind",)),
    Definition("agent_links", "gauge", "links",
               "Links by what the latest map thinks of them; none before the first map, as in the next four.",
               "Which links does the mapper find bad?", _of_map("links"), ("plane", "kind", "verdict")),
    Definition("agent_dead_switches", "gauge", "switches", "Switches that are dead in it.",
               "Does the mapper blame a whole switch?", _of_map("dead")),
    Definition("agent_link_looks", "counter", "looks", "Looks of the watch over the links.",
               "Is anybody watching the links?", _of_map("looks")),
    Definition("agent_link_accusations", "counter", "times", "Links and switches found bad by it, each time anew.",
               "How often does it find something?", _of_map("accusations")),
    Definition("agent_link_rules", "gauge", "rules", "Bad links and switches that are avoided, and those kept in use.",
               "What has been done about it?", _of_map("rules"), ("outcome",)),
    Definition("agent_host_clock_offset_seconds", "gauge", "seconds",
               "What the wall clock of the peer shows more than that of the host; of one host alone there is none.",
               "Do the clocks of the machines agree?", _of_pairs("clock_offset_s"), PAIR),
    Definition("agent_host_clock_error_seconds", "gauge", "seconds", "How far off that may be, either way.",
               "May the offset be believed?", _of_pairs("clock_error_s"), PAIR),
    Definition("agent_host_clock_drift_ratio", "gauge", "ratio",
               "How much faster the clock of the peer goes; from half a minute after the start on.",
               "Does anybody keep the time of these machines?", _of_pairs("clock_drift_ppm", 1e-6), PAIR),
    Definition("agent_host_round_trip_seconds", "gauge", "seconds",
               "The quickest way there and back, over TCP, of the last minute.",
               "How fast can fabric time go across this network?", _of_pairs("round_trip_s"), PAIR),
    Definition("agent_host_path_mtu_bytes", "gauge", "bytes",
               "The largest IP packet that reaches the peer in one piece, as measured at the start.",
               "Which frames fit?", _of_pairs("path_mtu"), PAIR),
    Definition("agent_host_waited_seconds", "counter", "seconds",
               "Wall time that nodes of the host waited for news of nodes of the peer, summed over nodes.",
               "Who holds the fabric back?", _of_pairs("waited_s"), PAIR),
    Definition("agent_host_ran_seconds", "counter", "seconds", "Wall time over which that was looked at.",
               "How many nodes wait, on average?", _of_pairs("ran_s"), PAIR),
    Definition("agent_host_late_frames", "counter", "frames", "Frames from the peer that came to the host late.",
               "Which way is slower than fabric time allows?", _of_pairs("late_frames"), PAIR),
    Definition("agent_host_drops", "counter", "frames", "Frames from the peer that never came to the host.",
               "Where are frames lost?", _of_pairs("host_drops"), PAIR),
)  # fmt: skip

SECTIONS: Final[Mapping[str, tuple[Definition, ...]]] = {
    "Every daemon": COMMON,
    "NICs": nicd.metrics.DEFINITIONS,
    "Switches": switchd.metrics.DEFINITIONS,
    "The agent": DEFINITIONS,
}
"""Every metric, by the kind of process that exposes it."""


def series_names() -> frozenset[str]:
    """Every series name that an expression may use."""
    return frozenset(name for section in SECTIONS.values() for one in section for name in one.series)


async def reading_of(fabric: LaunchedFabric, links: Mapping[str, Any]) -> dict[str, Any]:
    """Read everything that the definitions need; `links` is `LinkRequests.reading`. Asks each daemon its fidelity."""
    topology, time, members = fabric.topology, fabric.time.record(), fabric.daemons.members
    await fabric.counters(timeout_s=FIDELITY_WALL_S, silent=[], parts=("fidelity",))
    active = fabric.active_faults()
    return {
        "build": {
            "version": version("mrcfabric"),
            "python": platform.python_version(),
            "system": topology.system_name,
        },
        "time": time,
        "dilation": time["dilation_effective"] or 0.0,
        "running": int(not fabric.time.page.asleep and not fabric.time.standing),
        "valid": int((await fabric.fidelity())["valid"]),
        "totals": await fabric.totals(),
        "untold": len(await fabric.untold()),
        "base_rtt_ns": topology.base_rtt_ns(),
        "rate_bps": topology.rate_bps,
        "daemons": topology.nodes,
        "alive": sum(member.alive for member in members.values()),
        "nodes": [(*_place(fabric, node), member.alive) for node, member in members.items()],
        "faults_active": dict.fromkeys(KINDS, 0) | Counter(fault.kind for fault in active),
        "faults_in_force": [(fault.id, fault.kind, _shortened(fault.targets), fault.owner) for fault in active],
        "faults_injected": dict.fromkeys(KINDS, 0) | fabric.injector.injected,
        "links": links,
        "host_pairs": fabric.known_pairs(),
    }


def render(fabric: str, reading: Mapping[str, Any]) -> bytes:
    """Render the reading in the exposition format."""
    return text(families_of_host(DEFINITIONS, fabric, reading))


def _place(fabric: LaunchedFabric, node: str) -> tuple[str, str, str]:
    parsed = fabric.topology.parse_node(node)
    return ("" if parsed.tier == "nic" else str(parsed.plane)), node, parsed.tier


def _shortened(targets: Iterable[str]) -> str:
    whole = " ".join(targets)
    return whole if len(whole) <= TARGETS_CHARS_MAX else whole[: TARGETS_CHARS_MAX - 3] + "..."
