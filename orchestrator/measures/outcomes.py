"""Measures of the outcome of the work, the timetable and the emulation: ranks done, bytes verified, fidelity."""

from collections.abc import Callable

from orchestrator.measures.measure import Figure, Question, matching
from orchestrator.measures.recording import RankResult
from orchestrator.measures.spans import whole


def of_ranks(told: Callable[[list[RankResult]], float]) -> Callable[[Question], list[Figure]]:
    """Takes a figure of all ranks of all programs together, or of the ranks of each named program."""

    def take(question: Question) -> list[Figure]:
        programs = {program.name: program.ranks for program in question.recording.programs}
        start, end = whole(question.recording)
        found = []
        for name in matching(question.of, programs):
            ranks = programs[name] if name else [rank for ranks in programs.values() for rank in ranks]
            if ranks:
                found.append(Figure(told(ranks), name, start, end))
        return found

    return take


def done_share(ranks: list[RankResult]) -> float:
    """Share of the ranks that finished their work."""
    return sum(rank.state == "done" for rank in ranks) / len(ranks)


def verified(ranks: list[RankResult]) -> float:
    return sum(rank.bytes_verified for rank in ranks)


def wrong(ranks: list[RankResult]) -> float:
    return sum(rank.bytes_wrong for rank in ranks)


def faults_over(question: Question) -> list[Figure]:
    """Faults that began and were over by the end."""
    recording = question.recording
    start, end = whole(recording)
    return [Figure(sum(one.over_ns <= end for one in recording.faults), "", start, end)]


def fidelity(question: Question) -> list[Figure]:
    """1 for a faithful run, 0 for another; or one of the figures behind that."""
    recording = question.recording
    numbers = {key: float(value) for key, value in recording.fidelity.items() if isinstance(value, int | float)}
    start, end = whole(recording)
    cells = {"": numbers.get("valid", 1.0), **numbers}
    return [Figure(cells[name], name, start, end) for name in matching(question.of, cells)]
