"""python -m studies.systems: measures the rows and prints them, or writes docs/SYSTEMS.md.

python -m studies.systems                 all rows, printed
python -m studies.systems G1 E4           some
python -m studies.systems --write         all of them, into docs/SYSTEMS.md (`make systems`)
python -m studies.systems J1 --write      some, and the page keeps all others
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from orchestrator.process.job_arguments import add_job_options, asked_pool
from studies.systems.catalog import GATES, ROWS, TABLE
from studies.systems.laboratory import run
from studies.systems.page import page, verdict
from studies.systems.row import Finding, Row

DOCUMENT = Path(__file__).parents[2] / "docs" / "SYSTEMS.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code: 1 where an exact row does not hold."""
    parser = argparse.ArgumentParser("python -m studies.systems", description="Acceptance of the systems.")
    parser.add_argument("names", nargs="*", metavar="ROW", help="rows to measure; without any, all")
    add_job_options(parser)
    parser.add_argument("--write", action="store_true", help="write docs/SYSTEMS.md")
    given = parser.parse_args(arguments)
    known = {row.id: row for row in (*TABLE, *GATES, *ROWS)}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"no row is called {unknown[0]}; there are {', '.join(known)}")
    chosen = [known[name] for name in given.names or known]
    began_s = time.monotonic()
    with asked_pool(parser, given) as pool:
        results = run(chosen, pool)
    print(f"{time.monotonic() - began_s:.0f} s", file=sys.stderr)
    if given.write:
        DOCUMENT.write_text(page(TABLE, GATES, ROWS, results, DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
        print(DOCUMENT)
    else:
        for row in chosen:
            show(row, results[row.id])
    return int(any(row.exact and not _held(results[row.id]) for row in chosen))


def show(row: Row, result: Sequence[Finding] | str) -> None:
    """Print a row."""
    print(f"{row.id}. {row.title}: {verdict(result)}")
    for one in () if isinstance(result, str) else result:
        print(f"    {'' if one.held else 'NOT HELD: '}{one.at}: {one.shown}, wanted {one.wanted}")


def _held(result: Sequence[Finding] | str) -> bool:
    return isinstance(result, str) or all(finding.held for finding in result)


if __name__ == "__main__":
    sys.exit(main())
