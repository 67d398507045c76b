"""Whether a placement fits its hosts.

Pure. Owns the judgement and its words. A refusal is for a fabric that cannot start or would lose frames. A warning is
for one that starts, but is slower than its user may expect, or different.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.budget import Budget, HostBudget
from orchestrator.hosts.placement.frames import frame_bytes, what_fits
from orchestrator.hosts.placement.placing import speeds
from orchestrator.process.ports import PORT_END, PORT_MIN

UNEVEN: Final = 1.5
"""A warning is due if the slowest host is so many times slower than all cores evenly loaded."""


@dataclass(frozen=True, slots=True)
class Note:
    """One refusal or warning."""

    refused: bool
    error: ConfigError
    """Where, what, and the remedy. It is raised or shown."""


def notes(budget: Budget) -> list[Note]:
    """All refusals, then all warnings, each in the order of hosts."""
    refusals = [Note(True, error) for error in _refusals(budget)]
    return refusals + [Note(False, error) for error in _warnings(budget)]


def refuse(budget: Budget) -> None:
    """Raises ConfigError with the first refusal, if there is one."""
    for error in _refusals(budget):
        raise error


# Refusals.


def _refusals(budget: Budget) -> Iterator[ConfigError]:
    for one in budget.hosts:
        room = PORT_END - PORT_MIN
        if one.ports > room:
            what = f"its {one.nodes:,} nodes need {one.ports:,} ports, there are {room:,}"
            yield ConfigError(one.host.name, what, "more hosts, or a smaller fabric")
        if one.crossing_bps and one.host.mtu is not None:
            yield from _too_long(budget, one.host.name, one.host.mtu)


def _too_long(budget: Budget, host: str, mtu: int) -> Iterator[ConfigError]:
    version = budget.placement.inventory.ip_version
    size = frame_bytes(budget.placement.topology.mtu_bytes, version)
    if size > mtu:
        what = f"frames to other hosts take {size:,} bytes, its mtu is {mtu:,}"
        yield ConfigError(host, what, what_fits(mtu, version))


# Warnings.


def _warnings(budget: Budget) -> Iterator[ConfigError]:
    for where in budget.placement.idle_rules:
        yield ConfigError(where or "rules", "means no node here that an earlier rule does not")
    for one in budget.hosts:
        if not one.nodes:
            yield ConfigError(one.host.name, "carries no node", "it is not needed for this fabric")
        elif one.host.memory_bytes is not None and one.memory_bytes > one.host.memory_bytes:
            there = f"{one.memory_bytes / 1e9:.1f} GB for its processes, it has {one.host.memory_bytes / 1e9:.1f} GB"
            yield ConfigError(one.host.name, f"asks for {there}", "regions of applications not counted")
    yield from _slow(budget) if budget.asked_dilation else _uneven(budget)


def _slow(budget: Budget) -> Iterator[ConfigError]:
    """Warn of hosts that cannot keep the pace that was asked for."""
    asked = budget.asked_dilation
    assert asked is not None
    for one in budget.hosts:
        if one.pace is not None and one.pace > asked:
            reason = _reason(budget, one, asked)
            slower = f"at full load the fabric is {one.pace / asked:.1f} times slower: a dilation of {one.pace:,.0f}"
            yield ConfigError(one.host.name, f"{reason} for a dilation of {asked:,.0f}", slower)


def _reason(budget: Budget, one: HostBudget, dilation: float) -> str:
    """The resource that limits a host's pace."""
    assert one.host.cores is not None
    if one.cpu_s / one.host.cores == one.pace:
        return f"{one.cpu_s / dilation:.1f} cores are asked for, it has {one.host.cores},"
    if one.process_cpu_s == one.pace:
        return f"its heaviest process asks for {one.process_cpu_s / dilation:.1f} cores and can use one,"
    assert one.host.bandwidth_bps is not None
    wire_bps = budget.wire_bps(one.crossing_bps, dilation)
    return f"{wire_bps / 1e9:.2f} Gb/s to other hosts are asked for, it has {one.host.bandwidth_bps / 1e9:g},"


def _uneven(budget: Budget) -> Iterator[ConfigError]:
    """Warn of a host that holds all others back, when the hosts set the pace."""
    pace = budget.pace
    if pace is None:
        return
    told = sum(speeds(budget.placement.inventory))
    even = max(sum(one.cpu_s for one in budget.hosts) / told, max(one.process_cpu_s for one in budget.hosts))
    slowest = max((one for one in budget.hosts if one.pace is not None), key=lambda one: one.pace or 0.0)
    if pace > UNEVEN * even:
        what = f"sets the pace at full load, {pace / even:.1f} times slower than with all cores evenly loaded"
        yield ConfigError(slowest.host.name, what, "rules: nics: cores, switches: cores")
