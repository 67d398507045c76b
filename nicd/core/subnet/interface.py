"""What a NIC does with management packets: it answers for itself, and hands answers and traps to its manager, if any.

Owns the way of such packets between ports and agents. A NIC forwards none.

Sources: IBTA 14.2.2 (directed routes), 14.3 (agents).
"""

from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.lids import base_lid, nic_of, node_guid
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.lrh import dlid_of
from mrcfabric.wire.smp import (
    BY_LID,
    CHANNEL_ADAPTER,
    DATA_BYTES,
    GET,
    NODE_DESCRIPTION,
    NODE_INFO,
    NOTICE,
    OK,
    PORT_ACTIVE,
    PORT_DOWN,
    PORT_INFO,
    SELF_PORT,
    SET,
    SM_INFO,
    TRAP,
    UNSUPPORTED,
    Smp,
    answer,
    encode,
    parse,
    step,
)
from mrcfabric.wire.smp_attributes import NodeInfo, PortInfo
from nicd.core.board import Board
from nicd.core.commands import SetManager, SetManagerPace, StartManager, StopManager
from nicd.core.events import Result
from nicd.core.stats import TAKEN
from nicd.core.subnet.manager import ManagerConfig, SubnetManager
from nicd.core.timers import Timer

_FIGURES: Final = ("sweep_ns", "timeout_ns", "retries", "outstanding", "poll_ns", "polls")
"""Of a manager that are settings of the NIC."""
BAD_SMP: Final = "smp"
"""Why a directed-route packet is dropped: it is broken, or not for this NIC."""


class SubnetInterface:
    """The management of one NIC."""

    __slots__ = ("_begin", "_board", "_delay_ns", "_guid", "managers", "traps")

    def __init__(self, board: Board) -> None:
        self._board = board
        self._guid = node_guid(board.config.name)
        self.managers: dict[int, SubnetManager] = {}
        """By port: the manager of the subnet behind it."""
        self.traps = 0
        """Traps that its managers have heard."""
        self._delay_ns = 0
        """How long its managers take over what comes."""
        self._begin = Timer(board.timers, self._start_own)
        board.stats.drops.setdefault(BAD_SMP, 0)

    @property
    def own(self) -> bool:
        """Whether this NIC is set to run managers."""
        return self._board.config.index < self._board.settings.sm_nics

    def begin(self, at_ns: Instant) -> None:
        """Start the managers that this NIC is set to run, at that instant."""
        if self.own:
            self._begin.set(at_ns)

    def _start_own(self, now: Instant) -> None:
        for port in range(self._board.ports.count):
            self.start_manager(now, StartManager(0, port))

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """Take a directed-route packet from a port. Returns what became of it."""
        smp = parse(packet)
        if smp is not None and smp.mgmt_class == BY_LID:
            return self._hear(now, port, packet, smp)
        found = None if smp is None else step(smp, port + 1)
        if found is None or found[0] != SELF_PORT:
            return self._board.stats.drop(BAD_SMP)
        smp = found[1]
        if smp.d:
            manager = self.managers.get(port)
            if manager is None:
                return self._board.stats.drop(BAD_SMP)
            manager.queue.take(now, smp)
            return TAKEN
        if smp.method not in (GET, SET):
            return self._board.stats.drop(BAD_SMP)
        self._send(now, self._answer(smp, port))
        return TAKEN

    def _hear(self, now: Instant, port: int, packet: Buffer, smp: Smp) -> str:
        """Take a packet that came by LID: a trap for the manager."""
        config, manager = self._board.config, self.managers.get(port)
        lmc = config.settings.lid_lmc
        own = nic_of(dlid_of(packet), lmc) == config.index
        if manager is None or not own or (smp.method, smp.attribute) != (TRAP, NOTICE):
            return self._board.stats.drop(BAD_SMP)
        self.traps += 1
        manager.queue.take(now, smp)
        return TAKEN

    def start_manager(self, now: Instant, command: StartManager) -> Result:
        """`StartManager`."""
        config = self._board.config
        self._check(command.port)
        lmc = config.settings.lid_lmc
        given = {name: getattr(config.settings, f"sm_{name}") for name in _FIGURES}
        given |= {name: value for name in (*_FIGURES, "priority") if (value := getattr(command, name)) is not None}
        try:
            figures = ManagerConfig(
                command.port, self._guid, base_lid(config.index, lmc), lmc, base_lid(config.paths.nics, lmc), **given
            )
        except ConfigError as error:
            raise RefusedError(str(error)) from None
        self._stop(command.port)
        manager = SubnetManager(figures, self._board.timers, self._send, self._board.tell)
        self.managers[command.port] = manager
        manager.queue.delay_ns = self._delay_ns
        manager.start(now)
        return {"port": command.port}

    def set_manager(self, now: Instant, command: SetManager) -> Result:
        """`SetManager`."""
        self._begin.cancel()
        for port in list(self.managers):
            self._stop(port)
        if command.on and self.own:
            self._start_own(now)
        return {"on": command.on}

    def set_pace(self, now: Instant, command: SetManagerPace) -> Result:
        """`SetManagerPace`."""
        if command.delay_ns < 0:
            raise RefusedError(f"a delay of {command.delay_ns} ns; from 0 on")
        self._delay_ns = command.delay_ns
        for manager in self.managers.values():
            manager.queue.delay_ns = command.delay_ns
        return {"delay_ns": command.delay_ns}

    def stop_manager(self, now: Instant, command: StopManager) -> Result:
        """`StopManager`."""
        self._check(command.port)
        self._stop(command.port)
        return {"port": command.port}

    def counters(self) -> dict[str, Any]:
        """`traps` heard, and `managers` {port: figures of the manager of the subnet there}."""
        return {"traps": self.traps, "managers": {port: one.counters() for port, one in self.managers.items()}}

    def _check(self, port: int) -> None:
        if not 0 <= port < self._board.ports.count:
            raise RefusedError(f"no port {port}; this NIC has {self._board.ports.count}")

    def _stop(self, port: int) -> None:
        manager = self.managers.pop(port, None)
        if manager is not None:
            manager.stop()

    def _send(self, now: Instant, smp: Smp) -> None:
        """Send a packet of this NIC's own on its way; by a port without carrier it is lost."""
        found = step(smp, SELF_PORT)
        if found is None or not 1 <= found[0] <= self._board.ports.count:
            self._board.stats.drop(BAD_SMP)
            return
        self._board.ports.offer(now, found[0] - 1, encode(found[1]), True)

    def _answer(self, smp: Smp, port: int) -> Smp:
        """The answer to a request."""
        config = self._board.config
        if smp.attribute == NODE_DESCRIPTION and smp.method == GET:
            return answer(smp, OK, config.name.encode()[:DATA_BYTES])
        if smp.attribute == NODE_INFO and smp.method == GET:
            info = NodeInfo(
                CHANNEL_ADAPTER, self._board.ports.count, self._guid, self._guid, self._guid + port, port + 1
            )  # fmt: skip
            return answer(smp, OK, info.emit())
        if smp.attribute == PORT_INFO and smp.modifier in (0, port + 1):
            # LIDs here go by the numbers of NICs; a manager may read them and not write others.
            lmc = config.settings.lid_lmc
            state = PORT_ACTIVE if self._board.ports.carrier >> port & 1 else PORT_DOWN
            return answer(smp, OK, PortInfo(base_lid(config.index, lmc), state, port + 1, lmc=lmc).emit())
        manager = self.managers.get(port)
        if smp.attribute == SM_INFO and smp.method == GET and manager is not None:
            return answer(smp, OK, manager.info().emit())
        return answer(smp, UNSUPPORTED)
