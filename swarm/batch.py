"""Many seeds, side by side in a pool of jobs; failures with the command that replays them.

Every so many seeds a case is run twice, watched instant by instant and not watched at all: both must give the same
digest, for a core's doings must not depend on how its time is cut.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from orchestrator.process.job_pool import JobPool, as_they_end
from swarm.case import MRC, SYSTEMS, Case
from swarm.draw import draw
from swarm.run import Outcome, run
from swarm.systems.draw import draw as draw_of_systems
from swarm.world import Depth

TWICE_EVERY: Final = 4
"""One seed in so many is run a second time with time cut otherwise."""
DRAW: Final[dict[str, Callable[[int], Case]]] = {MRC: draw, SYSTEMS: draw_of_systems}
"""What makes a case of a seed, by the series that the seed belongs to."""


@dataclass(slots=True)
class Line:
    """What is told of one seed."""

    seed: int
    series: str = MRC
    reason: str = ""
    """Empty: nothing was wrong."""
    cut: bool = False
    data_packets: int = 0
    digest: str = ""
    cpu_s: float = 0.0

    @property
    def replay(self) -> str:
        """The command that runs this seed again."""
        series = "" if self.series == MRC else f" --series {self.series}"
        return f"python -m swarm{series} --seed {self.seed}"


@dataclass(slots=True)
class Summary:
    """What is told of a batch."""

    lines: list[Line] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def failures(self) -> list[Line]:
        return [line for line in self.lines if line.reason]

    @property
    def data_packets(self) -> int:
        return sum(line.data_packets for line in self.lines)


def run_seed(seed: int, series: str = MRC) -> Line:
    """One seed, watched; every now and then also unwatched."""
    started_s = time.process_time()
    case = DRAW[series](seed)
    outcome = run(case)
    reason = outcome.reason
    if not reason and not outcome.cut and seed % TWICE_EVERY == 0:
        reason = cut_otherwise(outcome)
    cpu_s = round(time.process_time() - started_s, 2)
    return Line(seed, series, reason, outcome.cut, outcome.data_packets, outcome.digest, cpu_s)


def cut_otherwise(outcome: Outcome) -> str:
    """Run the case once more, its time cut by the simulator alone; the reason why that gives something else, or ""."""
    again = run(outcome.case, Depth(stepwise=False, checks=False))
    if again.failed:
        return f"only with time cut otherwise: {again.reason}"
    if again.digest != outcome.digest:
        return f"digest {outcome.digest} instant by instant, {again.digest} window by window"
    return ""


def run_batch(
    seeds: Iterable[int], pool: JobPool, tell: Callable[[Line], None], stop_after_s: float | None = None,
    series: Sequence[str] = (MRC,),
) -> Summary:  # fmt: skip
    """Run seeds, each in every series; `tell` hears of each as it ends. After `stop_after_s` no further one begins."""
    started_s = time.monotonic()
    summary = Summary()

    def due() -> Iterator[tuple[int, str]]:
        for seed in seeds:
            for name in series:
                if stop_after_s is not None and time.monotonic() - started_s > stop_after_s:
                    return
                yield seed, name

    for _, line in as_they_end(pool, run_seed, due()):
        summary.lines.append(line)
        tell(line)
    summary.lines.sort(key=lambda line: (line.series, line.seed))
    summary.wall_s = time.monotonic() - started_s
    return summary
