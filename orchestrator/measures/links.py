"""Measures of what the mapper of a run held: how soon it found a fault, and how many links it held bad.

A run without a mapper gives no figures.
"""

from collections.abc import Callable, Iterator

from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from orchestrator.measures.measure import Figure, Question
from orchestrator.measures.recording import LinksFound, Recording
from orchestrator.measures.spans import recorded_ns


def mapping_rtts(question: Question) -> list[Figure]:
    """From the start of a fault until the mapper held something bad that the fault struck; no value when it did not."""
    recording = question.recording
    if recording.links is None:
        return []
    found = []
    for one in question.faults:
        start, end = one.fault.start_ns, recorded_ns(recording)
        if start >= end:
            continue
        hit = next(_accusing(recording, one.fault.struck, start), None)
        took = None if hit is None else (hit - start) / recording.rtt_ns
        found.append(Figure(took, one.fault.id, start, end if hit is None else hit))
    return found


def held(count: Callable[[LinksFound], int]) -> Callable[[Question], list[Figure]]:
    """Measures how many links and switches there were in what the mapper held: the most in every window."""

    def take(question: Question) -> list[Figure]:
        links = question.recording.links
        if links is None:
            return []
        return [Figure(_most(links, count, *window), "", *window) for window in question.windows]

    return take


def _accusing(recording: Recording, struck: tuple[str, ...], start_ns: Instant) -> Iterator[Instant]:
    """The looks from `start_ns` on that held something bad which one of these parts means, and which was not before."""
    before: set[str] = set()
    for found in recording.links or ():
        new = set(found.bad) - before
        before = set(found.bad)
        if found.at_ns >= start_ns and any(_means(recording.topology, part, bad) for part in struck for bad in new):
            yield found.at_ns


def _means(topology: Topology, part: str, bad: str) -> bool:
    """Whether a part of the fabric, spelled as targets of faults are, has to do with a link or switch held bad.

    A switch all of whose links are cut is a dead switch to the mapper, and some links of a dead switch are links.
    """
    if part.isdecimal():
        return any(end.startswith(f"p{part}-") for end in bad.split("~"))
    nic, colon, plane = part.partition(":")
    if colon:
        ends = {nic, topology.ports(nic)[int(plane)].peer}
    else:
        ends = set(part.replace(">", "~").split("~"))
    held = set(bad.split("~"))
    # Two links are the same; a switch is an end of its links.
    return ends == held if len(ends) == len(held) else bool(ends & held)


def _most(links: list[LinksFound], count: Callable[[LinksFound], int], start_ns: Instant, end_ns: Instant) -> int:
    """The largest count of what was held at the begin of a window, or from a look inside it on."""
    before = [found for found in links if found.at_ns <= start_ns][-1:]
    inside = [found for found in links if start_ns < found.at_ns <= end_ns]
    return max((count(found) for found in (*before, *inside)), default=0)
