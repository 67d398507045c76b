"""A recording as a run fills it, small enough to be reckoned by hand, and whole enough to be drawn.

Two planes, four NICs, a training loop of eight steps and a bystander; two links of plane 1 flap, then a T1 reboots.
Everything follows from the constants: a test that needs another run changes the fields of what it gets.
"""

from typing import Any

from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.expectation import Expectation, Span
from orchestrator.measures.goodput import Goodput
from orchestrator.measures.job import Attempt, Job
from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import (
    Injected,
    Look,
    NicLook,
    ProgramResult,
    RankResult,
    Recording,
    Step,
)
from orchestrator.report.report import build
from orchestrator.scenario.plan import Plan

BIN = 5_000
BEGIN = 20_000
END = 520_000
"""The work is over at 500,000, the run one look later."""
WORK_END = 500_000
LOOK = 20_000
NICS = ("h000", "h001", "h002", "h003")
STEP = 60_000
COMPUTE = 20_000
FLAP = (120_000, 180_000)
REBOOT = (300_000, 360_000)
PLANE_BIN_BYTES = 56_250
"""Placed by one NIC in one plane and bin: 90 Gb/s of 100."""
FIDELITY: dict[str, Any] = {
    "frames": 10_000,
    "late_share": 0.0,
    "host_drops": 0,
    "bad_frames": 0,
    "refused_frames": 0,
    "unknown_flags": 0,
    "valid": True,
}


def sample_topology() -> Topology:
    """Two planes of two T0s and two T1s, four NICs, 100 Gb/s."""
    return Topology(name="sample", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16)


def sample_faults() -> list[Injected]:
    """A flap of two windows on two links, and a reboot that a trigger set off."""
    flap = Fault(
        "flaps",
        "flap",
        ("p1-t0-0~p1-t1-0", "p1-t0-0~p1-t1-1"),
        (Window(FLAP[0], FLAP[0] + 20_000, {}), Window(FLAP[1] - 20_000, FLAP[1], {})),
        owner="sample",
    )
    reboot = Fault(
        "kill", "switch_reboot", ("p0-t1-1",), (Window(*REBOOT, {}),), owner="sample", title="T1 <away> & back"
    )
    return [Injected(flap), Injected(reboot, why="steps of train at least 4")]


def sample_goodput() -> Goodput:
    """90 Gb/s per NIC and plane; plane 1 holds nothing for 20 us of the flap, plane 0 half for 20 us of the reboot."""
    goodput = Goodput(BIN, 2)
    for nic in NICS:
        bins = []
        for start in range(BEGIN, WORK_END, BIN):
            first = PLANE_BIN_BYTES // 2 if REBOOT[0] <= start < REBOOT[0] + 20_000 else PLANE_BIN_BYTES
            second = 0 if FLAP[0] <= start < FLAP[0] + 20_000 else PLANE_BIN_BYTES
            bins.append((start, [first, second]))
        goodput.enter(nic, bins)
    return goodput


def sample_look(at_ns: int) -> Look:
    """Counters that grow by the clock, and jump with the faults."""
    flapped, rebooted = at_ns > FLAP[0] + 10_000, at_ns > REBOOT[0] + 10_000
    bad = 4 if FLAP[0] < at_ns <= FLAP[1] + LOOK else 2 if REBOOT[0] < at_ns <= REBOOT[1] + LOOK else 0
    packets = (at_ns - BEGIN) // 100
    counts = {
        "data_packets": packets,
        "payload_bytes": packets * 4096,
        "bytes_placed": packets * 4096,
        "duplicates": 2 * flapped,
        "packets_lost": 10 * flapped + 6 * rebooted,
        "taken_back": 2 * flapped,
        "qp_errors": 0,
        "timeouts": 1 * rebooted,
        "ev_skips": packets // 1000,
        "retransmits.gap": 8 * flapped + 4 * rebooted,
        "retransmits.timeout": 2 * flapped + 2 * rebooted,
        "trims.path": 3 * flapped,
        "trims.last_hop": 1 * flapped,
        "drops.icrc": 0,
        "drops.psn_window": 1 * rebooted,
        "ev_in.assumed_bad": 4 * flapped + 2 * rebooted,
        "ev_in.good": 4 * (at_ns > FLAP[1] + LOOK) + 2 * (at_ns > REBOOT[1] + LOOK),
    }
    in_flap, in_reboot = flapped and at_ns <= FLAP[1] + LOOK, rebooted and at_ns <= REBOOT[1] + LOOK
    nics = {}
    for nic in NICS:
        evs = [
            {"good": 24 - bad * in_reboot, "skip": 0, "assumed_bad": bad * in_reboot, "denied": 0},
            {"good": 24 - bad * in_flap, "skip": 0, "assumed_bad": bad * in_flap, "denied": 0},
        ]
        nics[nic] = NicLook(dict(counts), evs, [packets // 2, packets - packets // 2], [True, True])
    worked = min(at_ns, WORK_END) - BEGIN
    flows = {f"train:{NICS[number - 1]}>{nic}": worked * 10 for number, nic in enumerate(NICS)}
    flows["aside:h000>h003"] = worked * 2
    switches = {"packets": packets * 12, "marks": packets // 50, "trimmed": 16 * flapped, "drops.unknown_usid": 0}
    steps = {"train": min(8, worked // STEP), "aside": 0}
    return Look(at_ns, nics, switches, flows, steps, dict(flows))


def sample_programs() -> list[ProgramResult]:
    """`train`: eight steps of 60 us, the third and the fifth 10 us longer at rank 1; `aside`: one flow."""
    ranks = []
    for number, nic in enumerate(NICS):
        steps = []
        for turn in range(8):
            begin = BEGIN + turn * STEP
            late = 10_000 if number == 1 and turn in (2, 4) else 0
            steps.append(Step(begin, begin + COMPUTE, begin + 50_000 + late))
        ranks.append(_rank(nic, number, steps, 4_800_000, NICS[number - 1]))
    return [
        ProgramResult("train", "training", ranks, Job(len(ranks), 200, [Attempt(0, 0, ranks[0].begin_ns)])),
        ProgramResult("aside", "p2p", [_rank("h000", 0, [], 0, ""), _rank("h003", 1, [], 960_000, "h000")]),
    ]


def _next(nic: str) -> str:
    return NICS[(NICS.index(nic) + 1) % len(NICS)]


def _rank(nic: str, number: int, steps: list[Step], received: int, sender: str) -> RankResult:
    flows = {sender: {"bytes": received, "messages": 48, "first_ns": BEGIN + 10_000, "last_ns": WORK_END}}
    return RankResult(
        nic,
        number,
        "done",
        begin_ns=BEGIN,
        end_ns=WORK_END,
        steps=steps,
        messages_sent=48,
        messages_received=48 if received else 0,
        bytes_sent=received,
        bytes_received=received,
        bytes_verified=received,
        latencies=[(_next(nic), BEGIN + 10_000 * turn, 9_000 + 50 * turn) for turn in range(48)],
        flows=flows if received else {},
    )


def sample_events() -> list[dict[str, Any]]:
    """What the NICs told of the two faults."""
    events: list[dict[str, Any]] = []
    for begin, plane, path, count in ((FLAP[0], 1, 0, 10), (REBOOT[0], 0, 1, 6)):
        for nic in NICS:
            lost = {
                "node": nic,
                "at_ns": begin + 12_000,
                "kind": "retransmit",
                "qpn": 1,
                "cause": "gap",
                "count": count,
            }
            bad = {"qpn": 1, "ev": 7, "plane": plane, "path": path, "source": "good", "target": "assumed_bad"}
            back = bad | {"source": "assumed_bad", "target": "good", "cause": "probe"}
            events += [
                lost,
                {"node": nic, "at_ns": begin + 14_000, "kind": "ev_transition", **bad, "cause": "loss", "section": "7"},
                {"node": nic, "at_ns": begin + 90_000, "kind": "ev_transition", **back, "section": "7"},
            ]
    return sorted(events, key=lambda event: (event["at_ns"], event["node"]))


def sample_recording(**changed: Any) -> Recording:
    """The whole run; `changed` replaces fields."""
    fields: dict[str, Any] = {
        "name": "sample",
        "backend": "sim",
        "seed": "paper",
        "topology": sample_topology(),
        "second_ns": 100_000,
        "begin_ns": BEGIN,
        "end_ns": END,
        "goodput": sample_goodput(),
        "looks": [sample_look(at_ns) for at_ns in range(BEGIN, END + 1, LOOK)],
        "programs": sample_programs(),
        "faults": sample_faults(),
        "events": sample_events(),
        "reorder": {0: 400, 1: 120, 2: 30, 5: 2},
        "fidelity": dict(FIDELITY),
        "trace_digest": "5f0c3ad1c0ffee00",
    }
    return Recording(**(fields | changed))


HOST_PAIR: dict[str, Any] = {
    "host": "vm1", "peer": "vm2", "clock_offset_s": -0.012, "clock_error_s": 0.0001, "clock_drift_ppm": 1.25,
    "clock_drift_error_ppm": 0.5, "clock_jumps": 0, "round_trip_s": 0.0002, "path_mtu": 1500, "waited_s": 30.0,
    "ran_s": 20.0, "late_frames": 0, "host_drops": 7,
}  # fmt: skip
_UNKNOWN = ("clock_offset_s", "clock_error_s", "clock_drift_ppm", "clock_drift_error_ppm", "round_trip_s", "path_mtu")
OWN_PAIR: dict[str, Any] = HOST_PAIR | dict.fromkeys(_UNKNOWN) | {"peer": "vm1", "ran_s": 0.0, "host_drops": 0}
"""A host and itself, before time has gone on."""

EXPECTED = (
    Expectation("steady", "goodput", during=Span("before"), at_least=0.85),
    Expectation("every bin", "goodput", bin_ns=LOOK, relative_to="baseline", at_least=0.8),
    Expectation("no QP fails", "qp_errors", at_most=0),
)
"""What is expected of the sample: the second does not hold."""


def sample_plan(recording: Recording, expectations: tuple[Expectation, ...] = EXPECTED) -> Plan:
    """The plan of which a recording is the outcome, as far as reports and judges ask for it."""
    return Plan(
        name=recording.name,
        description="two faults, nobody hurt",
        topology=recording.topology,
        seed=recording.seed,
        second_ns=recording.second_ns,
        begin_ns=recording.begin_ns,
        length_ns=WORK_END - BEGIN,
        settle_ns=LOOK,
        look_ns=LOOK,
        programs=(),
        faults=tuple(one.fault for one in recording.faults),
        triggers=(),
        expectations=expectations,
        source={"name": recording.name, "seed": recording.seed, "method": [{"fault": "flap"}]},
    )


def sample_run_report(expectations: tuple[Expectation, ...] = EXPECTED, **changed: Any) -> dict[str, Any]:
    """The report of the sample; `changed` replaces fields of the recording."""
    recording = sample_recording(**changed)
    return build(sample_plan(recording, expectations), recording, verdict(expectations, recording))
