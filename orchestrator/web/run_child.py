"""A scenario that a page has started: runs `mrcfabric run FILE --on FOLDER --json` as a child, and reads its output.

Owns the child and the state of its run, and puts its output into the page state. One run goes on at a time. The first
request to end it interrupts it; it then still judges and reports. The second interrupt ends it at once; a third request
kills it. It ends with this process, too: the kernel interrupts it then, and the agent heals what it broke.
"""

import asyncio
import contextlib
import ctypes
import json
import signal
import sys
from pathlib import Path
from typing import Any, Final

from mrcfabric.errors import RefusedError
from orchestrator.report.files import PAGE_NAME
from orchestrator.web.page_state import PageState

LINE_BYTES_MAX: Final = 8 << 20
WORDS_BYTES_MAX: Final = 4096
LOOK_WALL_S: Final = 0.1
"""Looks of a run may come many times per second; at most one in this time is passed on."""
END_WALL_S: Final = 10.0
RUNS: Final = "runs"
"""A folder below the run folder; it has a folder for each scenario with its latest report."""
REPORT_PATH: Final = "/api/runs/report"
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl


class RunChild:
    """The runs on the fabric of one run folder, one after the other."""

    def __init__(self, folder: Path, page_state: PageState) -> None:
        self._folder = folder
        self._page_state = page_state
        self._child: asyncio.subprocess.Process | None = None
        self._following: asyncio.Task[None] | None = None
        self._number = 0
        self._ends = 0
        self._report: Path | None = None
        self._state: dict[str, Any] = {}
        self._look_s = 0.0

    @property
    def pid(self) -> int | None:
        """The process of the run; None before it exists."""
        return None if self._child is None else self._child.pid

    @property
    def report(self) -> Path | None:
        """The page of the last run that wrote one."""
        return self._report

    def start(self, file: Path, ident: str, name: str, seed: str | None) -> dict[str, Any]:
        """Start a run; returns its state. Raises RefusedError while another one goes on."""
        if self._following is not None and not self._following.done():
            raise RefusedError(f"{self._state['name']} is still running")
        self.begin(ident, name)
        folder = self._folder / RUNS / file.stem
        command = ["run", str(file), "--on", str(self._folder), "--json", "--report", str(folder)]
        command += [] if seed is None else [f"--seed={seed}"]
        self._following = asyncio.ensure_future(self._follow(command, folder))
        return self._state

    def begin(self, ident: str, name: str) -> None:
        """Begin a new run with the next number; `hear` takes its lines."""
        self._number += 1
        self._ends = 0
        self._state = {
            "number": self._number, "scenario": ident, "name": name, "phase": "starting", "exit_code": None,
            "verdict": None, "error": "", "report": None,
        }  # fmt: skip
        self._tell()

    def end(self) -> dict[str, Any]:
        """Interrupt the run; returns its state. Raises RefusedError when no run goes on."""
        child = self._child
        if child is None or child.returncode is not None:
            raise RefusedError("no scenario is running")
        self._ends += 1
        with contextlib.suppress(ProcessLookupError):
            # SIGTERM: a Python that is still starting simply ends by it, but prints a traceback on SIGINT.
            child.send_signal(signal.SIGTERM if self._ends <= 2 else signal.SIGKILL)
        self._state["phase"] = "ending"
        self._tell()
        return self._state

    async def close(self) -> None:
        """End the run and wait for it."""
        if self._following is None:
            return
        try:
            while not self._following.done() and self._ends <= 2:
                with contextlib.suppress(RefusedError):
                    self.end()
                await asyncio.wait([self._following], timeout=END_WALL_S)
        finally:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self, command: list[str], folder: Path) -> None:
        try:
            self._child = child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "orchestrator.cli", *command,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX, preexec_fn=_end_with_parent,
            )  # fmt: skip
        except OSError as error:
            self._ended(error.errno or 1, error.strerror or str(error), folder)
            return
        assert child.stdout is not None
        words = asyncio.ensure_future(_last_words(child.stderr))
        while line := await child.stdout.readline():
            self.hear(line)
        self._ended(await child.wait(), await words, folder)

    def hear(self, text: bytes) -> None:
        """Take one line of the run's output."""
        line = json.loads(text)
        if line["event"] == "look":
            now_s = asyncio.get_running_loop().time()
            if now_s - self._look_s < LOOK_WALL_S:
                return
            self._look_s = now_s
        if self._state["phase"] == "starting":
            self._state["phase"] = "running"
        if line["event"] == "end":
            self._state["verdict"] = line["verdict"]
        self._page_state.enter_run(dict(self._state), [line])

    def _ended(self, code: int, words: str, folder: Path) -> None:
        if code == -signal.SIGTERM:
            words = "ended before it had begun"  # it was still starting, so its signal handler was not set yet
        self._state.update(phase="ended", exit_code=code, error=words)
        if self._state["verdict"] is not None and (folder / PAGE_NAME).exists():
            self._report = folder / PAGE_NAME
            self._state["report"] = REPORT_PATH
        self._tell()

    def _tell(self) -> None:
        self._page_state.enter_run(dict(self._state))


async def _last_words(stream: asyncio.StreamReader | None) -> str:
    """Read all that it writes to standard error; returns the end of it."""
    assert stream is not None
    kept = b""
    while more := await stream.read(WORDS_BYTES_MAX):
        kept = (kept + more)[-WORDS_BYTES_MAX:]
    return kept.decode(errors="replace").strip().removeprefix("mrcfabric: ")


def _end_with_parent() -> None:
    """Have the kernel signal the child when this process ends; runs in the child before anything else."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
