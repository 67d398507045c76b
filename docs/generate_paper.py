"""Writes PAPER.md: the paper's experiments and ours beside them, `python -m docs.generate_paper > docs/PAPER.md`.

Runs every scenario of examples/paper in virtual time over seeds and two sizes, those of MRC once more with oblivious
spraying, whose success says that a bar is no evidence for MRC. Results are kept in `.paper/` by what they depend on,
code included. `--only NAME...` runs these scenarios alone and takes all other rows from docs/PAPER.md as they stand.
That real daemons give the same trace is shown by tests/integration/test_paper.py.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from orchestrator.process.code_digest import code_digest
from orchestrator.process.job_arguments import add_job_options, asked_pool
from orchestrator.process.job_pool import JobPool
from orchestrator.runs.sweep import Point, swept
from orchestrator.scenario.resolve import load
from studies.paper import EXPERIMENTS, ROCE, Experiment

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "paper"
KEPT = ROOT / ".paper"
PAGE = ROOT / "docs" / "PAPER.md"
SEEDS = ("1", "2", "3", "4")
"""Beside the file's own."""
OBLIVIOUS = (("fabric.nic.path_policy", "oblivious"),)
RIVAL_SEEDS = SEEDS[:2]
CODE = ("mrcfabric", "nicd", "switchd", "orchestrator")
"""What a run is made of but its scenario."""


HEAD = """# The paper's experiments

What OpenAI and partners have published of MRC (the paper of May 2026, by the numbers of its figures, and OpenAI's
article of the same day) beside what mrcfabric shows. Every row is a scenario in `examples/paper`, with its expectations
in the file; all run unchanged on real daemons and in virtual time:

    mrcfabric run examples/paper/t0-down.yaml                   # 52 daemons that exchange real UDP
    mrcfabric run examples/paper/t0-down.yaml --backend sim     # the same cores in one process
    mrcfabric sweep examples/paper/t0-down.yaml --seeds 1-5     # ranges over seeds

The figures below were measured in virtual time (`make paper` makes this page anew); the tests run every scenario on
both and compare the traces. Figures are shares: of the time before the first fault where the row is about a fault, of
the line rate where it is not. The fabrics fit a laptop (4 to 16 NICs, ports of 25 Gb/s), and time is compressed: a
second of the timetable is 7 or 15 base RTTs, and about 100,000 in the paper. What is free of scale (shares of ports,
order of curves, round trips until a path is left) must agree; absolute rates, job sizes and minutes cannot.

**Ours** is what the file gives as it stands; **over seeds** the least, the median and the greatest of five seeds,
first in the file's fabric, then in a larger one, and in how many of them every expectation held. **Evidence** tells
whether a NIC that sprays obliviously, without states of EVs, fails where MRC holds: a bar that it passes too says
nothing of MRC.

| Source | Published | Scenario | Ours | Over seeds | Evidence for MRC | Why they differ, where they do |
|---|---|---|---|---|---|---|
"""

ROCE_HEAD = """
## RoCE in the same places

The paper's own figures of RoCE beside ours. Bars are those of the paper, with a tenth of the line on both sides where
it has one figure. A RoCE NIC here has one port of 25 Gb/s and its fabric one plane, as the paper's testbeds have for
RoCE; shares of the line compare with those of MRC above. The system is `roce` (`mrcfabric systems roce`), its marks
those that are published for 25 Gb/s, unless the row says otherwise. Where DCQCN acts, a second of the timetable is a
millisecond, because its timers do not shrink with a fabric.

The paper has no figure of UET or InfiniBand, so this page has no row of them. [SYSTEMS.md](SYSTEMS.md) sets them beside
MRC.

| Source | Published | Scenario | Ours | Over seeds | MRC on the same links | Why they differ, where they do |
|---|---|---|---|---|---|---|
"""

Result = Mapping[str, Any]


def results_of(experiment: Experiment, code: str, pool: JobPool) -> dict[Point, Result]:
    """Every run of an experiment; those that were kept are not carried out again."""
    file = EXAMPLES / f"{experiment.scenario}.yaml"
    wanted = points_of(experiment, load(str(file)).seed)
    texts = file.read_text() + (EXAMPLES / "fabric.yaml").read_text() + code
    kept = {point: KEPT / f"{hashlib.blake2b((texts + repr(point)).encode(), digest_size=16).hexdigest()}.json"
            for point in wanted}  # fmt: skip
    KEPT.mkdir(exist_ok=True)
    missing = [point for point in wanted if not kept[point].exists()]
    for number, result in swept(str(file), missing, pool):
        kept[missing[number]].write_text(json.dumps(result))
        print(f"{experiment.scenario}: {missing[number].title}: {result['verdict']}", file=sys.stderr, flush=True)
    return {point: json.loads(path.read_text()) for point, path in kept.items()}


def points_of(experiment: Experiment, own: str) -> list[Point]:
    """The file's seed and others in two sizes, and with some of them what stands beside it."""
    sizes: tuple[tuple[tuple[str, str], ...], ...] = ((), experiment.larger)
    found = [Point(size, seed) for size in sizes for seed in (own, *SEEDS)]
    rival = experiment.mrc if experiment.roce else OBLIVIOUS
    return [*found, *(Point(rival, seed) for seed in (own, *RIVAL_SEEDS) if rival)]


def row(experiment: Experiment, results: Mapping[Point, Result]) -> str:
    """One line of the table."""
    own = next(result for point, result in results.items() if not point.values)
    beside = with_mrc(experiment, results) if experiment.roce else evidence(experiment, results)
    link = f"[{experiment.scenario}](../examples/paper/{experiment.scenario}.yaml)"
    cells = (experiment.source, experiment.published, link, ours(experiment, own),
             "<br>".join(_sizes(experiment, results)), beside, experiment.remark)  # fmt: skip
    return f"| {' | '.join(cells)} |"


def ours(experiment: Experiment, result: Result) -> str:
    """What the file gives as it stands; `result`: a report, or what a sweep keeps of one."""
    findings = {finding["name"]: finding for finding in result["findings"]}
    text = "<br>".join(f"{name}: **{_observed(findings[name], 'observed')}**" for name in experiment.shown)
    return text + ("" if result["verdict"] == "held" else "<br>**an expectation did not hold**")


def _sizes(experiment: Experiment, results: Mapping[Point, Result]) -> Iterable[str]:
    for size in ((), experiment.larger):
        mine = [result for point, result in results.items() if point.values == size]
        changes = [f"{key.removeprefix('fabric.')} {value}" for key, value in size if key.startswith("fabric.")]
        title = ", ".join(changes) or "as it stands"
        held = sum(result["verdict"] == "held" for result in mine)
        yield f"_{title}_: held {held} of {len(mine)}"
        yield from (f"{name}: {_range(name, mine)}" for name in experiment.shown)


def _range(name: str, results: Sequence[Result]) -> str:
    found = [finding for result in results for finding in result["findings"] if finding["name"] == name]
    values = [finding["observed"] for finding in found if finding["observed"] is not None]
    if not values:
        return "nothing"
    middle = (min(values), median(values), max(values))
    unit = {"unit": found[0]["unit"]}
    text = " / ".join(_observed({**unit, "observed": value}, "observed") for value in middle)
    return text + ("" if len(values) == len(found) else f" ({len(found) - len(values)} without)")


def with_mrc(experiment: Experiment, results: Mapping[Point, Result]) -> str:
    """What MRC makes of a row about RoCE."""
    if not experiment.mrc:
        return "as above"
    mine = [result for point, result in results.items() if point.values == experiment.mrc]
    return "<br>".join(f"{name}: {_range(name, mine)}" for name in experiment.shown)


def evidence(experiment: Experiment, results: Mapping[Point, Result]) -> str:
    """Whether oblivious spraying fails where MRC holds."""
    blind = [result for point, result in results.items() if point.values == OBLIVIOUS]
    passed = sum(result["verdict"] == "held" for result in blind)
    if passed == len(blind):
        return f"none: oblivious spraying passes too ({passed} of {len(blind)})"
    names: dict[str, None] = {}
    for result in blind:
        names.update({finding["name"]: None for finding in result["findings"] if not finding["held"]})
    text = f"oblivious spraying passes {passed} of {len(blind)}; it fails: {', '.join(names)}"
    idle = [name for name in experiment.shown if name not in names]
    return text + (f"<br>no evidence: {', '.join(idle)}" if idle else "")


def _observed(finding: Mapping[str, Any], key: str) -> str:
    value, unit = finding[key], finding["unit"]
    if value is None:
        return "nothing"
    if unit.startswith("share"):
        return f"{value:.1%}".replace("%", " %")
    if unit in ("count", "packets", "bytes"):
        return f"{value:,.0f}"
    return f"{value:.3g} {unit}"


def document(pool: JobPool, only: Sequence[str] = ()) -> str:
    """The whole page; takes a quarter of an hour of CPU when nothing is kept.

    `only`: scenarios to run; the rows of all others are those that the page has.
    """
    code = code_digest(CODE)
    stored = stored_rows() if only else {}

    def line(experiment: Experiment) -> str:
        if only and experiment.scenario not in only:
            return stored[experiment.scenario]
        return row(experiment, results_of(experiment, code, pool))

    tables = [[line(experiment) + "\n" for experiment in table] for table in (EXPERIMENTS, ROCE)]
    return "".join([HEAD, *tables[0], ROCE_HEAD, *tables[1]])


def stored_rows() -> dict[str, str]:
    """Scenario -> its row as it stands in the page."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        named = re.match(r"\|[^|]*\|[^|]*\| \[([^]]+)\]", line)
        if named is not None:
            found[named[1]] = line
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="docs/PAPER.md on the standard output.")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=(), help="run these scenarios alone")
    add_job_options(parser)
    given = parser.parse_args()
    known = [experiment.scenario for experiment in (*EXPERIMENTS, *ROCE)]
    for name in given.only:
        if name not in known:
            parser.error(f"no scenario is called {name}; there are {', '.join(known)}")
    missing = set(known) - set(given.only) - set(stored_rows()) if given.only else set()
    if missing:
        parser.error(f"the page has no row yet of {', '.join(sorted(missing))}; name them too")
    with asked_pool(parser, given) as pool:
        print(document(pool, given.only), end="")


if __name__ == "__main__":
    main()
