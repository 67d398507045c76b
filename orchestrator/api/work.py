"""Work that a script gives to a fabric: a program on some of its NICs, and its result.

Owns making the record of a program for a running fabric, and the waiting. `nicd.programs.catalogue` lists the programs;
`orchestrator.runs.program_results` puts together what the ranks report.
"""

import asyncio
import contextlib
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from nicd.programs import catalogue
from nicd.programs.program import PROGRAMS_MAX, Program
from orchestrator.fabric import arguments
from orchestrator.fabric.program_loading import NAME_TAKEN, NUMBER_TAKEN
from orchestrator.fabric.verbs import Verbs
from orchestrator.measures.recording import ProgramResult
from orchestrator.runs.program_results import ProgramResults

POLL_S: Final = 0.05
WAIT_WALL_S: Final = 600.0
NAME_CHARS_MAX: Final = 80
LEADS: Final = (0, 1, 4, 16)
"""How far ahead a program begins, try by try, as a multiple of the lead of a command sent now.

Fabric time waits while NICs are told. It may pass the start before that, where this process is slow or far away."""


class Work:
    """One program that was started. `Verbs.start` makes it."""

    def __init__(self, fabric: Verbs, program: Program) -> None:
        self.program = program
        self.nics = [fabric.topology.node_name(index) for index in program.ranks]
        """The NICs, in the order of their ranks."""
        self._fabric = fabric
        self._results = ProgramResults([program], fabric.topology)
        self._stopped = False
        self._stopping = asyncio.Lock()

    async def result(self) -> ProgramResult:
        """The result so far, rank by rank; a rank whose NIC died is `lost`. After `stop`: what it was just before."""
        if self._stopped:
            return self._results.results()[0]
        for nic, told in zip(self.nics, await asyncio.gather(*map(self._ask, self.nics)), strict=True):
            if told is None:
                self._results.lose([nic])
            else:
                self._results.enter_records(nic, told)
        return self._results.results()[0]

    async def finished(self, within_s: float = WAIT_WALL_S) -> ProgramResult:
        """Wait until every rank is done, and return the result.

        Raises RefusedError when a rank failed or is lost or somebody called `stop`, NoAnswerError after `within_s` of
        wall time.
        """
        try:
            async with asyncio.timeout(arguments.wall_s("within_s", within_s)):
                while self._results.working:
                    if self._stopped:
                        raise RefusedError(f"{self.program.name} was stopped")
                    result = await self.result()
                    bad = [rank for rank in result.ranks if rank.state in ("failed", "lost")]
                    if bad:
                        raise RefusedError(f"{self.program.name}: {bad[0].nic} {bad[0].state}: {bad[0].reason}")
                    await asyncio.sleep(POLL_S if self._results.working else 0)
        except TimeoutError:
            raise NoAnswerError(f"{self.program.name} is not done within {within_s:g} s") from None
        return self._results.results()[0]

    async def stop(self) -> ProgramResult:
        """Have the NICs end and forget the program; returns the result until just before. May be called again.

        Raises RefusedError when a living NIC still has it.
        """
        async with self._stopping:
            result = await self.result()
            if self._stopped:
                return result
            for nic, problem in (await self._fabric.stop_work(self.program)).items():
                raise RefusedError(f"{self.program.name} goes on at {nic}: {problem}")
            self._stopped = True
            return result

    async def _ask(self, nic: str) -> Any:
        """Ask a NIC about all its ranks; None when it is dead, or was started again and does not know this program."""
        try:
            told = await self._fabric.call(nic, "programs")
        except RefusedError:
            return None
        return told if any(entry["name"] == self.program.name for entry in told) else None


async def begin(
    fabric: Verbs,
    kind: str,
    nics: Sequence[str],
    *,
    figures: Mapping[str, Any],
    name: str | None = None,
    seed: str | None = None,
) -> Program:
    """Give NICs a program that begins soon, under a number (and by default a name) that no NIC uses yet.

    Returns when every NIC has taken its part. Raises ConfigError for figures that make no sense, RefusedError when a
    NIC refuses, the name is in use, or the NICs have no room for another program. Who is cancelled meanwhile, or gets
    no answer, leaves nothing behind. Of two that begin at the same moment, one takes another number.
    """
    taken: set[int] = set()
    late = 0
    while True:
        program = await _made(fabric, kind, nics, figures, name, seed, LEADS[late], taken)
        try:
            await fabric.load(program)
        except RefusedError as refusal:  # no NIC has it
            why = str(refusal)
            if why.endswith(NUMBER_TAKEN) or (name is None and why.endswith(NAME_TAKEN)):
                taken.add(program.number)
            elif why.endswith(NAME_TAKEN):
                raise RefusedError(f"there is work {name} already") from None
            elif late == len(LEADS) - 1 or (await fabric.clock()).front_ns < program.begin_ns:
                raise
            else:
                late += 1
        except (NoAnswerError, asyncio.CancelledError):
            with contextlib.suppress(RefusedError, NoAnswerError):
                await asyncio.shield(fabric.stop_work(program))  # some NICs may have taken it
            raise
        else:
            return program


async def _made(
    fabric: Verbs,
    kind: str,
    nics: Sequence[str],
    figures: Mapping[str, Any],
    name: str | None,
    seed: str | None,
    leads: int,
    refused: Container[int],
) -> Program:
    """The record of a program that begins `leads` leads of a command from now, under none of the numbers `refused`."""
    known = await asyncio.gather(*(fabric.call(nic, "progress") for nic in nics))
    if any(name in told for told in known):
        raise RefusedError(f"there is work {name} already")
    taken = {entry["number"] for told in known for entry in told.values()}
    number = next((one for one in range(PROGRAMS_MAX) if one not in taken and one not in refused), None)
    if number is None:
        raise RefusedError(f"these NICs have {PROGRAMS_MAX} programs, as many as there is room for")
    clock = await fabric.clock()
    program = Program(
        name=name or f"{kind}-{number}",
        kind=kind,
        number=number,
        ranks=tuple(map(fabric.topology.nic_index, nics)),
        begin_ns=clock.next_ns + leads * (clock.soon_ns - clock.front_ns) + 1,
        seed=fabric.topology.seed if seed is None else seed,
        figures=dict(figures),
    )
    catalogue.check(program)
    return program


def chosen(topology: Topology, wanted: str | int | Iterable[str], find: Any) -> list[str]:
    """The NICs in the order of the ranks: `all`, a number (the first so many), or names and globs.

    Raises ConfigError.
    """
    if wanted == "all":
        return list(topology.nic_names())
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        if not 1 <= wanted <= topology.nics:
            raise ConfigError("ranks", f"{wanted} will not do", f"1 to {topology.nics}")
        return list(topology.nic_names())[:wanted]
    found: list[str] = []
    for name in arguments.texts("ranks", wanted):
        found += [nic for nic in find(name, tier="nic") if nic not in found]
    return found
