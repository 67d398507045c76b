"""Probes: what a fabric does, as plain figures for the tolerances of an experiment.

Every function is a Chaos Toolkit probe. docs/SCENARIOS.md lists the measures.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from chaosmrc.actions import ns_of
from chaosmrc.session import session_of
from mrcfabric.errors import ConfigError
from orchestrator.fabric import arguments

__all__ = [
    "all_nodes_up",
    "bytes_wrong",
    "emulation_valid",
    "faults",
    "measure",
    "nodes_down",
    "total",
    "untold",
    "workload_state",
]


def measure(
    measure: str,
    of: str | Sequence[str] = (),
    over_us: float | None = None,
    relative_to: str | None = None,
    reduce: str | None = None,
    configuration: Mapping[str, Any] | None = None,
) -> float | None:
    """The figure of a measure, over the last `over_us` of fabric time or since the experiment began to watch."""
    session = session_of(configuration)
    watch = session.watch()
    session.do(watch.look())
    given = {"of": of, "relative_to": relative_to, "reduce": reduce, "over_ns": ns_of("over_us", over_us)}
    bounds: Any = {key: value for key, value in given.items() if value is not None}
    return watch.figure(measure, **bounds)


def total(counter: str, configuration: Mapping[str, Any] | None = None) -> int:
    """A total over the whole fabric since its launch, over all lives of all nodes.

    `counter`: `retransmits`, `drops`, `trims`, `qp_errors` and others. For a life in `untold` the last counts are
    missing. Raises ConfigError for another name.
    """
    session = session_of(configuration)
    totals = session.do(session.fabric.totals())
    if arguments.text("counter", counter) not in totals:
        raise ConfigError("counter", f"{counter!r} is no total", "there are " + ", ".join(totals))
    return totals[counter]


def untold(configuration: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Lives that ended before they had reported all their counts: node, and from when to when counts are missing."""
    session = session_of(configuration)
    return [life._asdict() for life in session.do(session.fabric.untold())]


def faults(configuration: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """The faults that are not over, of this experiment and of others."""
    session = session_of(configuration)
    return [fault.record() for fault in session.do(session.fabric.live_faults())]


def nodes_down(configuration: Mapping[str, Any] | None = None) -> list[str]:
    """Nodes whose daemon does not run."""
    session = session_of(configuration)
    alive = session.do(session.fabric.counters())
    return [node for node in session.fabric.topology.node_names() if node not in alive]


def all_nodes_up(configuration: Mapping[str, Any] | None = None) -> bool:
    """Whether the daemon of every node runs."""
    return not nodes_down(configuration)


def workload_state(name: str, configuration: Mapping[str, Any] | None = None) -> str:
    """The state of a workload of this experiment.

    `running`, `done`, `failed` when a rank failed, `lost` when a rank's NIC died.
    """
    session = session_of(configuration)
    states = {rank.state for rank in session.do(session.work(name).result()).ranks}
    return next(state for state in ("failed", "lost", "running", "done") if state in states)


def bytes_wrong(name: str, configuration: Mapping[str, Any] | None = None) -> int:
    """How many bytes of a workload of this experiment arrived wrong, as far as is known.

    What a NIC had compared is lost when it dies; `workload_state` is `lost` then.
    """
    session = session_of(configuration)
    return sum(rank.bytes_wrong for rank in session.do(session.work(name).result()).ranks)


def emulation_valid(configuration: Mapping[str, Any] | None = None) -> bool:
    """Whether the emulation was faithful, so that its measurements may be believed."""
    session = session_of(configuration)
    return bool(session.do(session.fabric.fidelity())["valid"])
