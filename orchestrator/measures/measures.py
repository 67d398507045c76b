"""The measures: every figure that can be taken of a run, by name.

Owns the table, for expectations, conditions, scripts and the docs alike. `checking` checks expectations against it;
`rates`, `counts`, `durations`, `links` and `outcomes` compute the figures.
"""

from collections.abc import Mapping

from mrcfabric.errors import ConfigError
from mrcfabric.nearest import nearest_hint
from nicd.core.ev_state import EV_STATES
from nicd.core.stats import RETRANSMIT_CAUSES
from orchestrator.measures import counts, durations, links, optimum, outcomes, rates
from orchestrator.measures.drop_reasons import DROP_REASONS
from orchestrator.measures.job_measures import JOB_MEASURES
from orchestrator.measures.measure import Measure, Of, Unit
from orchestrator.measures.published_loss import BYTES_LOST
from orchestrator.measures.recording import RATES, WINDOWS

_ENTERED = tuple(state for state in EV_STATES if state != "skip")
_FIDELITY = (
    "dilation_nominal", "dilation_effective", "fabric_ns", "run_wall_s", "frames", "late_share", "late_max_ns",
    "late_commands", "host_drops", "bad_frames", "refused_frames", "unknown_flags", "valid",
)  # fmt: skip
_DROPS = tuple(DROP_REASONS)
_NIC = (Of.NIC,)
_LABELLED = (Of.NIC, Of.LABEL)


def _count(counter: str, meaning: str) -> Measure:
    return Measure(
        Unit.COUNT, meaning, counts.counted(counts.of_nics(counter)), _NIC, reduce="sum", binned=True, of_work=False
    )


def _of_switches(counter: str, meaning: str) -> Measure:
    take = counts.counted(counts.of_switches(counter))
    return Measure(Unit.COUNT, meaning, take, reduce="sum", binned=True, of_work=False)


def _labelled(prefix: str, meaning: str, labels: tuple[str, ...], *, switches: bool = False) -> Measure:
    take = counts.counted(counts.by_label(prefix, labels, switches=switches))
    return Measure(Unit.COUNT, meaning, take, _LABELLED, labels, reduce="sum", binned=True, of_work=False)


MEASURES: Mapping[str, Measure] = {
    "goodput": Measure(
        Unit.BPS,
        "New payload placed per time: into all NICs that receive, into a NIC, over a plane, of a program, of a flow "
        "(a bystander is a program by its name). A share of line rate unless it is told otherwise.",
        rates.goodput,
        (Of.NIC, Of.PLANE, Of.PROGRAM, Of.FLOW),
        binned=True,
        relative=("line", "baseline"),
        relative_default="line",
    ),
    "fairness": Measure(
        Unit.SHARE,
        "Jain's index over the rates of flows: 1 when all are equal.",
        rates.fairness,
        (Of.PROGRAM, Of.FLOW),
        binned=True,
    ),
    "max_min": Measure(
        Unit.SHARE,
        "What flows placed of what max-min gave them of the capacity that faults and the probes of a mapper left: all "
        "together, of a program, of a flow. What one has beyond its share does not make up for what another lacks. Of "
        "flows that always have something to send.",
        optimum.max_min,
        (Of.PROGRAM, Of.FLOW),
        binned=True,
    ),
    "plane_balance": Measure(
        Unit.SHARE,
        "What the least used plane carried, as a share of the mean over the planes: into all NICs, or out of one.",
        rates.plane_balance,
        _NIC,
        binned=True,
    ),
    "steps": Measure(
        Unit.COUNT,
        "Steps that all ranks of a program have finished.",
        counts.counted(counts.steps),
        (Of.PROGRAM,),
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "step_time": Measure(
        Unit.NS,
        "From begin to end of a step, of every rank.",
        durations.step_time,
        (Of.PROGRAM,),
        relative=("baseline",),
    ),
    "stall": Measure(
        Unit.NS,
        "What a rank waits in a step for the network when its computation is over.",
        durations.stall,
        (Of.PROGRAM,),
        relative=("baseline",),
    ),
    "latency": Measure(
        Unit.NS,
        "From posting to completion of a message, of those that completed in the span or bin; `reduce: p99` and such "
        "give percentiles, with `per_name` of each flow by itself.",
        durations.latency,
        (Of.PROGRAM, Of.FLOW),
        binned=True,
        relative=("baseline",),
    ),
    "recovery_rtts": Measure(
        Unit.RTT,
        "From a fault (`after` one: from its end) until goodput is 95 % of what it was before the first fault, or "
        "what it fell to by itself then (90 % at least), and stays so; averaged over `bin`, else over a step of the "
        "work, but at least two base RTTs.",
        durations.recovery_rtts,
        _NIC,
        of_faults=True,
    ),
    "avoidance_rtts": Measure(
        Unit.RTT,
        "From a fault to the last packet it cost as long as it bit.",
        durations.avoidance_rtts,
        _NIC,
        of_faults=True,
    ),
    "detection_rtts": Measure(
        Unit.RTT,
        "From a fault to the first entry of an EV into ASSUMED_BAD.",
        durations.detection_rtts,
        _NIC,
        of_faults=True,
    ),
    "mapping_rtts": Measure(
        Unit.RTT,
        "From a fault until the mapper of the scenario (`mapper`) held a link or switch bad that it struck.",
        links.mapping_rtts,
        of_work=False,
        of_faults=True,
    ),
    "links_bad": Measure(
        Unit.COUNT,
        "Links and switches that the mapper held bad: the most at a time.",
        links.held(lambda found: len(found.bad)),
        binned=True,
        of_work=False,
    ),
    "links_avoided": Measure(
        Unit.COUNT,
        "Those of them that NICs were kept off.",
        links.held(lambda found: len(found.avoided)),
        binned=True,
        of_work=False,
    ),
    "completed": Measure(
        Unit.SHARE,
        "Ranks that did all they had to.",
        outcomes.of_ranks(outcomes.done_share),
        (Of.PROGRAM,),
        of_work=False,
    ),
    **JOB_MEASURES,
    "bytes_lost": BYTES_LOST,
    "bytes_received": Measure(
        Unit.BYTES,
        "Bytes of whole messages received.",
        counts.counted(counts.received),
        (Of.PROGRAM, Of.FLOW),
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "bytes_verified": Measure(
        Unit.BYTES,
        "Bytes that programs compared with what they had to be.",
        outcomes.of_ranks(outcomes.verified),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "bytes_wrong": Measure(
        Unit.BYTES,
        "Those of them that were something else.",
        outcomes.of_ranks(outcomes.wrong),
        (Of.PROGRAM,),
        reduce="sum",
        of_work=False,
    ),
    "data_packets": _count("data_packets", "Data packets sent, retransmissions included."),
    "duplicates": _count(
        "duplicates",
        "Data packets that arrived though their bytes were there: sent again for nothing, or copied by a link.",
    ),
    "packets_lost": _count("packets_lost", "Packets that their sender judged lost, trimmed ones included."),
    "spurious": Measure(
        Unit.COUNT,
        "Those that had arrived: taken back before they were sent again (as their sender counts), or sent again for "
        "nothing and received twice (as the receiver counts).",
        counts.counted(counts.of_nics("taken_back", "duplicates")),
        _NIC,
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "timeouts": _count("timeouts", "Times a QP found packets silent for their whole RTO."),
    "qp_errors": _count("qp_errors", "QPs that failed."),
    "ev_skips": _count("ev_skips", "Entries of EVs into SKIP."),
    "ev_replacements": _count("ev_replacements", "EVs of the reserve that took the place of one that had failed."),
    "probes": _count("probes_sent", "Reliability probes sent, those that look for a way back included."),
    "probe_replies": _count("probe_replies", "Answers to them that came."),
    "window": Measure(
        Unit.BYTES,
        "At looks, of every NIC: its congestion windows together (`cwnd`), the smallest of them (`cwnd_min`), payload "
        "in flight (`inflight`).",
        counts.levels(counts.windows),
        _LABELLED,
        WINDOWS,
        of_needed=True,
        reduce="mean",
        binned=True,
    ),
    "queue": Measure(
        Unit.BYTES,
        "At looks: bytes that wait in the fullest port, of the fabric or of a node.",
        counts.levels(counts.queues),
        (Of.NODE,),
        reduce="max",
        binned=True,
        of_work=False,
    ),
    "queue_peak": Measure(
        Unit.BYTES,
        "The most data that ever waited in a port, of the fabric or of a node, by the end of the span or bin.",
        counts.standing(counts.queue_peaks),
        (Of.NODE,),
        reduce="max",
        binned=True,
        of_work=False,
    ),
    "retransmissions": _labelled("retransmits.", "Packets sent again, by cause.", RETRANSMIT_CAUSES),
    "retransmitted_bytes": Measure(
        Unit.BYTES,
        "Their payload.",
        counts.counted(counts.of_nics("retransmitted_bytes")),
        _NIC,
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "cnps": _count("rc.cnps_sent", "Congestion notifications (CNPs) that receivers sent; RC only."),
    "naks": _count("rc.naks_sent", "NAKs that receivers sent for a gap; RC only."),
    "pause_frames": Measure(
        Unit.COUNT,
        "Pause frames (PFC) that ports sent, those that end a pause included: of the fabric, or of a NIC.",
        counts.counted(counts.of_all("pause_frames")),
        _NIC,
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "paused": Measure(
        Unit.NS,
        "For how long traffic classes of ports were paused, summed over classes and ports: of the fabric, or of a NIC.",
        counts.counted(counts.of_all("pause_ns")),
        _NIC,
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "rc_rate": Measure(
        Unit.BPS,
        "At looks: what an RC QP may send on the wire, the mean over QPs; `min`: the lowest. A NIC without RC QPs has "
        "none.",
        counts.levels(counts.rates),
        _LABELLED,
        RATES[1:],
        reduce="mean",
        binned=True,
    ),
    "trims_received": _labelled("trims.", "Trimmed packets that NICs received, by where.", ("path", "last_hop")),
    "drops": _labelled("drops.", "Packets that were dropped, by reason.", _DROPS, switches=True),
    "ev_entries": _labelled("ev_in.", "Entries of EVs into a state; those into SKIP are `ev_skips`.", _ENTERED),
    "trims": _of_switches("trimmed", "Packets that switches trimmed."),
    "marks": _of_switches("marks", "Packets that switches marked."),
    "evs": Measure(
        Unit.COUNT,
        "EVs of all QPs in a state, at the end of the span or of every bin; `5:assumed_bad` of a plane.",
        counts.standing(counts.ev_states),
        (Of.NIC, Of.PLANE, Of.LABEL),
        EV_STATES,
        of_needed=True,
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "ports_down": Measure(
        Unit.COUNT,
        "NIC ports without carrier, at the end of the span or of every bin.",
        counts.standing(counts.ports_down),
        (Of.NIC, Of.PLANE),
        reduce="sum",
        binned=True,
        of_work=False,
    ),
    "faults_over": Measure(
        Unit.COUNT,
        "Faults that took place and were over when the run ended.",
        outcomes.faults_over,
        of_work=False,
    ),
    "fidelity": Measure(
        Unit.COUNT,
        "1 for a run whose figures may be believed, 0 for another; or a figure behind that.",
        outcomes.fidelity,
        (Of.LABEL,),
        _FIDELITY,
        of_work=False,
    ),
}


def find(name: str, where: str) -> Measure:
    """The measure of this name. Raises ConfigError, with the nearest name or all, when there is none."""
    measure = MEASURES.get(name)
    if measure is None:
        raise ConfigError(where, f"no measure is called {name!r}", nearest_hint(name, MEASURES))
    return measure
