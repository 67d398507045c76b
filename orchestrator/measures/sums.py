"""Sums over a whole fabric: the totals of all counters, and how faithful the emulation was.

Pure functions over the daemons' answers to `counters`. This module defines the keys of the results, for reports and for
`mrcfabric status`; the daemons count.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Counters: TypeAlias = Mapping[str, Any]

LATE_SHARE_MAX = 0.001
"""A run with a greater share of late frames, or with any host drop, is not valid."""

_NIC_SUMS = ("data_packets", "payload_bytes", "bytes_placed", "ev_skips", "qp_errors", "packets_lost")
_BAD_STATES = ("assumed_bad", "denied")


def totals(nics: Iterable[Counters], switches: Iterable[Counters]) -> dict[str, int]:
    """The totals of the fabric, under the names that reports use.

    `retransmits` over all causes; `trims` and `ecn_marks` as the switches made them; `drops` over all reasons of NICs
    and switches; `ev_skips` entries into SKIP; `ev_transitions` entries into ASSUMED_BAD or DENIED.
    """
    found = dict.fromkeys((*_NIC_SUMS, "retransmits", "trims", "ecn_marks", "drops", "ev_transitions", "forwarded"), 0)
    for nic in nics:
        core = nic["core"]
        for name in _NIC_SUMS:
            found[name] += core[name]
        found["retransmits"] += sum(core["retransmits"].values())
        found["drops"] += sum(core["drops"].values())
        found["drops"] += sum(sum(port["drops"].values()) for port in core["ports"].values())
        found["ev_transitions"] += sum(
            count for key, count in core["ev_transitions"].items() if key.partition(":")[0].lower() in _BAD_STATES
        )
    for switch in switches:
        core = switch["core"]
        found["forwarded"] += core["packets"]
        found["trims"] += core["trimmed"]
        found["ecn_marks"] += core["marks"]
        found["drops"] += sum(core["drops"].values())
    return found


def fidelity(nodes: Iterable[Counters], time: Mapping[str, Any]) -> dict[str, Any]:
    """How faithful the run was; `time` is `Timekeeper.record()`.

    `late_share`: the share of taken frames that were handled after their arrival time. `host_drops`: frames that the
    kernel lost. `valid`: whether the figures of the run may be believed.
    """
    frames = late = late_max_ns = drops = late_commands = bad = refused = unknown = 0
    for node in nodes:
        record = node["fidelity"]
        frames += record["frames_in"]
        late += record["late_frames"]
        late_max_ns = max(late_max_ns, record["late_ns_max"])
        late_commands += record["late_commands"]
        drops += record["host_drops"]
        bad += record["bad_frames"]
        refused += record["refused_frames"]
        unknown += record["unknown_flags"]
    late_share = late / frames if frames else 0.0
    return {
        "dilation_nominal": time["dilation_nominal"],
        "dilation_effective": time["dilation_effective"],
        "fabric_ns": time["fabric_ns"],
        "run_wall_s": time["run_wall_s"],
        "frames": frames,
        "late_share": late_share,
        "late_max_ns": late_max_ns,
        "late_commands": late_commands,
        "host_drops": drops,
        "bad_frames": bad,
        "refused_frames": refused,
        "unknown_flags": unknown,
        "valid": not doubts(frames, late, drops, refused, unknown),
    }


def doubts(frames: int, late: int, host_drops: int, refused: int = 0, unknown: int = 0) -> list[str]:
    """Why figures may not be believed, in words; empty when they may.

    Arguments: frames taken, late ones, lost ones, those refused because the clock page knows no life that sent them,
    and those refused for a flag that the receiver does not know.
    """
    found = []
    if host_drops:
        found.append(f"{host_drops:,} frames that were sent were lost by the host")
    if late > frames * LATE_SHARE_MAX:
        found.append(f"{late:,} of {frames:,} frames came late")
    if refused:
        found.append(f"{refused:,} frames were refused: the clock page knows of no life that sent them")
    if unknown:
        found.append(f"{unknown:,} frames were refused: they have flags that their receiver does not know")
    return found
