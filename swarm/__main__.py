"""`python -m swarm`: run seeds, say which failed and how to run them again; exit code 1 when one did.

`--seeds N` runs N seeds of each series from `--first` on, on all CPUs, or on the workers of a Dask cluster. `--seed K`
runs one, in this process, with the whole error; with `--shrink` it also prints the smallest case that fails in the same
way. `--write-digests` brings the stored digests up to date. A seed means one fabric of MRC, and with `--series systems`
one of any system.
"""

import argparse
import json
import sys
import traceback
from collections.abc import Sequence

from orchestrator.process.job_arguments import add_job_options, asked_pool, count
from orchestrator.process.job_pool import JobPool
from swarm import batch, digests
from swarm.case import MRC, SERIES
from swarm.run import run
from swarm.shrink import shrink


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.write_digests:
        digests.write()
        print(f"{digests.STORE.name} is up to date")
        return 0
    if arguments.seed is not None:
        return _one(arguments.series or MRC, arguments.seed, arguments.shrink)
    series = (arguments.series,) if arguments.series else SERIES
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    with asked_pool(parser, arguments) as pool:
        return _many(series, seeds, pool, arguments.seconds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m swarm", description="Random fabrics in virtual time, under watch.")
    parser.add_argument("--seeds", type=count, default=100, help="how many seeds (default: 100)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, help="run this one alone, and show the whole error")
    parser.add_argument("--series", choices=SERIES, help="run only seeds of these (default: all; with --seed: mrc)")
    add_job_options(parser)
    parser.add_argument("--seconds", type=count, help="begin no further seed after so many")
    parser.add_argument("--shrink", action="store_true", help="with --seed: print the smallest case that fails so")
    parser.add_argument("--write-digests", action="store_true", help="bring the stored digests up to date")
    return parser


def _one(series: str, seed: int, smaller: bool) -> int:
    case = batch.DRAW[series](seed)
    topology = case.topology
    system = f"{topology.system_name}, " if series != MRC else ""
    print(f"seed {seed}: {system}{topology.planes} planes, {topology.t0_per_plane} T0s, {topology.t1_per_plane} T1s, "
          f"{topology.nics} NICs, {len(case.flows)} flows, {case.bytes_posted:,} bytes")  # fmt: skip
    print(f"  nic {dict(topology.nic)}\n  switch {dict(topology.switch)}")
    for fault in case.faults:
        print(f"  {fault}")
    outcome = run(case)
    reason = outcome.reason or (batch.cut_otherwise(outcome) if not outcome.cut else "")
    if outcome.crash is not None:
        traceback.print_exception(outcome.crash)
    end = f"{outcome.data_packets:,} data packets, {outcome.ended_ns:,} ns, {outcome.totals}"
    print(f"FAILED  {reason}" if reason else f"ok{'  (cut short)' if outcome.cut else ''}  {end}  {outcome.digest}")
    if reason and smaller and outcome.failed:
        print(json.dumps(shrink(case).to_dict(), indent=1))
    return 1 if reason else 0


def _many(series: Sequence[str], seeds: range, pool: JobPool, seconds: float | None) -> int:
    done = 0

    def tell(line: batch.Line) -> None:
        nonlocal done
        done += 1
        if line.reason:
            print(f"FAILED {line.series} seed {line.seed}: {line.reason}\n  {line.replay}", flush=True)
        elif done % 20 == 0:
            print(f"{done} seeds done", flush=True)

    summary = batch.run_batch(seeds, pool, tell, seconds, series)
    short = sum(line.cut for line in summary.lines)
    print(
        f"{len(summary.lines)} seeds, {summary.data_packets:,} data packets, {len(summary.failures)} failed, "
        f"{short} cut short, {summary.wall_s:.1f} s"
    )
    for line in summary.failures:
        print(f"  {line.replay}")
    return 1 if summary.failures else 0


if __name__ == "__main__":
    sys.exit(main())
