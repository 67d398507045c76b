"""python -m studies.systems: measures the rows and prints them, or writes docs/SYSTEMS.md.

python -m studies.systems                 all rows, printed
python -m studies.systems G1 E4           some
python -m studies.systems --write         all of them, into docs/SYSTEMS.md (`make systems`)
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from studies.systems.catalog import GATES, ROWS
from studies.systems.page import page, verdict
from studies.systems.row import Finding, Row

DOCUMENT = Path(__file__).parents[2] / "docs" / "SYSTEMS.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code: 1 where an exact row does not hold."""
    parser = argparse.ArgumentParser("python -m studies.systems", description="Acceptance of the systems.")
    parser.add_argument("names", nargs="*", metavar="ROW", help="rows to measure; without any, all")
    parser.add_argument("--processes", type=int, help="how many at a time; default: as many as CPUs")
    parser.add_argument("--write", action="store_true", help="write docs/SYSTEMS.md")
    given = parser.parse_args(arguments)
    known = {row.id: row for row in (*GATES, *ROWS)}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no row is called {unknown[0]}; there are {', '.join(known)}")
    if given.processes is not None and given.processes < 1:
        parser.error("--processes begins at 1")
    if given.write and given.names:
        parser.error("the page has all rows")
    chosen = [known[name] for name in given.names or known]
    results = run(chosen, given.processes or os.cpu_count() or 1)
    if given.write:
        DOCUMENT.write_text(page(GATES, ROWS, results), encoding="utf-8")
        print(DOCUMENT)
    else:
        for row in chosen:
            show(row, results[row.id])
    return int(any(row.exact and not _held(results[row.id]) for row in chosen))


def run(rows: Sequence[Row], processes: int) -> dict[str, Sequence[Finding] | str]:
    """Measure every point of every row, so many at a time; the results do not depend on how many."""
    results: dict[str, Sequence[Finding] | str] = {}
    jobs = [(row.id, place) for row in rows if not row.needs() for place in range(len(row.points))]
    began_s = time.monotonic()
    if processes == 1:
        found = [_work(*job) for job in jobs]
    else:
        with ProcessPoolExecutor(processes) as pool:
            found = list(pool.map(_work, *zip(*jobs, strict=True))) if jobs else []
    for row in rows:
        mine = [findings for (name, _), findings in zip(jobs, found, strict=True) if name == row.id]
        results[row.id] = row.needs() or [finding for findings in mine for finding in findings]
    print(f"{len(jobs)} points in {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    return results


def show(row: Row, result: Sequence[Finding] | str) -> None:
    """Print a row."""
    print(f"{row.id}. {row.title}: {verdict(result)}")
    for one in () if isinstance(result, str) else result:
        print(f"    {'' if one.held else 'NOT HELD: '}{one.at}: {one.shown}, wanted {one.wanted}")


def _held(result: Sequence[Finding] | str) -> bool:
    return isinstance(result, str) or all(finding.held for finding in result)


def _work(name: str, place: int) -> Sequence[Finding]:
    # Found by name here: a row holds functions, which do not travel between processes.
    row = next(row for row in (*GATES, *ROWS) if row.id == name)
    began_s = time.process_time()
    found = row.measure(row.points[place])
    took_s = time.process_time() - began_s
    print(f"{name} {place + 1}/{len(row.points)}: {took_s:.1f} s", file=sys.stderr, flush=True)
    # A fabric is full of cycles and holds all its regions: the next one must not come on top of it.
    gc.collect()
    return found


if __name__ == "__main__":
    sys.exit(main())
