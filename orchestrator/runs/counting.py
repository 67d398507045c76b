"""What a daemon answers to `counters`, laid flat for the recording.

Pure. Owns the names of flat counters: a counter keeps its own, one with labels is `name.label`, ports are summed.
Gauges, which say how things stand and not what happened, are read by their own functions.
"""

from collections.abc import Mapping
from typing import Any, Final

from mrcfabric.impairment import LOSS_REASONS
from nicd.core.rc.rc_stats import COUNTERS
from orchestrator.measures.recording import RATES

_GAUGES: Final = ("rtt_min_ns", "rtt_max_ns")
_LABELLED: Final = ("retransmits", "trims", "drops", "cwnd_cuts", "ahead")
_SWITCH: Final = ("packets", "marks", "trimmed", "trim_admitted", "trim_dropped", "received")


OF_PORTS: Final = ("sent.", "met.", "lost.", "named.", "asked.")
"""How the names of what `flat_ports` counts begin."""


def flat_nic(core: Mapping[str, Any]) -> dict[str, int]:
    """Of a NIC: counters, `ev_in.<state>` for entries into a state, `rc.<name>` of the RC transport, and those of
    `flat_ports` and `flat_pauses`."""
    counts = {
        name: value
        for name, value in core.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in _GAUGES
    }
    for name in _LABELLED:
        for label, count in core.get(name, {}).items():
            counts[f"{name}.{label}"] = count
    for key, count in core["ev_transitions"].items():
        state = f"ev_in.{key.partition(':')[0]}"
        counts[state] = counts.get(state, 0) + count
    for port in core["ports"].values():
        for reason, count in port["drops"].items():
            counts[f"drops.{reason}"] = counts.get(f"drops.{reason}", 0) + count
    counts |= {f"rc.{name}": count for name, count in core.get("rc", {}).items() if name in COUNTERS}
    return counts | flat_ports(core) | flat_pauses(core)


def flat_switch(core: Mapping[str, Any]) -> dict[str, int]:
    """Of a switch. `hashed`: packets that went to an up-link by a hash, where there is one."""
    counts = {name: core[name] for name in _SWITCH}
    if "ecmp" in core:
        counts["hashed"] = sum(core["ecmp"].values())
    for reason, count in core["drops"].items():
        counts[f"drops.{reason}"] = count
    return counts | flat_ports(core) | flat_pauses(core)


def flat_pauses(core: Mapping[str, Any]) -> dict[str, int]:
    """Of a node whose ports have traffic classes: pause frames sent, pauses obeyed, and how long classes stood still.

    Nothing for a node without them.
    """
    ports = [port for port in core["ports"].values() if "classes" in port]
    if not ports:
        return {}
    classes = [told for port in ports for told in port["classes"].values()]
    return {
        "pause_frames": sum(port["control_frames"] for port in ports),
        "pauses": sum(told["pauses"] for told in classes),
        "pause_ns": sum(told["pause_ns"] for told in classes),
    }


def flat_ports(core: Mapping[str, Any]) -> dict[str, int]:
    """`sent.<port>` and `met.<port>`: packets that left a port, and those of them that met a fault of the link.
    `lost.<reason>.<port>`: those that one lost. `named.<number>.<port>`: those that one lost by their number.
    `asked.<port>`: pauses that a port asked for, or packets of which it kept the credit back."""
    counts = {}
    for port, told in core["ports"].items():
        counts[f"sent.{port}"] = told["packets"]
        counts[f"met.{port}"] = told["met"]
        counts |= {
            f"lost.{reason}.{port}": told["drops"][reason] for reason in LOSS_REASONS if told["drops"].get(reason)
        }
        counts |= {f"named.{number}.{port}": count for number, count in told["named_losses"].items()}
        counts[f"asked.{port}"] = told.get("control_frames", told.get("withheld", 0))
    return counts


def without_ports(counts: Mapping[str, int]) -> dict[str, int]:
    """Everything but those."""
    return {name: count for name, count in counts.items() if not name.startswith(OF_PORTS)}


def windows_of(core: Mapping[str, Any]) -> dict[str, int]:
    """Of a NIC: its windows, by the names of `recording.WINDOWS`."""
    told = core["windows"]
    return {"cwnd": told["cwnd_bytes"], "cwnd_min": told["cwnd_bytes_min"], "inflight": told["inflight_bytes"]}


def rates_of(core: Mapping[str, Any]) -> dict[str, int]:
    """Of a NIC: the rates of its RC QPs, by the names of `recording.RATES`; empty without such QPs."""
    told = core.get("rc")
    return {} if not told or not told["rate_bps_mean"] else {name: told[f"rate_bps_{name}"] for name in RATES}


def queues_of(core: Mapping[str, Any]) -> tuple[int, int]:
    """Bytes that wait in the fullest port of a node, and the most data that ever waited in one."""
    ports = core["ports"].values()
    return (
        max((port["data_bytes"] + port["control_bytes"] for port in ports), default=0),
        max((port["data_bytes_peak"] for port in ports), default=0),
    )


def plane_states(core: Mapping[str, Any], planes: int) -> list[dict[str, int]]:
    """Per plane: EVs of all QPs of a NIC by state."""
    return [dict(core["ev_states"][str(plane)]) for plane in range(planes)]


def ports_of(core: Mapping[str, Any]) -> list[bool]:
    """Per plane: whether the port has carrier."""
    ports = core["ports"]
    return [bool(ports[str(plane)]["carrier"]) for plane in range(len(ports))]
