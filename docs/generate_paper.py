"""Writes PAPER.md: the paper's experiments and ours beside them, `python docs/generate_paper.py > docs/PAPER.md`.

Runs every scenario of examples/paper in virtual time over seeds and two sizes, and once more with oblivious spraying,
whose success says that a bar is no evidence for MRC. Results are kept in `.paper/` by what they depend on, code
included; names of scenarios as arguments limit the page to them. That real daemons give the same trace is shown by
tests/integration/test_paper.py.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from orchestrator.runs.sweep import Point, swept
from orchestrator.scenario.resolve import load

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "paper"
KEPT = ROOT / ".paper"
SEEDS = ("1", "2", "3", "4")
"""Beside the file's own."""
OBLIVIOUS = (("fabric.nic.path_policy", "oblivious"),)
OBLIVIOUS_SEEDS = SEEDS[:2]
CODE = ("mrcfabric", "nicd", "switchd", "orchestrator")


class Experiment(NamedTuple):
    """One row: what was published, and which findings of which scenario stand beside it."""

    source: str
    published: str
    scenario: str
    shown: tuple[str, ...]
    """Names of expectations whose observed values are shown."""
    remark: str = ""
    larger: tuple[tuple[str, str], ...] = (("fabric.t1_per_plane", "8"),)
    """What the second size changes."""


EXPERIMENTS = (
    Experiment(
        "figure 4",
        "75,000 GPUs, no deny list: fewer than 5 packets lost per QP in the first minute, then below 1 per second and "
        "NIC",
        "start-with-dead-links",
        (
            "packets lost in the first second",
            "packets lost in the ten seconds from the second one",
            "goodput from 2s to 15s",
        ),
        "Eight of 64 T0-T1 links are dead, one in eight; in the paper few of very many. Losses end as EVs are retired.",
    ),
    Experiment(
        "figure 5, OpenAI",
        "up to 14 flaps a minute of T0-T1 links over 250 minutes: no measurable effect on steps",
        "background-flaps",
        ("the median step takes no longer", "the mean step takes little longer"),
        "A flap costs a synchronous job some round trips. Their steps take seconds, ours a few round trips, so the "
        "few steps that a flap meets are seen in the mean.",
    ),
    Experiment(
        "figures 6 and 7",
        "a transceiver with four NIC-T0 links flaps: throughput -25 % for about a minute, full recovery, no QP lost",
        "transceiver-flap",
        ("a dip", "step_time after optic", "qp_errors"),
        "The dip is the share of ports lost: four of eight here.",
    ),
    Experiment(
        "figure 8, OpenAI",
        "a T1 stops forwarding: a quarter of QPs touched, normal soon; its reboot is not seen",
        "t1-down-and-reboot",
        ("goodput during freeze", "the reboot is not seen", "packets_lost during reboot"),
    ),
    Experiment(
        "figure 8, OpenAI",
        "four T1s rebooted in a job, unannounced",
        "four-t1s-reboot",
        ("the median step takes little longer", "step_time after reboots", "qp_errors"),
        "The median step takes 2 to 11 % longer here, and nothing was seen there: a step of ours is some 20 round "
        "trips, and each that meets a dead T1 waits for what was lost. The bar of 10 % is ours.",
        (("fabric.nics_per_t0", "4"),),
    ),
    Experiment(
        "figure 9a",
        "NIC-T0 links down one by one: steps in proportion to the links left",
        "nic-links-one-by-one",
        ("7 of 8 links", "6 of 8 links", "4 of 8 links", "2 of 8 links", "1 of 8 links"),
    ),
    Experiment(
        "figure 9b",
        "four of eight NIC links lost for 12 s: about half, then full again",
        "four-ports-flap",
        ("goodput of h000 during ports", "goodput of h000 after ports"),
    ),
    Experiment(
        "figure 9c",
        "20 T0-T1 links down, one a second: almost nothing at a resolution of 200 ms",
        "twenty-t1-links",
        ("mean over all outages", "bins of one second", "bins of 200 ms", "with all twenty lost"),
        "A second of the timetable is 15 base RTTs here and 100,000 there: a loss of two round trips fills most "
        "of our bin of 200 ms and a fifty-thousandth of theirs.",
        (("fabric.t1_per_plane", "10"),),
    ),
    Experiment(
        "figure 9d",
        "eight T0-T1 links flap together: negligible",
        "eight-links-flap",
        ("mean over the flaps", "back while the links are down", "back after they have come back"),
        "As for figure 9c: the mean holds two losses of a few round trips each in 117 round trips.",
    ),
    Experiment(
        "figure 10",
        "a T0 down: 700 of 800 Gb/s for as long as it lasts",
        "t0-down",
        ("goodput during t0", "goodput after t0"),
    ),
    Experiment(
        "figures 12 and 13",
        "one EV at 20 % drop, 16 EVs: it is inactive at once, a reserve EV of the plane is on, line rate kept",
        "lossy-ev",
        ("line rate is kept", "detection_rtts during lossy", "one EV of the reserve took its place"),
        "The lossy path is one that an EV in use takes, with every seed. The EV in reserve is one of the same plane.",
    ),
    Experiment(
        "figure 16",
        "ring all-reduce: many EVs beat few paths by far",
        "ring-all-reduce-with-many-evs",
        ("goodput",),
        "Share of line rate; with one EV per plane below.",
    ),
    Experiment("figure 16", "RoCE with one QP: about half of MRC", "ring-all-reduce-with-few-evs", ("goodput",)),
    Experiment(
        "figure 16",
        "random loss of 0.1 %: little effect on large messages",
        "random-loss-01",
        ("goodput during loss",),
    ),
    Experiment(
        "figure 16",
        "random loss of 1 %: falls to about a third",
        "random-loss-1",
        ("goodput during loss",),
        "Eight buckets are under way at once here, and a loss holds up one of them. No setting tried shows both "
        "published figures: what makes 1 % cost two thirds makes 0.1 % cost a quarter.",
    ),
    Experiment(
        "figure 16",
        "random loss of 1 %: falls to about a third",
        "random-loss-1-one-bucket",
        ("goodput during loss",),
        "With one bucket at a time every loss holds up the ring, also of 0.1 %, which then costs a quarter. How much "
        "the library that was measured keeps under way is not published.",
    ),
    Experiment("figure 17", "all-to-all: better at every size", "all-to-all-with-many-evs", ("goodput",)),
    Experiment(
        "figure 17",
        "the same with few paths",
        "all-to-all-with-few-evs",
        ("goodput",),
        "Eight EVs are as good as many here: a late path gets fewer turns (`path_shares`), so few of them crowd no "
        "longer. No order of the two is shown.",
    ),
    Experiment(
        "figures 18 and 21",
        "7:1 incast: fair shares, the bystander is untouched",
        "incast-with-bystander",
        ("the bystander beside the incast", "fair shares", "the victim's link is full"),
        larger=(("fabric.planes", "8"),),
    ),
)

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

Result = Mapping[str, Any]


def code_digest() -> str:
    """Of everything that a run is made of but its scenario."""
    found = hashlib.blake2b(digest_size=16)
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


def results_of(experiment: Experiment, code: str) -> dict[Point, Result]:
    """Every run of an experiment; those that were kept are not carried out again."""
    file = EXAMPLES / f"{experiment.scenario}.yaml"
    wanted = points_of(experiment, load(str(file)).seed)
    texts = file.read_text() + (EXAMPLES / "fabric.yaml").read_text() + code
    kept = {point: KEPT / f"{hashlib.blake2b((texts + repr(point)).encode(), digest_size=16).hexdigest()}.json"
            for point in wanted}  # fmt: skip
    KEPT.mkdir(exist_ok=True)
    missing = [point for point in wanted if not kept[point].exists()]
    for number, result in swept(str(file), missing, os.cpu_count() or 1):
        kept[missing[number]].write_text(json.dumps(result))
        print(f"{experiment.scenario}: {missing[number].title}: {result['verdict']}", file=sys.stderr, flush=True)
    return {point: json.loads(path.read_text()) for point, path in kept.items()}


def points_of(experiment: Experiment, own: str) -> list[Point]:
    """The file's seed and others in two sizes, and oblivious spraying."""
    sizes: tuple[tuple[tuple[str, str], ...], ...] = ((), experiment.larger)
    found = [Point(size, seed) for size in sizes for seed in (own, *SEEDS)]
    return [*found, *(Point(OBLIVIOUS, seed) for seed in (own, *OBLIVIOUS_SEEDS))]


def row(experiment: Experiment, results: Mapping[Point, Result]) -> str:
    """One line of the table."""
    own = next(result for point, result in results.items() if not point.values)
    link = f"[{experiment.scenario}](../examples/paper/{experiment.scenario}.yaml)"
    cells = (experiment.source, experiment.published, link, ours(experiment, own),
             "<br>".join(_sizes(experiment, results)), evidence(experiment, results), experiment.remark)  # fmt: skip
    return f"| {' | '.join(cells)} |"


def ours(experiment: Experiment, result: Result) -> str:
    """What the file gives as it stands; `result`: a report, or what a sweep keeps of one."""
    findings = {finding["name"]: finding for finding in result["findings"]}
    text = "<br>".join(f"{name}: **{_observed(findings[name], 'observed')}**" for name in experiment.shown)
    return text + ("" if result["verdict"] == "held" else "<br>**an expectation did not hold**")


def _sizes(experiment: Experiment, results: Mapping[Point, Result]) -> Iterable[str]:
    for size in ((), experiment.larger):
        mine = [result for point, result in results.items() if point.values == size]
        title = ", ".join(f"{key.removeprefix('fabric.')} {value}" for key, value in size) or "as it stands"
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


def document(names: Sequence[str] = ()) -> str:
    """The whole page, or the rows of some scenarios; takes a quarter of an hour of CPU when nothing is kept."""
    code = code_digest()
    wanted = [experiment for experiment in EXPERIMENTS if not names or experiment.scenario in names]
    return HEAD + "".join(row(experiment, results_of(experiment, code)) + "\n" for experiment in wanted)


if __name__ == "__main__":
    print(document(sys.argv[1:]), end="")
