"""Gives programs to the NICs of a fabric and takes them away again, at one instant on all NICs.

Owns when that is: as soon as possible, which is not later where fabric time was fast while nothing happened. Owns names
and numbers, too: two programs that start at the same moment do not get the same, whoever starts them.
`nicd.programs.host` is what a NIC does with a program; `orchestrator.hosts.clock.timekeeper` holds fabric time.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.programs.program import UNKNOWN, Program
from orchestrator.fabric import arguments
from orchestrator.fabric.daemons import Daemons
from orchestrator.fabric.lifecycle import Lifecycle
from orchestrator.faults.table import Stamped
from orchestrator.hosts.clock.timekeeper import BEFORE_WALL_S, Timekeeper

NAME_TAKEN: Final = "has this name already"
NUMBER_TAKEN: Final = "has this number already, on some of these NICs"
"""Refusals of `load` end so; no NIC was told then."""


class ProgramLoading:
    """The programs of one fabric. Fabric time must be running, unless an instant is given."""

    def __init__(self, topology: Topology, daemons: Daemons, lifecycle: Lifecycle, time: Timekeeper) -> None:
        self._topology = topology
        self._daemons = daemons
        self._lifecycle = lifecycle
        self._time = time
        self._given: dict[str, Program] = {}
        """By name: the programs that NICs were given at once, and that were not stopped."""
        self._under_way: set[str] = set()
        """The names of those that NICs are being given."""

    async def load(self, program: Program, at_ns: Instant | None) -> None:
        """See `LaunchedFabric.load`. After a refusal no NIC has the program."""
        nics = arguments.nics(self._topology, program)
        if len(nics) < len(program.ranks):
            raise ConfigError(f"program {program.name}", "has ranks on NICs that do not exist")
        args = {"program": program.settings()}
        if at_ns is not None:
            at_ns = arguments.instant("at_ns", at_ns)
            await self._lifecycle.schedule([Stamped(at_ns, nic, "run_program", args) for nic in nics])
            return
        await self._refuse_taken(program)
        self._given[program.name] = program
        self._under_way.add(program.name)
        try:
            await self._give(program, nics, args)
        finally:
            self._under_way.discard(program.name)

    async def _give(self, program: Program, nics: Sequence[str], args: Mapping[str, Any]) -> None:
        answers = await self._command(nics, "run_program", args, before_ns=program.begin_ns)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if not errors:
            return
        # Those that refuse may have another program of this name, which goes on.
        taken = [nic for nic, answer in zip(nics, answers, strict=True) if not isinstance(answer, RefusedError)]
        left = await self._end(taken, program.name)
        if left:
            raise NoAnswerError(f"program {program.name} may be left at {', '.join(left)}: {errors[0]}")
        self._given.pop(program.name, None)
        raise errors[0]

    async def _refuse_taken(self, program: Program) -> None:
        """Raises RefusedError when another program has the name, or the number on one of the NICs."""
        for other in list(self._given.values()):
            named = other.name == program.name
            if not named and (other.number != program.number or not {*other.ranks} & {*program.ranks}):
                continue
            if other.name not in self._under_way and not await self._is_known(other):
                self._given.pop(other.name, None)
                continue
            raise RefusedError(f"program {other.name} {NAME_TAKEN if named else NUMBER_TAKEN}")

    async def _is_known(self, program: Program) -> bool:
        """Whether a NIC has a program: NICs that were started again have forgotten theirs."""
        nics = [nic for nic in arguments.nics(self._topology, program) if self._daemons.member(nic).alive]
        told = await asyncio.gather(*(self._daemons.call(nic, "progress") for nic in nics), return_exceptions=True)
        return any(isinstance(one, NoAnswerError) or (isinstance(one, dict) and program.name in one) for one in told)

    async def stop(self, program: Program) -> dict[str, str]:
        """See `LaunchedFabric.stop_work`."""
        asked = [nic for nic in arguments.nics(self._topology, program) if self._daemons.member(nic).alive]
        left = await self._end(asked, program.name)
        if not left and self._given.get(program.name) == program:
            del self._given[program.name]
        return left

    async def _end(self, asked: Sequence[str], name: str) -> dict[str, str]:
        """Have NICs end and forget a program; NIC -> error where that failed."""
        answers = await self._command(asked, "stop_program", {"name": name})
        for error in answers:
            if isinstance(error, BaseException) and not isinstance(error, (RefusedError, NoAnswerError)):
                raise error
        failed = {nic: str(error) for nic, error in zip(asked, answers, strict=True) if isinstance(error, Exception)}
        return {nic: why for nic, why in failed.items() if not why.startswith(UNKNOWN)}

    async def _command(
        self, nics: Sequence[str], op: str, args: Mapping[str, Any], before_ns: Instant | None = None
    ) -> list[Any]:
        """Have NICs carry out a command at one instant, as soon as possible; returns answers and errors.

        The instant is before `before_ns`; if that has passed, each NIC carries the command out when it gets it.
        """
        instant: Instant | None = self._time.next_ns()
        if before_ns is not None and instant is not None and instant >= before_ns:
            instant = before_ns - 1 if self._time.front_ns() < before_ns - 1 else None
        if instant is None:
            return await asyncio.gather(*(self._ask(nic, op, args, None) for nic in nics), return_exceptions=True)
        with self._time.before(instant):
            orders = [asyncio.ensure_future(self._ask(nic, op, args, instant)) for nic in nics]
            try:
                # A daemon answers an order at its instant. One that answers a later question has the order.
                await asyncio.gather(*map(self._question, nics), return_exceptions=True)
            except BaseException:
                for order in orders:
                    order.cancel()
                raise
        return await asyncio.gather(*orders, return_exceptions=True)

    async def _ask(self, nic: str, op: str, args: Mapping[str, Any], at_ns: Instant | None) -> Any:
        return await self._daemons.call(nic, "command", {"op": op, "args": dict(args), "at_ns": at_ns})

    async def _question(self, nic: str) -> None:
        await self._daemons.call(nic, "commands", timeout_s=BEFORE_WALL_S)
