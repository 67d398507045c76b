"""Jobs side by side: results by number, wherever they run, and what a cluster must be like."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process.code_digest import CODE, ROOT
from orchestrator.process.job_pool import as_they_end, cpus, job_pool
from orchestrator.process.launcher import ProcessFailedError


def doubled(number: int) -> tuple[int, int]:
    """A job: twice its number, and the process it ran in."""
    return 2 * number, os.getpid()


def refused(number: int) -> int:
    """A job that raises."""
    raise ValueError(f"{number} is refused")


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_are_numbered_by_their_arguments(jobs: int) -> None:
    with job_pool(jobs) as pool:
        found = dict(as_they_end(pool, doubled, ((number,) for number in range(5))))
    assert [found[number][0] for number in range(5)] == [0, 2, 4, 6, 8]
    elsewhere = {pid for _, pid in found.values()} - {os.getpid()}
    assert bool(elsewhere) == (jobs > 1)


def test_no_job_begins_before_there_is_room() -> None:
    begun: list[int] = []

    def arguments() -> Iterator[tuple[int]]:
        for number in range(3):
            begun.append(number)
            yield (number,)

    with job_pool(1) as pool:
        results = as_they_end(pool, doubled, arguments())
        assert begun == []
        next(results)
        assert begun == [0]


def killed(number: int) -> int:
    """A job whose process is killed."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_process_that_is_killed_is_one_error_for_all_jobs() -> None:
    with (
        job_pool(2) as pool,
        pytest.raises(ProcessFailedError, match="one of the 2 processes that run jobs was killed"),
    ):
        list(as_they_end(pool, killed, ((number,) for number in range(9))))


def test_what_a_job_raises_reaches_the_caller() -> None:
    with job_pool(1) as pool, pytest.raises(ValueError, match="7 is refused"):
        list(as_they_end(pool, refused, [(7,)]))


_SLEEPERS = """
import os, signal, time
from orchestrator.process.job_pool import as_they_end, job_pool
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
try:
    with job_pool(4) as pool:
        jobs = ["__import__('os').getpid()"] * 3 + ["__import__('time').sleep(600)"]
        for _, result in as_they_end(pool, eval, ((job,) for job in jobs)):
            print(result, flush=True)
except KeyboardInterrupt:
    print("interrupted")
"""


@contextmanager
def sleepers() -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A process whose pool has idle workers and one that is busy for long; and the PID of an idle one."""
    begun = [sys.executable, "-c", _SLEEPERS]
    pipe = subprocess.PIPE
    with subprocess.Popen(begun, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, start_new_session=True) as child:
        try:
            assert child.stdout is not None
            yield child, [int(child.stdout.readline()) for _ in range(3)][-1]
        finally:
            child.kill()


def members(session: int) -> list[Path]:
    """The processes of a session that run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, sid = entry.read_text().rpartition(") ")[2].split()[:4]
            if int(sid) == session and state != "Z":
                found.append(entry.parent)
    return found


def test_ctrl_c_of_a_terminal_ends_jobs_under_way_at_once_and_no_worker_prints_anything() -> None:
    with sleepers() as (child, _):
        os.killpg(child.pid, signal.SIGINT)
        said, complaint = child.communicate(timeout=30)
        assert (said.splitlines()[-1], complaint, child.returncode) == ("interrupted", "", 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_worker_outlives_the_process_that_made_the_pool(number: signal.Signals) -> None:
    with sleepers() as (child, idle):
        assert Path(f"/proc/{idle}") in members(child.pid)
        child.send_signal(number)
        child.wait()
        give_up = time.monotonic() + 30
        while members(child.pid):
            assert time.monotonic() < give_up, members(child.pid)
            time.sleep(0.05)


def test_a_process_per_cpu() -> None:
    assert 1 <= cpus() <= (os.cpu_count() or 1)


class Running:
    """A Dask program in a process of its own, ended with the block."""

    def __init__(self, program: str, folder: Path, *words: str, root: Path = ROOT) -> None:
        self._command = [sys.executable, "-m", f"distributed.cli.dask_{program}", *words]
        self._environment = {**os.environ, "PYTHONPATH": str(root), "DASK_TEMPORARY_DIRECTORY": str(folder)}
        self._folder = folder
        self.log = folder / f"{program}.log"

    def __enter__(self) -> "Running":
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._environment, cwd=self._folder
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A Dask scheduler without workers on the loopback; its address."""

    def address() -> re.Match[str] | None:
        assert scheduler.process.poll() is None, scheduler.log.read_text()
        return re.search(r"Scheduler at: +(tcp://\S+)", scheduler.log.read_text())

    with Running("scheduler", tmp_path, "--host", "127.0.0.1", "--port", "0", "--no-dashboard") as scheduler:
        wait_until(lambda: address() is not None)
        found = address()
        assert found is not None
        yield found[1]


def worker(cluster: str, folder: Path, threads: int = 1, root: Path = ROOT) -> Running:
    """A worker of the cluster, without a supervisor."""
    words = (cluster, "--host", "127.0.0.1", "--nthreads", str(threads), "--no-nanny", "--no-dashboard")
    return Running("worker", folder, *words, root=root)


def usable(cluster: str) -> bool:
    """Whether the cluster has a worker by now. Raises ConfigError if it has one that cannot be used."""
    try:
        with job_pool(dask=cluster):
            return True
    except ConfigError as error:
        if "has no workers" in str(error):
            return False
        raise


def wait_until(holds: Callable[[], bool]) -> None:
    """Poll for at most 60 s."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_the_workers_of_a_cluster_do_the_same_jobs(cluster: str, tmp_path: Path) -> None:
    assert not usable(cluster)
    with worker(cluster, tmp_path):
        wait_until(lambda: usable(cluster))
        with job_pool(dask=cluster) as pool:
            assert pool.jobs == 1
            found = dict(as_they_end(pool, doubled, ((number,) for number in range(5))))
    assert [found[number][0] for number in range(5)] == [0, 2, 4, 6, 8]
    assert os.getpid() not in {pid for _, pid in found.values()}


@pytest.mark.slow
def test_a_worker_with_several_threads_is_refused(cluster: str, tmp_path: Path) -> None:
    with worker(cluster, tmp_path, threads=2), pytest.raises(ConfigError, match="runs 2 jobs in one process"):
        wait_until(lambda: usable(cluster))


@pytest.mark.slow
def test_a_worker_with_other_code_is_refused(cluster: str, tmp_path: Path) -> None:
    older = tmp_path / "older"
    for package in CODE:
        shutil.copytree(ROOT / package, older / package, ignore=shutil.ignore_patterns("__pycache__"))
    with (older / "nicd" / "__init__.py").open("a") as source:
        source.write("# one line more\n")
    with worker(cluster, tmp_path, root=older), pytest.raises(ConfigError, match="runs other code"):
        wait_until(lambda: usable(cluster))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "ftp://x:1"])
def test_a_scheduler_that_does_not_answer_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.process.job_pool.CONNECT_WALL_S", 0.5)
    with pytest.raises(ConfigError, match="no scheduler answers"), job_pool(dask=address):
        pass


@pytest.mark.parametrize("address", ["nowhere", "ftp://x:1", "tcp://x"])
def test_an_address_that_dask_cannot_read_is_not_given_to_it(address: str) -> None:
    with (
        mock.patch("distributed.Client", side_effect=AssertionError),
        pytest.raises(ConfigError, match="not an address with a port"),
        job_pool(dask=address),
    ):
        pass


def test_without_dask_the_hint_is_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=re.escape("pip install 'mrcfabric[dask]'")), job_pool(dask="tcp://x:1"):
        pass
