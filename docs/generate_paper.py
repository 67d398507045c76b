"""Writes PAPER.md: the paper's experiments and ours beside them, `python docs/generate_paper.py > docs/PAPER.md`.

Runs every scenario of examples/paper in virtual time, which gives the same figures everywhere; that real daemons give
the same trace is shown by tests/integration/test_paper.py.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

EXAMPLES = Path(__file__).parents[1] / "examples" / "paper"
MRCFABRIC = Path(sys.executable).with_name("mrcfabric")


class Experiment(NamedTuple):
    """One row: what was published, and which findings of which scenario stand beside it."""

    source: str
    published: str
    scenario: str
    shown: tuple[str, ...]
    """Names of expectations whose observed values are shown."""
    remark: str = ""


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
        ("the median step takes no longer", "step_time after reboots", "qp_errors"),
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
        ("line rate is kept", "detection_rtts during lossy"),
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
        "Eight buckets are under way at once here, and a loss holds up one of them.",
    ),
    Experiment(
        "figure 16",
        "random loss of 1 %: falls to about a third",
        "random-loss-1-one-bucket",
        ("goodput during loss",),
        "With one bucket at a time every loss holds up the ring. Which of the two is nearer to what was measured "
        "depends on how much a collective library keeps under way.",
    ),
    Experiment("figure 17", "all-to-all: better at every size", "all-to-all-with-many-evs", ("goodput",)),
    Experiment("figure 17", "the same with few paths", "all-to-all-with-few-evs", ("goodput",)),
    Experiment(
        "figures 18 and 21",
        "7:1 incast: fair shares, the bystander is untouched",
        "incast-with-bystander",
        ("the bystander beside the incast", "fair shares", "the victim's link is full"),
    ),
)

HEAD = """# The paper's experiments

What OpenAI and partners have published of MRC (the paper of May 2026, by the numbers of its figures, and OpenAI's
article of the same day) beside what mrcfabric shows. Every row is a scenario in `examples/paper`, with its expectations
in the file; all run unchanged on real daemons and in virtual time:

    mrcfabric run examples/paper/t0-down.yaml                   # 52 daemons that exchange real UDP
    mrcfabric run examples/paper/t0-down.yaml --backend sim     # the same cores in one process

The figures below were measured in virtual time (`make paper` makes this page anew); the tests run every scenario on
both and compare the traces. Figures are shares: of the time before the first fault where the row is about a fault, of
the line rate where it is not. The fabrics fit a laptop (4 to 16 NICs, ports of 25 Gb/s), and time is compressed: a
second of the timetable is 7 or 15 base RTTs, and about 100,000 in the paper. What is free of scale (shares of ports,
order of curves, round trips until a path is left) must agree; absolute rates, job sizes and minutes cannot.

| Source | Published | Scenario | Ours | Why they differ, where they do |
|---|---|---|---|---|
"""


def report_of(scenario: str, folder: Path) -> dict[str, Any]:
    """The report of a scenario in virtual time, written into `folder`."""
    file = EXAMPLES / f"{scenario}.yaml"
    subprocess.run(
        [MRCFABRIC, "run", file, "--backend", "sim", "--report", folder, "--plain"], check=False, capture_output=True
    )
    data: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return data


def row(experiment: Experiment, report: Mapping[str, Any]) -> str:
    """One line of the table."""
    findings = {finding["name"]: finding for finding in report["findings"]}
    ours = "<br>".join(f"{name}: **{_observed(findings[name])}**" for name in experiment.shown)
    link = f"[{experiment.scenario}](../examples/paper/{experiment.scenario}.yaml)"
    verdict = {"held": "", "not held": "<br>**an expectation did not hold**"}[report["verdict"].replace("_", " ")]
    return f"| {experiment.source} | {experiment.published} | {link} | {ours}{verdict} | {experiment.remark} |"


def _observed(finding: Mapping[str, Any]) -> str:
    value, unit = finding["observed"], finding["unit"]
    if unit.startswith("share"):
        return f"{value:.1%}".replace("%", " %")
    if unit in ("count", "packets", "bytes"):
        return f"{value:,.0f}"
    return f"{value:.3g} {unit}"


def document() -> str:
    """The whole page; takes a minute."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            row(experiment, report_of(experiment.scenario, Path(folder) / experiment.scenario))
            for experiment in EXPERIMENTS
        ]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(document(), end="")
