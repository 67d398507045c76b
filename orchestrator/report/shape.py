"""What a report holds, key by key: the types from which `docs/schema/report.json` is made and readers are checked.

Owns the descriptions; `report` fills the keys. Instants are fabric time in nanoseconds.
`python -m orchestrator.report.shape` prints the schema; a test compares it with the document.
"""

import json
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypedDict

import msgspec

from orchestrator.measures.judge import Outcome

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/{name}"

Number: TypeAlias = float | int


def _said(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class Finding(TypedDict):
    """What came of one expectation."""

    name: str
    measure: Annotated[str, _said("A key of the table of measures.")]
    of: Annotated[list[str], _said("Of what, as asked; empty: of all together.")]
    during: Annotated[str, _said("The span, in words.")]
    bin_ns: Annotated[int | None, _said("One figure per bin of this width; null: one for the whole span.")]
    per_name: Annotated[bool, _said("The figures of each name became one by themselves.")]
    reduce: Annotated[str, _said("How many figures became one.")]
    unit: Annotated[str, _said("Of the bounds and of what was observed.")]
    at_least: Number | None
    at_most: Number | None
    held: bool
    observed: Annotated[Number | None, _said("The worst figure; null: there was none.")]
    observed_of: Annotated[str, _said("What the worst figure is of; empty: of all together.")]
    start_ns: Annotated[int | None, _said("Where in time the worst figure is.")]
    end_ns: int | None
    figures: Annotated[int, _said("How many figures were judged.")]
    outside: Annotated[int, _said("How many of them were outside the bounds.")]
    why: Annotated[str, _said("Why nothing was observed.")]
    text: Annotated[str, _said("The whole finding in one line.")]


class Baseline(TypedDict):
    """Goodput of all NICs before the first fault."""

    start_ns: int
    end_ns: int
    goodput_bps: Number
    line_share: Number


class Failure(TypedDict):
    """A rank that did not get to its end."""

    nic: str
    reason: str


# The key "from" is no name in Python.
Flow = TypedDict(
    "Flow", {"from": str, "to": str, "bytes": int, "messages": int, "first_ns": int, "last_ns": int}, total=True
)


class Quantiles(TypedDict):
    """By nearest rank."""

    p50: int
    p95: int
    p99: int
    p999: int
    max: int


class AttemptRow(TypedDict):
    """One attempt of a job, up to the failure that ended it."""

    attempt: int
    first_step: int
    begin_ns: int
    steps: Annotated[int, _said("Complete by its end, those before its first included.")]
    checkpoints: int
    failed_ns: Annotated[int | None, _said("When its first rank failed; null: none did.")]
    nic: str
    reason: str
    halted_ns: Annotated[int | None, _said("When all its ranks were ended.")]
    resume_step: Annotated[int, _said("The step with which the next attempt begins.")]
    tries: Annotated[int, _said("Restarts tried in vain, because a NIC was dead.")]


class JobBill(TypedDict):
    """What a job took. Its time is useful, checkpoint, redone, hung and down time together."""

    restarts: int
    steps: Annotated[int, _said("Those that count.")]
    steps_lost: Annotated[int, _said("Complete steps that a restart, or the failure of the job, threw away.")]
    steps_redone: int
    useful_ns: int
    checkpoint_ns: int
    redone_ns: int
    hung_ns: int
    down_ns: int
    total_ns: int
    idle_gpu_ns: Annotated[int, _said("Ranks times the time hung and down.")]
    availability: Annotated[float, _said("The useful share.")]
    gpu_hour_cents: int
    cost: Annotated[float, _said("Of the whole job, in whole units of money.")]
    cost_of_failures: Annotated[float, _said("Of what was done in vain, and of standing still.")]
    attempts: list[AttemptRow]


class Work(TypedDict):
    """What came of one workload."""

    name: str
    kind: str
    done: Annotated[bool, _said("Every rank did all it had to.")]
    ranks: int
    states: Annotated[dict[str, int], _said("Ranks by state: running, done, failed, lost.")]
    failures: list[Failure]
    begin_ns: int
    end_ns: int
    messages: Annotated[int, _said("Messages received.")]
    bytes_received: int
    bytes_verified: Annotated[int, _said("Bytes compared with what they had to be.")]
    bytes_wrong: int
    goodput_bps: Annotated[Number, _said("Bytes of whole messages over the time from begin to end.")]
    steps: Annotated[int, _said("Steps that all ranks have finished.")]
    step_time_ns: Annotated[Quantiles | None, _said("Over all steps of all ranks.")]
    stall_ns: Annotated[Quantiles | None, _said("Waiting after the computation of a step was over.")]
    step_times_ns: Annotated[list[int], _said("Sorted; thinned out evenly when there are very many.")]
    latency_ns: Annotated[Quantiles | None, _said("Of messages, from posting to completion.")]
    flows: Annotated[list[Flow], _said("As received; the first thousand or so.")]
    job: Annotated[JobBill | None, _said("The bill of a training job; null for other work.")]


class FaultRow(TypedDict):
    """A fault as it took place, and what it cost. Goodput as a share of line; null: there was nothing to be seen."""

    id: str
    kind: str
    title: str
    targets: list[str]
    parts: Annotated[list[str], _said("Nodes or cables that a fault about hosts came to; empty: the targets.")]
    owner: str
    windows: Annotated[
        list[tuple[int, int | None, dict[str, int | str | bool | None]]],
        _said("[start, end, figures] in time order; end null: until healed."),
    ]
    why: Annotated[str, _said("The condition that set it off; empty: the timetable.")]
    met_packets: Annotated[
        int | None, _said("Packets that met it; 0: it was not tried. null: nobody counted, or it concerns no packets.")
    ]
    healed_ns: int | None
    over_ns: Annotated[int | None, _said("When it was over; null: it lasted as long as the run.")]
    line_bps: Annotated[Number | None, _said("The line of those that take part in the work, all together.")]
    goodput_before: Number | None
    goodput_during: Number | None
    goodput_after: Number | None
    packets_lost: int
    retransmissions: int
    duplicates: Annotated[int, _said("Data packets received twice: sent again for nothing, or copied by a link.")]
    evs_retired: Annotated[int | None, _said("None, as the next, where NICs have no EVs.")]
    evs_reinstated: Annotated[int | None, _said("Entries of EVs into GOOD or SKIP.")]
    avoidance_rtts: Number | None
    detection_rtts: Number | None
    recovery_rtts: Annotated[
        Number | None,
        _said("From its start to what can be had while it bites (`leaves`), all by default; null: not seen in time."),
    ]
    recovery_wall_ms: Annotated[Number | None, _said("The same in wall time; null in virtual time.")]
    recovery_after_rtts: Annotated[Number | None, _said("From its end to all of it.")]


class LinksFound(TypedDict):
    """What the mapper held from one of its looks on."""

    at_ns: int
    bad: Annotated[list[str], _said("Dead switches, then links.")]
    avoided: Annotated[list[str], _said("Those of them that NICs were kept off.")]
    kept: Annotated[dict[str, str], _said("Bad ones that NICs went on using, and why.")]


class Timeline(TypedDict):
    """Goodput per plane in bins of one width."""

    start_ns: int
    bin_ns: int
    planes_gbps: Annotated[list[list[Number]], _said("Bin by bin, one figure per plane.")]


class Evs(TypedDict):
    """EVs of all QPs by state, look by look."""

    at_ns: list[int]
    states: dict[str, list[int]]


class Ahead(TypedDict):
    """One class of the reorder histogram."""

    ahead: Annotated[int, _said("So many PSNs ahead of the next expected one, and fewer than twice as many.")]
    packets: int


class HostPair(TypedDict):
    """What a host has seen of a peer, or of itself, in wall time."""

    host: str
    peer: Annotated[str, _said("The host itself: its own nodes among each other.")]
    clock_offset_s: Annotated[Number | None, _said("What the wall clock of the peer shows more; null: not known.")]
    clock_error_s: Annotated[Number | None, _said("How far off that may be, either way.")]
    clock_drift_ppm: Annotated[Number | None, _said("How much faster the clock of the peer goes, in millionths.")]
    clock_drift_error_ppm: Number | None
    clock_jumps: Annotated[int, _said("How often one of the two monotonic clocks has jumped.")]
    round_trip_s: Annotated[Number | None, _said("The quickest way there and back of the last minute.")]
    path_mtu: Annotated[int | None, _said("Largest IP packet that reaches the peer whole; null: no frames go there.")]
    waited_s: Annotated[Number, _said("Waits of nodes of the host for nodes of the peer, summed over nodes.")]
    ran_s: Annotated[Number, _said("The time over which that was looked at.")]
    late_frames: Annotated[int, _said("From the peer, as far as daemons that have died had told.")]
    host_drops: Annotated[int, _said("Frames from the peer that never came.")]


class Report(TypedDict):
    """The report of one run of a scenario."""

    format: Annotated[int, _said("Grows when a key changes its meaning or goes away.")]
    kind: Literal["scenario"]
    name: str
    description: str
    verdict: Outcome
    exit_code: Annotated[int, _said("0 held, 1 not held, 3 not valid, 4 lost, 130 interrupted.")]
    reasons: Annotated[list[str], _said("Why not everything held, the gravest first.")]
    notes: Annotated[list[str], _said("What to know before believing a figure.")]
    findings: list[Finding]
    backend: Literal["udp", "sim"]
    seed: str
    system: NotRequired[
        Annotated[
            str, _said("The system whose settings lie beneath; without one the transport. Older reports lack it.")
        ]
    ]
    cores: NotRequired[
        Annotated[
            Literal["compiled", "python"],
            _said("Which cores ran: compiled, or the same sources as pure Python. The results are the same."),
        ]
    ]
    ended: Literal["complete", "length", "stalled", "interrupted", "lost"]
    lost: Annotated[str, _said("Which daemon died outside the timetable, with its last log lines.")]
    begin_ns: int
    end_ns: int
    second_ns: Annotated[int, _said("Fabric time of one second of the timetable.")]
    base_rtt_ns: int
    settings_digest: str
    settings: Annotated[dict[str, Any], _said("The topology, whole.")]
    scenario: Annotated[dict[str, Any], _said("The scenario with its overrides: what to run to do it again.")]
    baseline: Baseline | None
    totals: dict[str, int]
    retransmissions: Annotated[dict[str, int], _said("Packets by cause.")]
    drops: Annotated[dict[str, int], _said("Packets by reason, of NICs and switches; reasons that occurred.")]
    programs: list[Work]
    faults: list[FaultRow]
    links: NotRequired[
        Annotated[
            list[LinksFound] | None,
            _said("Every change of what the mapper held; null: the run had none. Older reports lack it."),
        ]
    ]
    timeline: Timeline
    evs: Evs
    reorder: list[Ahead]
    fidelity: Annotated[
        dict[str, Any], _said("How faithful the emulation was; in virtual time without figures of the wall clock.")
    ]
    between_hosts: Annotated[list[HostPair], _said("Every host and its peers; empty where there is but one, or none.")]
    trace_digest: Annotated[str, _said("Over all that every node did; empty: no trace was kept.")]
    wall: Annotated[dict[str, Number] | None, _said("Wall seconds; null in virtual time.")]


def schema() -> dict[str, Any]:
    """The JSON Schema of a report, as plain data in a stable order."""
    (_, parts) = msgspec.json.schema_components((Report,), ref_template=_REF)
    for part in parts.values():
        part["additionalProperties"] = False
    root = parts.pop("Report")
    return {"$schema": DIALECT, **root, "title": "Report of a run", "$defs": dict(sorted(parts.items()))}


def document() -> str:
    """The schema as text, as it is published."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(document(), end="")
