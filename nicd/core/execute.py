"""Carries out commands: one function per command of `commands`, which returns the result that its docstring says.

Owns the commands about memory and ports; those about QPs are the transport's. A command that cannot be carried out
raises `RefusedError` inside and ends as a `CommandDone` with the reason; it leaves nothing half done.
"""

from typing import Any

from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from nicd.core.commands import (
    DeregisterMemory,
    RegisterMemory,
    SetCarrier,
    SetImpairment,
    SetManager,
    SetManagerPace,
    SetPauseStorm,
    SetReceiveRate,
)
from nicd.core.credit_holder import CreditHolder
from nicd.core.events import CommandDone, PortChange, Result
from nicd.core.pause_sender import PauseSender
from nicd.core.transport import CarryOut, Transport


class Executor:
    """What commands do to one NIC."""

    __slots__ = ("_board", "_pauses", "_table", "transport")

    def __init__(self, transport: Transport, pauses: PauseSender | CreditHolder | None = None) -> None:
        """`pauses` None: nobody waits for this NIC."""
        self._board = transport.board
        self._pauses = pauses
        self.transport = transport
        self._table: dict[type, CarryOut] = {
            RegisterMemory: self._register_memory,
            DeregisterMemory: self._deregister_memory,
            SetCarrier: self._set_carrier,
            SetImpairment: self._set_impairment,
            SetPauseStorm: self._set_pause_storm,
            SetReceiveRate: self._set_receive_rate,
            # Where there are subnet managers, `teach` replaces these.
            SetManager: lambda _now, command: {"on": command.on},
            SetManagerPace: lambda _now, command: {"delay_ns": command.delay_ns},
            **transport.commands,
        }

    def teach(self, kind: type, carry_out: CarryOut) -> None:
        """Add a kind of command that a part beside the core carries out."""
        self._table[kind] = carry_out

    def execute(self, now: Instant, command: Any) -> None:
        """Carry out one command and report its end."""
        error: str | None = None
        result: Result = {}
        try:
            result = self.carry_out(now, command)
        except RefusedError as refusal:
            error = str(refusal)
        self._board.tell(CommandDone(now, command.token, error, result))

    def carry_out(self, now: Instant, command: Any) -> Result:
        """Carry out one command for a caller beside the core; returns its result. Raises RefusedError."""
        function = self._table.get(type(command))
        if function is None:
            raise RefusedError(f"transport {self.transport.name} has no command {type(command).__name__}")
        return function(now, command)

    # -- memory

    def _register_memory(self, now: Instant, command: RegisterMemory) -> Result:
        region = self._board.memory.register(
            command.va, command.length, command.region_id, command.r_key, command.memory
        )
        return region.record()

    def _deregister_memory(self, now: Instant, command: DeregisterMemory) -> Result:
        self._board.memory.deregister(command.region_id)
        return {"region_id": command.region_id}

    # -- ports

    def _set_carrier(self, now: Instant, command: SetCarrier) -> Result:
        self._check_port(command.port)
        if self._board.ports.set_carrier(now, command.port, command.up):
            self._board.tell(PortChange(now, command.port, command.up))
            self.transport.carrier_changed(now, command.port)
        return {"port": command.port, "up": command.up}

    def _set_impairment(self, now: Instant, command: SetImpairment) -> Result:
        self._check_port(command.port)
        self._board.ports.set_impairment(now, command.port, command.impairment)
        return {"port": command.port}

    def _set_pause_storm(self, now: Instant, command: SetPauseStorm) -> Result:
        self._check_port(command.port)
        if self._pauses is not None:
            self._pauses.set_storm(now, command.port, command.on)
        return {"port": command.port, "on": command.on}

    def _set_receive_rate(self, now: Instant, command: SetReceiveRate) -> Result:
        if command.rate_bps < 0 or command.buffer_bytes < 0:
            raise RefusedError(f"{command.rate_bps} bit/s out of {command.buffer_bytes} bytes; both from 0 on")
        if self._pauses is not None:
            self._pauses.set_rate(now, command.rate_bps, command.buffer_bytes)
        return {"rate_bps": command.rate_bps}

    def _check_port(self, port: int) -> None:
        if not 0 <= port < self._board.ports.count:
            raise RefusedError(f"no port {port}; this NIC has {self._board.ports.count}")
