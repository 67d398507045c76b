"""python -m studies: lists the studies, runs some, writes the stored tables or checks them.

python -m studies                         what there is
python -m studies slow_link --seeds 2     one study, printed as a table
python -m studies --write                 all of them, into studies/tables and docs (`make tables`)
python -m studies --check                 all of them, compared with what is stored (`make tables CHECK=1`)
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mrcfabric.naming import shown
from mrcfabric.nearest import nearest_hint
from orchestrator.process.job_arguments import add_job_options, asked_pool
from studies import document
from studies.catalog import STUDIES
from studies.laboratory import Job, run
from studies.results import FOLDER, Results, differences, grid, path_of, plain, record, stored
from studies.study import Study

DOCS = FOLDER.parents[1] / "docs"
GOLDEN_TEXT = "golden.txt"
_SHOWN_MAX = 40
"""Most changed lines of one file that are printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code: 1 for a difference or a claim that does not hold, 2 for a wrong command."""
    parser = argparse.ArgumentParser("python -m studies", description="Experiments in virtual time on the real cores.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies to run; without any they are listed")
    parser.add_argument("--seeds", type=int, help="how many seeds instead of each study's own number")
    add_job_options(parser)
    parser.add_argument("--json", action="store_true", help="results as JSON instead of text")
    parser.add_argument(
        "--md", metavar="DIR", type=Path, help="write COMPARISON.md and its pictures from stored results"
    )
    parser.add_argument("--write", action="store_true", help="store the results, and everything made from them")
    parser.add_argument("--check", action="store_true", help="compare with the stored results and change nothing")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in STUDIES]
    if unknown:
        hint = nearest_hint(unknown[0], STUDIES, "")
        parser.error(f"no study is called {shown(unknown[0])}" + (f"; {hint}" if hint else ""))
    if given.seeds is not None and given.seeds < 1:
        parser.error("--seeds begins at 1")
    if given.seeds and (given.write or given.check):
        parser.error("stored results have each study's own number of seeds")
    if given.md and not (given.names or given.write or given.check):
        return _document(given.md)
    if not (given.names or given.write or given.check):
        return _list()
    studies = [STUDIES[name] for name in given.names or STUDIES]
    results = _run(studies, given.seeds, parser, given)
    if given.check:
        return _check(results)
    if given.write:
        _store(results)
        return _document(DOCS)
    return _print(studies, results, given.json)


def _list() -> int:
    width = max(map(len, STUDIES))
    for study in STUDIES.values():
        count = len(study.trials(study.seed(0)))
        print(f"{study.name.ljust(width)}  {study.title} ({count} variants, {study.seeds} seeds)")
    return 0


def _run(
    studies: Sequence[Study], seeds: int | None, parser: argparse.ArgumentParser, given: argparse.Namespace
) -> list[Results]:
    began_s = time.monotonic()
    finished = 0

    def done(_job: Job) -> None:
        nonlocal finished
        finished += 1
        if sys.stderr.isatty():
            print(f"\r{finished} trials", end="", file=sys.stderr, flush=True)

    with asked_pool(parser, given) as pool:
        results = run(studies, pool, seeds, done)
    print(f"\r{finished} trials in {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    return results


def _print(studies: Sequence[Study], results: Sequence[Results], as_json: bool) -> int:
    if as_json:
        print(json.dumps([record(result) for result in results], indent=1))
        return 0
    failed = False
    for study, result in zip(studies, results, strict=True):
        print(f"{study.title} ({result.seeds} seeds)\n{study.setup}\n\n{plain(grid(study, result))}")
        for claim in study.claims:
            why = claim.fails(result.rows)
            failed = failed or bool(why)
            print(f"  {'does not hold' if why else 'as expected'}: {claim.text}{f' ({why})' if why else ''}")
        print()
    return int(failed)


def _store(results: Sequence[Results]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for result in results:
        path_of(result.study).write_text(result.text(), encoding="utf-8")
        if result.study == "golden":
            (FOLDER / GOLDEN_TEXT).write_text(plain(grid(STUDIES["golden"], result)), encoding="utf-8")


def _check(results: Sequence[Results]) -> int:
    changed = 0
    for result in results:
        path = path_of(result.study)
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        found = differences(old, result.text())
        if found:
            changed += 1
            print(f"{path.name}:", *found[:_SHOWN_MAX], sep="\n")
    print(f"{changed} of {len(results)} tables differ from what is stored" if changed else "all tables are as stored")
    return int(bool(changed))


def _document(folder: Path) -> int:
    for path in document.write({name: stored(name) for name in STUDIES}, folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
