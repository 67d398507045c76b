"""Chaos: draws faults from a seeded distribution, never more at once than the budget allows.

Owns the drawing: when the next fault begins, its kind, its length, its targets. A fault that would exceed the budget
waits until one is over. Two faults of the same chaos never share a target at the same time. The same seed and name draw
the same faults.
"""

from decimal import Decimal
from typing import Any

from mrcfabric.rng import Rng
from orchestrator.faults.checks import DEADLY, absence_ns_min
from orchestrator.faults.fault import Fault
from orchestrator.scenario import timing
from orchestrator.scenario.method import FAULTS_MAX, Site, checked_length, drawn_targets, windows_of
from orchestrator.scenario.model import Between, Chaos, ChaosEntry
from orchestrator.yamlfile.document import Spot

_TRIES = 8
"""Attempts to draw targets that are free; then the fault is left out."""


def faults_of(site: Site, spot: Spot, entry: ChaosEntry, drawn: list[Any]) -> list[Fault]:
    """The faults of a chaos entry, offsets from its start; `drawn` are the faults it may draw. Raises ConfigError."""
    room_ns = site.scale.length(entry.lasting)
    rng = Rng(site.seed, "chaos", entry.name)
    found: list[Fault] = []
    biting: list[Fault] = []
    at_ns = _pause(site, entry.chaos, rng)
    while at_ns < room_ns:
        biting = [fault for fault in biting if fault.end_ns > at_ns]
        if len(biting) >= entry.chaos.at_once_max:
            at_ns = min(fault.end_ns for fault in biting)
            continue
        # Numbered even if there is only one: when a condition starts them again, another number follows.
        name = f"{entry.name}-{len(found) + 1}"
        fault = _draw(site, spot / "chaos" / "faults", name, drawn, rng, at_ns, room_ns, biting)
        if fault is not None:
            found.append(fault)
            biting.append(fault)
        if len(found) > FAULTS_MAX:
            raise (spot / "chaos").wrong(f"draws more than {FAULTS_MAX} faults", "a longer every, or a shorter for")
        at_ns += _pause(site, entry.chaos, rng)
    return found


def _pause(site: Site, chaos: Chaos, rng: Rng) -> int:
    mean_ns = site.scale.length(chaos.every)
    if chaos.spacing == "even":
        return mean_ns
    if chaos.spacing == "uniform":
        return 1 + rng.below(2 * mean_ns)
    # Decimal rounds its logarithm alike on every machine; the C library does not.
    return 1 + int(-mean_ns * (Decimal(rng.bits64() + 1) / (1 << 64)).ln())


def _draw(
    site: Site, spot: Spot, name: str, drawn: list[Any], rng: Rng, at_ns: int, room_ns: int, biting: list[Fault]
) -> Fault | None:
    """Draw one fault from `at_ns` on that ends with the chaos at the latest.

    None when its targets are all taken, or when the rest of the chaos is too short for a node to be away.
    """
    number = _weighted([one.weight for one in drawn], rng)
    one = drawn[number]
    lasting_ns = _lasting(site, spot / number, one, rng)
    if room_ns - at_ns < lasting_ns:
        lasting_ns = room_ns - at_ns
        if one.fault in DEADLY and lasting_ns < absence_ns_min(site.topology):
            return None
    busy = {target for fault in biting for target in fault.targets}
    for _ in range(_TRIES):
        targets = drawn_targets(site, spot / number, one, rng)
        if busy.isdisjoint(targets):
            break
    else:
        return None
    windows = timing.joined(windows_of(site, spot / number, one, at_ns, lasting_ns, rng))
    if not windows:
        return None
    return Fault(name, one.fault, targets, tuple(windows))


def _weighted(weights: list[int], rng: Rng) -> int:
    place = rng.below(sum(weights))
    for number, weight in enumerate(weights):
        if place < weight:
            return number
        place -= weight
    raise AssertionError("the weights make up their sum")


def _lasting(site: Site, spot: Spot, one: Any, rng: Rng) -> int:
    if not isinstance(one.lasting, Between):
        lasting_ns = checked_length(site, spot, one)
        assert lasting_ns is not None
        return lasting_ns
    least, most = site.scale.length(one.lasting.least), site.scale.length(one.lasting.most)
    return least + rng.below(most - least + 1)


def check(site: Site, spot: Spot, entry: ChaosEntry, drawn: list[Any]) -> None:
    """Check a chaos entry before anything is drawn. Raises ConfigError."""
    if site.scale.length(entry.lasting) == 0:
        raise (spot / "for").wrong("chaos of no length")
    if site.scale.length(entry.chaos.every) == 0:
        raise (spot / "chaos" / "every").wrong("faults without a pause between them")
    for number, one in enumerate(drawn):
        here = spot / "chaos" / "faults" / number
        if one.fault == "host_loss":
            raise (here / "fault").wrong("a lost host does not come back, and would eat up the budget")
        if isinstance(one.lasting, Between):
            least, most = site.scale.length(one.lasting.least), site.scale.length(one.lasting.most)
            if not 0 < least <= most:
                raise (here / "for").wrong("is no span", "{least: 5rtt, most: 20rtt}")
        else:
            checked_length(site, here, one)
