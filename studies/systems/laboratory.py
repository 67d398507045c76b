"""Measures rows: every point is a job of a pool; the results do not depend on the order in which they end."""

import gc
import sys
import time
from collections.abc import Sequence

from orchestrator.process.job_pool import JobPool, as_they_end
from studies.systems.catalog import GATES, ROWS, TABLE
from studies.systems.row import Finding, Row


def run(rows: Sequence[Row], pool: JobPool) -> dict[str, Sequence[Finding] | str]:
    """Measure every point of every row. A row that cannot be built here has the reason instead."""
    jobs = [(row.id, place) for row in rows if not row.needs() for place in range(len(row.points))]
    found = {jobs[number]: findings for number, findings in as_they_end(pool, _work, jobs)}
    results: dict[str, Sequence[Finding] | str] = {}
    for row in rows:
        mine = [found[job] for job in jobs if job[0] == row.id]
        results[row.id] = row.needs() or [finding for findings in mine for finding in findings]
    return results


def _work(name: str, place: int) -> Sequence[Finding]:
    # Found by name here: a row holds functions, which do not travel between processes.
    row = next(row for row in (*TABLE, *GATES, *ROWS) if row.id == name)
    began_s = time.process_time()
    found = row.measure(row.points[place])
    took_s = time.process_time() - began_s
    print(f"{name} {place + 1}/{len(row.points)}: {took_s:.1f} s", file=sys.stderr, flush=True)
    # A fabric is full of cycles and holds all its regions: the next one must not come on top of it.
    gc.collect()
    return found
