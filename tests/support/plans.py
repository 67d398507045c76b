"""A small resolved plan: one workload, a flap by the timetable, a crash by a condition."""

from mrcfabric.topology import Topology
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.expectation import Expectation
from orchestrator.scenario.plan import Plan, Trigger

BEGIN_NS = 10_000
FLAP = Fault(
    "flaps",
    "flap",
    ("p0-t0-0~p0-t1-1",),
    (Window(40_000, 50_000, {}), Window(60_000, 70_000, {})),
    owner="sample",
    title="a link flaps",
)
CRASH = Fault("kill", "switch_crash", ("p1-t1-0",), (Window(0, 20_000, {}),), owner="sample", title="a T1 dies")


def sample_plan() -> Plan:
    """Two planes, two NICs, a hundred microseconds."""
    topology = Topology(name="sample", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16)
    return Plan(
        name="sample",
        description="A flap, and a crash after two steps.",
        topology=topology,
        seed="paper",
        second_ns=100_000,
        begin_ns=BEGIN_NS,
        length_ns=100_000,
        settle_ns=5_000,
        look_ns=5_000,
        programs=(Program("train", "training", 0, (0, 1), BEGIN_NS, "paper", {"steps": 4}),),
        faults=(FLAP,),
        triggers=(Trigger("kill", "steps of train at least 2", lambda recording: False, (CRASH,)),),
        expectations=(Expectation("goodput holds", "goodput", at_least=0.9),),
        source={"name": "sample"},
    )
