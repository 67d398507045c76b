"""The options `--jobs` and `--dask` of the project's `python -m` commands, and counts as all of them read them.

Owns their words and how their errors are told: one line and exit code 2, as argparse does it.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from mrcfabric.errors import ConfigError
from orchestrator.process.job_pool import JobPool, job_pool

JOBS_HELP = "How many at a time; as many as there are CPUs."
DASK_HELP = "Workers of the Dask cluster with this scheduler, as tcp://HOST:8786, instead of processes here."


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add both options."""
    parser.add_argument("--jobs", type=count, metavar="N", help=JOBS_HELP)
    parser.add_argument("--dask", metavar="ADDRESS", help=DASK_HELP)


@contextmanager
def asked_pool(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Iterator[JobPool]:
    """The pool that the options ask for; ends the command if there is none."""
    with ExitStack() as stack:
        try:
            pool = stack.enter_context(job_pool(given.jobs, given.dask))
        except ConfigError as error:
            parser.error(str(error))
        yield pool


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} will not do; a whole number, 1 or more")
    return int(text)
