"""docs/COMPARISON.md and its pictures, written from stored results.

Owns the words around the tables. What is claimed, published and impossible to show stands with each study; the figures
are the results' own.
"""

from collections.abc import Mapping
from pathlib import Path

from studies.catalog import ABLATIONS, COMPARISONS
from studies.picture import bars, timeline
from studies.results import Results, grid, markdown
from studies.study import Claim, Departure, Rows, Study

DOCUMENT = "COMPARISON.md"
PICTURES = "images"

_OPENING = """# Comparison with published behaviour

What the public texts say of MRC, and what this emulation shows, side by side. All figures are fabric time, made in
the simulator from the very cores that the daemons run; they grow from seeds and come out the same on every machine.
This page is written by

    make tables

and one study alone is run by `python -m studies NAME`; without a name it lists them. Stored results:
`studies/tables/`.

A cell is the median over the seeds, with the lowest and highest in brackets where seeds differ. A claim that says
*more* or *worse* holds when the ranges of the two variants do not touch; where a share is named, every seed reaches
it.

**The three ways of using paths.** *MRC* is this project's endpoint: state per EV. *oblivious* sprays over the same
EVs and learns nothing from marks, trims or losses. *one path* keeps one EV per QP for life, as a flow keeps its path
under ECMP; with several QPs a flow's messages are dealt out over them. All three share the retransmission, the
windows and the switches of this project: `path_policy` is the only difference. So *one path* is not RoCE as it is
deployed: there is no go-back-N, no PFC and no DCQCN here, all of which would make it worse; what is compared is the
use of paths.

**What no figure here can show.** Times of firmware and of hosts (mapping ports anew takes a NIC seconds; here nothing
but the protocol takes time), the scale of the published fabrics (thousands of switches; here at most 16 NICs), jobs
and collectives with their computing, and what the vendors' unpublished timers do: every timer and threshold that the
texts leave open is a setting of this project, with a default of its own choosing (`docs/SPEC_MAP.md`).
"""

_ABLATIONS = """## What each part is worth

The same trial with a part and without it; nothing is published to compare with.
"""


def compose(results: Mapping[str, Results]) -> dict[str, str]:
    """Path below docs/ -> text: the page and its pictures. KeyError for a study without results."""
    files: dict[str, str] = {}
    sections = [_OPENING, _summary(results)]
    sections += [_section(study, results[study.name], files) for study in COMPARISONS]
    sections.append(_ABLATIONS)
    sections += [_section(study, results[study.name], files, level="###") for study in ABLATIONS]
    files[DOCUMENT] = "\n".join(sections)
    return files


def write(results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Put the files of `compose` below `folder`."""
    paths = []
    for name, text in compose(results).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _summary(results: Mapping[str, Results]) -> str:
    lines = ["| Study | Claim | Here |", "|---|---|---|"]
    for study in COMPARISONS:
        link, rows = f"[{study.title}](#{_anchor(study.title)})", results[study.name].rows
        lines += [f"| {link} | {claim.text} | {_short(claim, rows)} |" for claim in study.claims]
    return "\n".join([*lines, ""])


def _short(claim: Claim, rows: Rows) -> str:
    if isinstance(claim, Departure):
        return "not shown" if not claim.fails(rows) else "**shown after all**"
    return "**does not hold**" if claim.fails(rows) else "holds"


def _anchor(title: str) -> str:
    return "".join(letter for letter in title.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _section(study: Study, results: Results, files: dict[str, str], level: str = "##") -> str:
    lines = [f"{level} {study.title}", ""]
    if study.published:
        lines += [f"*Published:* {study.published}", ""]
    lines += [f"*Here:* {study.setup} Seeds: {results.seeds}. `python -m studies {study.name}`", ""]
    lines += [markdown(grid(study, results))]
    lines += _pictures(study, results, files)
    lines += [f"- {_judged(study, results, number)}" for number in range(len(study.claims))]
    if study.claims:
        lines.append("")
    if study.limits:
        lines += [f"*Read with care:* {study.limits}", ""]
    return "\n".join(lines)


def _judged(study: Study, results: Results, number: int) -> str:
    claim = study.claims[number]
    why = claim.fails(results.rows)
    if isinstance(claim, Departure):
        figures = claim.claim.fails(results.rows)
        return f"{claim.text} **Not shown** ({figures}). {claim.why}" if not why else f"{claim.text} **{why}**"
    return f"{claim.text} **Does not hold:** {why}." if why else f"{claim.text} Holds."


def _pictures(study: Study, results: Results, files: dict[str, str]) -> list[str]:
    lines = []
    if study.pictured:
        files[f"{PICTURES}/study_{study.name}.svg"] = bars(study, results)
        lines += [f"![{study.pictured}]({PICTURES}/study_{study.name}.svg)", ""]
    if study.timeline:
        trial = study.trials(study.seed(0))[study.timeline[-1]]
        name = f"{PICTURES}/study_{study.name}_time.svg"
        files[name] = timeline(study, results, trial.sample_ns, trial.fault_ns)
        lines += [f"![goodput over time]({name})", ""]
    return lines
