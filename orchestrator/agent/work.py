"""The agent's requests about work that no run owns: start a program on NICs, list programs, stop one.

Owns the names, lengths and results of the programs started here. Such a program lives until it is stopped or until its
length in fabric time is over. One that is done stays in the list until it is stopped or its place is needed. Programs
of runs and scripts are listed, too (`runs` knows their owners), and end with their owners.
"""

import asyncio
import itertools
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import shown
from mrcfabric.units import Instant
from nicd.programs.catalogue import PROGRAMS
from nicd.programs.kind import STEPS_MAX
from nicd.programs.program import PROGRAMS_MAX, Program
from orchestrator.agent.runs import RunRequests
from orchestrator.api import work
from orchestrator.client import bodies
from orchestrator.fabric.launched import LaunchedFabric

ENDLESS_NS: Final = 1 << 61
"""The length of a program that sends until somebody stops it."""
POLL_S: Final = 0.1


@dataclass(slots=True)
class _Started:
    """A program that was started here."""

    program: Program
    nics: list[str]
    until_ns: Instant | None
    """When it is stopped; None: time does not stop it."""


class WorkRequests:
    """Requests about work on one fabric. Each raises ConfigError and RefusedError."""

    def __init__(self, fabric: LaunchedFabric, runs: RunRequests) -> None:
        """`runs` knows the programs that have owners."""
        self._fabric = fabric
        self._runs = runs
        self._started: dict[str, _Started] = {}
        self._one_at_a_time = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    async def start(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Start work: `kind`, `ranks` (names of NICs), `figures` (see the catalogue); `id`, `seed`, `for_ns`.

        Returns its row (`rows`). Without `for_ns` and without a number of steps or messages, the work goes on until it
        is stopped.
        """
        kind, nics = bodies.text(body, "kind"), bodies.texts(body, "ranks") or []
        figures, for_ns = dict(bodies.table(body, "figures", {})), bodies.whole(body, "for_ns", 1)
        name, seed = bodies.text(body, "id", ""), bodies.text(body, "seed", "")
        if kind not in PROGRAMS:
            raise ConfigError("kind", f"{kind!r} is no kind of work", "there are " + ", ".join(PROGRAMS))
        if len(name) > work.NAME_CHARS_MAX or not name.isprintable():
            raise ConfigError("id", f"{name!r} will not do", f"1 to {work.NAME_CHARS_MAX} printable characters")
        if figures.get("restarts"):
            what = "work that is started by hand is not watched, so nobody restarts it"
            raise ConfigError("figures.restarts", what, "mrcfabric run --on restarts the jobs of a scenario")
        for nic in nics:
            self._fabric.topology.nic_index(nic)
        stopped_after_ns = _lasting(kind, figures, for_ns)
        self._refuse_held("work cannot start")
        # One at a time, so that two requests do not take the same name or the same last place.
        async with self._one_at_a_time:
            await self._make_room(name)
            named = name or self._free_name()
            program = await work.begin(self._fabric, kind, nics, figures=figures, name=named, seed=seed or None)
            until_ns = None if stopped_after_ns is None else program.begin_ns + stopped_after_ns
            self._started[program.name] = _Started(program, nics, until_ns)
        if until_ns is not None:
            self._background(self._stop_at(program, until_ns))
        self._fabric.journal.note("work", self._fabric.now_ns(), id=program.name, work=kind, ranks=len(nics))
        return next(row for row in await self.every({}) if row["name"] == program.name)

    async def every(self, _body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List every program that a NIC knows or that was started here (`rows`), but those over with owners."""
        return self.rows(await self._counters())

    async def stop(self, body: Mapping[str, Any]) -> list[str]:
        """Stop the programs in `ids`, or with `all`: true every one that was started here; returns their names."""
        everything = body.get("all") is True
        names = list(self._started) if everything else bodies.texts(body, "ids")
        if names is None:
            raise ConfigError("ids", "is missing", "mrcfabric work list shows them")
        self._refuse_held("work cannot be stopped")
        for name in names:
            if name not in self._started:
                raise self._not_ours(name)
        for name in names:
            await self._end(name, "somebody asked for it")
        return names

    def rows(self, counters: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One row for each program that is not over with its owner, from the counters of NICs.

        `name`, `kind`, `owner` ("" when started here), `ranks`, how many of them are `running`, `done`,
        `failed` or `lost` with their NIC, or `unheard`, because a NIC that lives has not answered yet; `steps`
        that every rank has finished, the `attempt` of a job (from 0), bytes `verified` and `wrong`, `begin_ns` and
        `until_ns` (None: until it is stopped or done), `endless`, `figures`.
        """
        rows = self._every_row(counters)
        return [row for row in rows if row["name"] in self._started or not self._runs.over(row["name"])]

    def _every_row(self, counters: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
        told: dict[str, list[Mapping[str, Any]]] = {name: [] for name in self._started}
        for answer in counters.values():
            for entry in answer.get("programs", ()):
                told.setdefault(entry["name"], []).append(entry)
        owners = self._runs.owners()
        return [self._row(name, entries, owners.get(name, ""), counters) for name, entries in told.items()]

    async def _counters(self) -> dict[str, dict[str, Any]]:
        return await self._fabric.counters(list(self._fabric.topology.nic_names()))

    async def close(self) -> None:
        """Cancel all timers."""
        for task in self._ending:
            task.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _row(self, name: str, entries: list[Mapping[str, Any]], owner: str, answered: Container[str]) -> dict[str, Any]:
        states = [entry["state"] for entry in entries]
        row: dict[str, Any] = {
            "name": name,
            "kind": entries[0]["kind"] if entries else "",
            "owner": owner,
            "ranks": len(entries),
            **{state: states.count(state) for state in ("running", "done", "failed")},
            "lost": 0,
            "unheard": 0,
            "steps": min((entry["steps"] for entry in entries), default=0),
            "attempt": max((entry["attempt"] for entry in entries), default=0),
            "verified": sum(entry["bytes_verified"] for entry in entries),
            "wrong": sum(entry["bytes_wrong"] for entry in entries),
            "begin_ns": None,
            "until_ns": None,
            "endless": False,
            "figures": {},
        }
        mine = self._started.get(name)
        if mine is not None:
            program = mine.program
            sends_ns = program.figures.get("for_ns")
            unheard = sum(nic not in answered and self._fabric.daemons.member(nic).alive for nic in mine.nics)
            row.update(
                kind=program.kind,
                ranks=len(mine.nics),
                lost=len(mine.nics) - len(entries) - unheard,
                unheard=unheard,
                begin_ns=program.begin_ns,
                until_ns=program.begin_ns + sends_ns if sends_ns not in (None, ENDLESS_NS) else mine.until_ns,
                endless=sends_ns == ENDLESS_NS,
                figures=dict(program.figures),
            )
        return row

    def _free_name(self) -> str:
        return next(name for number in itertools.count(1) if (name := f"w{number}") not in self._started)

    async def _make_room(self, name: str) -> None:
        """Forget programs that are over: the one of this name, or all when the fabric has no room for another.

        Raises RefusedError when the name is in use.
        """
        rows = self._every_row(await self._counters())  # also those that are over: NICs have them still
        full = len(rows) >= PROGRAMS_MAX
        for row in rows:
            over = row["name"] in self._started and not row["running"]
            if over and (full or row["name"] == name):
                await self._end(row["name"], "its place was needed")
            elif row["name"] == name:
                raise RefusedError(f"there is work {name} already" + (f", of {row['owner']}" if row["owner"] else ""))

    def _refuse_held(self, what: str) -> None:
        owner = self._fabric.limit_owner
        if owner is not None:
            raise RefusedError(f"{what} while fabric time is in the hands of {owner or 'somebody else'}")

    def _not_ours(self, name: str) -> RefusedError:
        owner = self._runs.owners().get(name)
        if owner is not None:
            return RefusedError(f"work {name} belongs to {owner} and ends with it")
        return RefusedError(f"there is no work {shown(name)}; `mrcfabric work list` shows what there is")

    async def _end(self, name: str, why: str) -> None:
        mine = self._started.pop(name, None)
        if mine is None:
            return  # its time ended while we waited
        left = await self._fabric.stop_work(mine.program)
        journal, now_ns = self._fabric.journal, self._fabric.now_ns()
        for nic, problem in left.items():
            journal.note("unstopped", now_ns, nic=nic, program=name, why=problem)
        journal.note("work_over", now_ns, id=name, why=why)

    async def _stop_at(self, program: Program, until_ns: Instant) -> None:
        """Stop a program at the first moment seen after its time.

        While a run controls fabric time, wait for the run.
        """
        while self._fabric.now_ns() < until_ns or self._fabric.limit_owner is not None:
            await asyncio.sleep(POLL_S)
            mine = self._started.get(program.name)
            if mine is None or mine.program is not program:
                return
        await self._end(program.name, "its time was over")

    def _background(self, waiting: Any) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(waiting)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _lasting(kind: str, figures: dict[str, Any], for_ns: int | None) -> int | None:
    """Make a program go on for `for_ns`, or until it is stopped when no figure says how often it works.

    Changes `figures`. Returns after how many ns to stop the program; None: it stops by itself, or never.
    """
    known = PROGRAMS[kind].figures
    counted = [figure for figure in ("steps", "messages", "for_ns") if figures.get(figure) is not None]
    if "for_ns" in known:
        if for_ns is not None:
            figures["for_ns"] = for_ns
        elif not counted:
            figures["for_ns"] = ENDLESS_NS
        return None
    if "steps" in known and not counted:
        figures["steps"] = STEPS_MAX
    return for_ns
