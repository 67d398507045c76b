"""Runs independent jobs side by side: in this process, in processes of this host, or on the workers of a Dask cluster.

Owns where jobs run and how many at a time. A job is a function of a module and arguments that can be pickled. The order
of its results is the caller's: `as_they_end` numbers them.
"""

import os
import pickle
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any, Final, NamedTuple, TypeVar

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from orchestrator.process.code_digest import ROOT, code_digest
from orchestrator.process.launcher import ProcessFailedError

CONNECT_WALL_S: Final = 10.0
_EXTRA: Final = "pip install 'mrcfabric[dask]'"
_START: Final = (
    "install the same commit (`pip install -e '.[dask]'`); `dask worker ADDRESS --nworkers auto --nthreads 1`"
)
_R = TypeVar("_R")


class JobPool(NamedTuple):
    """Where jobs run."""

    executor: Executor
    jobs: int
    """How many run at a time."""


def cpus() -> int:
    """How many processes may run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def job_pool(jobs: int | None = None, dask: str | None = None) -> Iterator[JobPool]:
    """A pool of `jobs` processes (None: one per CPU); with `dask`, the workers of the cluster at that address instead.

    One job at a time runs in this process. Jobs that have not begun are dropped at the end; after an exception, Ctrl-C
    included, those under way are ended, too, and so they are when this process is killed.

    Raises ConfigError for a cluster that cannot be used.
    """
    if dask is not None:
        with _cluster(dask) as pool:
            yield pool
        return
    count = cpus() if jobs is None else jobs
    if count == 1:
        yield JobPool(_Here(), 1)
        return
    # A fork would inherit whatever the caller has open.
    others = set(active_children())
    executor = ProcessPoolExecutor(count, get_context("forkserver"), initializer=_end_with_parent)
    try:
        _start_deaf(executor)
        yield JobPool(executor, count)
    except BaseException:
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _start_deaf(executor: ProcessPoolExecutor) -> None:
    """Start the first worker, and the server from which all are forked, with SIGINT blocked.

    A terminal sends Ctrl-C to all of them, and each would print a traceback. What this process does about it is enough.
    """
    # The tracker of resources runs since the executor was made: to start it would unblock the signal here.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        executor.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """In a worker: end when the process that made the pool has ended, however it did.

    A worker of the standard library would finish its job and then wait for ever, and the server of forks with it.
    """
    parent = parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        parent.join()
        os._exit(1)

    Thread(target=watch, name="parent", daemon=True).start()


def as_they_end(
    pool: JobPool, job: Callable[..., _R], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, _R]]:
    """(number of the arguments, what the job returned), in the order in which jobs end. Raises what a job raises.

    `arguments` is read only when a job can begin, so it may end early. Raises ProcessFailedError when a process of the
    pool was killed: which jobs it had is not known.
    """
    try:
        yield from _as_they_end(pool, job, arguments)
    except BrokenExecutor:
        hint = "for want of memory, if nobody did it: fewer --jobs take less"
        raise ProcessFailedError(f"one of the {pool.jobs} processes that run jobs was killed ({hint})") from None


def _as_they_end(
    pool: JobPool, job: Callable[..., _R], arguments: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[int, _R]]:
    numbered = enumerate(arguments)
    running: dict[Future[_R], int] = {}
    while True:
        while len(running) < pool.jobs and (due := next(numbered, None)) is not None:
            running[pool.executor.submit(job, *due[1])] = due[0]
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            yield running.pop(future), future.result()


class _Here(Executor):
    """Runs each job when it is submitted, in this thread."""

    def submit(self, job: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        future: Future[_R] = Future()
        future.set_result(job(*args, **kwargs))
        return future


class _There(Executor):
    """Runs jobs on the workers of a cluster. Jobs travel packed: the scheduler need not know their modules."""

    def __init__(self, cluster: Executor) -> None:
        self._cluster = cluster

    def submit(self, job: Callable[..., _R], /, *args: Any, **kwargs: Any) -> Future[_R]:
        return self._cluster.submit(_unpacked, pickle.dumps((job, args, kwargs)))


def _unpacked(packed: bytes) -> Any:
    """Run a job on a worker. Some of its modules exist in a checkout only, which a worker's path may lack."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    job, args, kwargs = pickle.loads(packed)
    return job(*args, **kwargs)


@contextmanager
def _cluster(address: str) -> Iterator[JobPool]:
    try:
        from distributed import Client
    except ImportError:
        raise ConfigError("--dask", "Dask is not installed", _EXTRA) from None
    hint = "the address that `dask scheduler` prints, as tcp://HOST:8786"
    # A client that cannot read its address waits for itself when it is thrown away, and prints a traceback.
    if not re.fullmatch(r"((tcp|tls|ucx|wss?)://)?[^/]+:\d+", address):
        raise ConfigError("--dask", f"no scheduler answers at {shown(address)}: not an address with a port", hint)
    try:
        # Its methods have no types.
        client: Any = Client(address, timeout=CONNECT_WALL_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError("--dask", f"no scheduler answers at {address} ({error})", hint) from None
    with client:
        threads = client.nthreads()
        _check_workers(client, threads)
        executor = client.get_executor(pure=False)
        try:
            yield JobPool(_There(executor), len(threads))
        finally:
            executor.shutdown(wait=False)


def _check_workers(client: Any, threads: dict[str, int]) -> None:
    """A worker runs one job at a time, and the same code as this process: otherwise results could differ."""
    if not threads:
        raise ConfigError("--dask", "the scheduler has no workers", _START)
    if many := [worker for worker, count in threads.items() if count != 1]:
        raise ConfigError("--dask", f"the worker {many[0]} runs {threads[many[0]]} jobs in one process", _START)
    try:
        digests = client.run(code_digest)
        # By way of the scheduler, which must have the project, too.
        client.submit(code_digest, pure=False).result()
    except Exception as error:  # whatever a stranger's worker raises when it has no such module
        raise ConfigError("--dask", f"its scheduler or a worker cannot run this project ({error})", _START) from None
    own = code_digest()
    if other := [worker for worker, digest in digests.items() if digest != own]:
        raise ConfigError("--dask", f"the worker {other[0]} runs other code than this process", _START)
