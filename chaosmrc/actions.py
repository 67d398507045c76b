"""Actions: break the fabric, heal it, give it work, wait.

Every function is a Chaos Toolkit action: it takes plain arguments, returns plain data and raises an exception when it
fails. Lengths are microseconds of fabric time, waits are seconds of wall time. docs/FAULTS.md lists the words of
selectors and the figures of faults; docs/SCENARIOS.md lists the kinds and figures of workloads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from chaosmrc.session import session_of
from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from orchestrator.fabric import arguments
from orchestrator.fabric.finder import Narrowing
from orchestrator.faults.fault import Fault

__all__ = [
    "await_measure",
    "await_workload",
    "heal_fault",
    "heal_faults",
    "inject_fault",
    "start_workload",
]

NS_PER_US = 1000


def inject_fault(
    kind: str,
    names: str | Sequence[str] = (),
    selector: Mapping[str, Any] | None = None,
    figures: Mapping[str, Any] | None = None,
    lasting_us: float | None = None,
    title: str = "",
    configuration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Inject a fault as soon as possible, for `lasting_us` or until it is healed; returns the fault's record.

    `names`: names and globs of the fault's targets; `selector`: tier, plane, of, mode, value, direction.
    """
    session = session_of(configuration)
    narrowed: Any = arguments.table("selector", selector)
    strange = narrowed.keys() - Narrowing.__annotations__.keys()
    if strange:
        raise ConfigError("selector", f"has no {', '.join(sorted(strange))}", ", ".join(Narrowing.__annotations__))
    given: Any = {"figures": figures, "for_ns": ns_of("lasting_us", lasting_us), "title": title}

    async def inject() -> Fault:
        # Time stands still in this block, so the fault begins at the instant at which it was requested.
        async with session.fabric.held():
            return await session.fabric.add_fault(kind, arguments.texts("names", names), **given, **narrowed)

    return session.do(inject()).record()


def heal_fault(fault_id: str, configuration: Mapping[str, Any] | None = None) -> list[str]:
    """End a fault by its id, or all faults with this title. Returns the ids."""
    session = session_of(configuration)
    meant = arguments.text("fault_id", fault_id)
    live = session.do(session.fabric.live_faults())
    # Most faults have no title: an empty word means none of them.
    found = [one.id for one in live if meant and meant in (one.id, one.title)] or [meant]
    for one in found:
        session.do(session.fabric.heal(one))
    return found


def heal_faults(configuration: Mapping[str, Any] | None = None) -> list[str]:
    """End every fault of this experiment; returns their ids. Can serve as a rollback."""
    session = session_of(configuration)
    return session.do(session.fabric.heal_all())


def start_workload(
    kind: str,
    name: str,
    ranks: str | int | Sequence[str] = "all",
    figures: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Start a workload on NICs; it runs by itself. Returns its record.

    `ranks`: `all`, a number of NICs, or names and globs.
    """
    session = session_of(configuration)
    work = session.start(lambda: session.fabric.start(kind, name=name, ranks=ranks, figures=figures))
    return work.program.settings()


def await_workload(name: str, within_s: float = 60.0, configuration: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Wait until a workload of this experiment is done; fails when a rank failed or `within_s` have passed.

    Raises ConfigError for a workload that this experiment has not started, as the probes of workloads do.
    """
    session = session_of(configuration)
    result = session.do(session.work(name).finished(within_s))
    return {
        "ranks": len(result.ranks),
        "bytes_received": sum(rank.bytes_received for rank in result.ranks),
        "bytes_verified": sum(rank.bytes_verified for rank in result.ranks),
        "bytes_wrong": sum(rank.bytes_wrong for rank in result.ranks),
    }


def await_measure(
    measure: str,
    at_least: float | None = None,
    at_most: float | None = None,
    of: str | Sequence[str] = (),
    over_us: float | None = None,
    within_s: float = 60.0,
    configuration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Wait until a measure lies within bounds; fails when `within_s` have passed. Returns the observed figure."""
    session = session_of(configuration)
    watch = session.watch()
    given = {"of": of, "at_least": at_least, "at_most": at_most, "over_ns": ns_of("over_us", over_us)}
    bounds: Any = {key: value for key, value in given.items() if value is not None}
    return session.do(watch.until(measure, within_s=within_s, **bounds)).record()


def ns_of(name: str, length_us: float | None) -> int | None:
    """Microseconds of fabric time as nanoseconds. Raises ConfigError for less than a nanosecond."""
    if length_us is None:
        return None
    if not isinstance(length_us, int | float) or isinstance(length_us, bool):
        raise ConfigError(name, f"{length_us!r} is no length of time", "microseconds of fabric time")
    if not 1 <= NS_PER_US * length_us < NEVER:
        raise ConfigError(name, f"{length_us:g} us is no length of time", "above 0")
    return round(length_us * NS_PER_US)
