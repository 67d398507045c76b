"""Gives programs to the NICs of a fabric and takes them away again, at one instant on all NICs.

Owns when that is: as soon as possible, which is not later where fabric time was fast while nothing happened.
`nicd.programs.host` is what a NIC does with a program; `orchestrator.hosts.clock.timekeeper` holds fabric time.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

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


class ProgramLoading:
    """The programs of one fabric. Fabric time must be running, unless an instant is given."""

    def __init__(self, topology: Topology, daemons: Daemons, lifecycle: Lifecycle, time: Timekeeper) -> None:
        self._topology = topology
        self._daemons = daemons
        self._lifecycle = lifecycle
        self._time = time

    async def load(self, program: Program, at_ns: Instant | None) -> None:
        """See `LaunchedFabric.load`."""
        nics = arguments.nics(self._topology, program)
        if len(nics) < len(program.ranks):
            raise ConfigError(f"program {program.name}", "has ranks on NICs that do not exist")
        args = {"program": program.settings()}
        if at_ns is not None:
            at_ns = arguments.instant("at_ns", at_ns)
            await self._lifecycle.schedule([Stamped(at_ns, nic, "run_program", args) for nic in nics])
            return
        for answer in await self._command(nics, "run_program", args, before_ns=program.begin_ns):
            if isinstance(answer, BaseException):
                raise answer

    async def stop(self, program: Program) -> dict[str, str]:
        """See `LaunchedFabric.stop_work`."""
        asked = [nic for nic in arguments.nics(self._topology, program) if self._daemons.member(nic).alive]
        answers = await self._command(asked, "stop_program", {"name": program.name})
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
