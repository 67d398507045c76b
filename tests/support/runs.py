"""Plans small enough to be carried out in a second, and ways to carry them out."""

from pathlib import Path
from typing import Any

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault, Window
from orchestrator.hosts.cluster import Cluster
from orchestrator.measures.recording import Injected, LinksFound, Recording
from orchestrator.runs.backends import launched
from orchestrator.runs.backends import simulated as in_simulator
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.recorder import Recorder
from orchestrator.runs.runner import Runner
from orchestrator.scenario.plan import Plan, Trigger
from orchestrator.sim.backend import SimBackend

TOPOLOGY = Topology(name="runs", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
                    reserve_evs_per_qp=8)  # fmt: skip
RTT_NS = TOPOLOGY.base_rtt_ns()
BEGIN_NS = 10 * RTT_NS
END_NS = BEGIN_NS + 400 * RTT_NS


def pair(name: str = "pair", number: int = 0, **figures: Any) -> Program:
    """h000 sends to h001: 2 MiB, or what the figures say."""
    return Program(name, "p2p", number, (0, 1), BEGIN_NS, "seed", {"message_bytes": 1 << 17, "messages": 16, **figures})


def reboot(begin_rtts: int, lasting_rtts: int, node: str = "p0-t1-1") -> Fault:
    """A switch that goes away and comes back."""
    start_ns = BEGIN_NS + begin_rtts * RTT_NS
    return Fault(f"reboot-{node}", "switch_reboot", (node,), (Window(start_ns, start_ns + lasting_rtts * RTT_NS, {}),))


def after_bytes(received: int, fault: Fault) -> Trigger:
    """The fault, its windows counted from the look at which so many bytes have arrived."""

    def holds(recording: Recording) -> bool:
        return sum(recording.looks[-1].flows.values()) >= received

    return Trigger(f"when-{fault.id}", f"{received} bytes", holds, (fault,))


def offsets(fault: Fault) -> Fault:
    """The same with its windows counted from their first."""
    start_ns = fault.start_ns
    windows = tuple(Window(one.start_ns - start_ns, one.end_ns - start_ns, one.figures) for one in fault.windows)
    return Fault(fault.id, fault.kind, fault.targets, windows)


def plan(**changed: Any) -> Plan:
    """One pair of NICs with something to do, nothing broken."""
    fields: dict[str, Any] = {
        "name": "small",
        "description": "",
        "topology": TOPOLOGY,
        "seed": "seed",
        "second_ns": 100_000,
        "begin_ns": BEGIN_NS,
        "length_ns": END_NS - BEGIN_NS,
        "settle_ns": 20 * RTT_NS,
        "look_ns": 5 * RTT_NS,
        "programs": (pair(),),
        "faults": (),
        "triggers": (),
        "expectations": (),
    }
    return Plan(**(fields | changed))


class Ears:
    """An observer that shows nothing and writes down what it hears, with the instant."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Instant]] = []

    def began(self, plan: Plan, backend: str) -> None:
        self.heard.append((f"began {plan.name} on {backend}", 0))

    def looked(self, recording: Recording) -> None:
        self.heard.append(("looked", recording.looks[-1].at_ns))

    def injected(self, injected: Injected) -> None:
        self.heard.append((f"injected {injected.fault.id}", injected.fault.start_ns))

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None:
        self.heard.append((f"triggered {trigger.name}", at_ns))

    def mapped(self, found: LinksFound) -> None:
        self.heard.append((f"bad {' '.join(found.bad)}", found.at_ns))

    def ended(self, report: dict[str, Any]) -> None:
        self.heard.append((f"ended {report['verdict']}", report["end_ns"]))

    def closed(self) -> None:
        self.heard.append(("closed", 0))


async def simulated(what: Plan, *, trace: bool = False) -> Recording:
    """The recording of a plan in virtual time."""
    backend = SimBackend(what.topology, trace=trace)
    return await RunLoop(what, backend, Recorder(what, backend, trace=trace), Ears()).run()


async def conducted(what: Plan, backend: str, run_dir: Path, cluster: Cluster | None = None) -> Recording:
    """The recording of a plan on either backend, with a digest of all that happened; daemons stand on `cluster`."""
    open_backend = (
        in_simulator(what, trace=True) if backend == "sim" else launched(what, run_dir, trace=True, cluster=cluster)
    )
    return await Runner(open_backend, Ears(), trace=True).carry_out()
