"""`python -m swarm.routing --seeds N`: random fabrics that route, under watch; exit code 1 when one broke a rule.

Every so many seeds run a second time with their time cut by the simulator alone, and as a fabric whose tables stand.
"""

import argparse
import sys
from typing import Final

from orchestrator.process.job_arguments import count
from swarm.invariant import InvariantError
from swarm.routing.run import run, run_static
from swarm.watched import CutShortError

AGAIN_EVERY: Final = 4


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m swarm.routing", description="Random fabrics that route.")
    parser.add_argument("--seeds", type=count, default=10, help="how many seeds (default: 10)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    arguments = parser.parse_args(argv)
    failed = short = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        try:
            one(seed)
        except CutShortError:
            short += 1
        except InvariantError as broken:
            failed += 1
            print(f"FAILED seed {seed}: {broken}\n  python -m swarm.routing --first {seed} --seeds 1", flush=True)
    print(f"{arguments.seeds} seeds, {failed} failed, {short} cut short")
    return 1 if failed else 0


def one(seed: int) -> None:
    """A seed with all that belongs to it. Raises InvariantError, CutShortError."""
    digest = run(seed)
    if seed % AGAIN_EVERY == 0:
        run_static(seed)
        if run(seed, stepwise=False) != digest:
            raise InvariantError("time", "fabric", 0, "events depend on how time is cut")


if __name__ == "__main__":
    sys.exit(main())
