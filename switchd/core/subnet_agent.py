"""The agent of an InfiniBand switch that a subnet manager talks to: who it is, how its ports stand, its table.

Owns the answers to directed-route requests, and what a manager has written: LIDs, and blocks of the table, which take
effect at the instant at which they come. `mrcfabric.wire.smp` has packets and their way, `switchd.core.credited` sends
them, `switchd.core.forwarding.lft` keeps the table.

Ports count from 1 in what is said here, and from 0 in the rest of the switch; 0 is the switch itself.

Sources: IBTA 14.2.5 (attributes), 14.3 (agents).
"""

from collections.abc import Callable, Sequence
from typing import Final

from mrcfabric.errors import WireError
from mrcfabric.lids import node_guid
from mrcfabric.units import Instant
from mrcfabric.wire.lrh import LID_MAX
from mrcfabric.wire.smp import (
    BAD_VALUE,
    DATA_BYTES,
    GET,
    LFT,
    NO_LFT_PORT,
    NODE_DESCRIPTION,
    NODE_INFO,
    OK,
    PORT_ACTIVE,
    PORT_DOWN,
    PORT_INFO,
    SELF_PORT,
    SET,
    SWITCH,
    SWITCH_INFO,
    UNSUPPORTED,
    Smp,
    answer,
    encode,
    trap,
)
from mrcfabric.wire.smp_attributes import LINK_STATE_CHANGE, NodeInfo, Notice, PortInfo, SwitchInfo
from switchd.core.events import LftWritten
from switchd.core.forwarding.lft import BLOCK_LIDS, NO_PORT, LftForwarding

BLOCKS_MAX: Final = (LID_MAX + 1) // BLOCK_LIDS
_PHYSICAL_UP: Final = 5
_PHYSICAL_POLLING: Final = 2


class SubnetAgent:
    """The agent of one switch."""

    def __init__(
        self, name: str, forwarding: LftForwarding, ports: int, up: Callable[[int], bool],
        lives: Sequence[tuple[int, int]] = (),
    ) -> None:  # fmt: skip
        """`up`: whether a port (from 0) has carrier. `lives`: by port, its HOQLife and its VLStallCount."""
        self.guid = node_guid(name)
        self.lid = 0
        """What the manager calls the switch; 0: it has not yet."""
        self.master_lid = 0
        """The manager's own LID."""
        self.state_change = False
        """A port has gone up or down since the manager last asked to hear of it."""
        self.linear_top = max((lid for lid, port in enumerate(forwarding.table) if port != NO_PORT), default=0)
        self.events: list[LftWritten] = []
        self.traps = 0
        """Traps sent."""
        self.written = 0
        """Blocks of the table that a manager has written."""
        self._name = name
        self._forwarding = forwarding
        self._ports = ports
        self._up = up
        self._lives = tuple(lives) or ((0, 0),) * ports
        self._answers: dict[int, Callable[[Instant, Smp, int], tuple[int, bytes]]] = {
            NODE_DESCRIPTION: self._description,
            NODE_INFO: self._node_info,
            SWITCH_INFO: self._switch_info,
            PORT_INFO: self._port_info,
            LFT: self._table,
        }

    def ask(self, at_ns: Instant, smp: Smp, in_port: int) -> Smp | None:
        """The answer to a request that has come to its end by `in_port` (from 1); None: it was no request."""
        if smp.method not in (GET, SET) or smp.d:
            return None
        found = self._answers.get(smp.attribute)
        if found is None or (smp.method == SET and smp.attribute in (NODE_INFO, NODE_DESCRIPTION)):
            return answer(smp, UNSUPPORTED)
        try:
            status, data = found(at_ns, smp, in_port)
        except WireError:
            return answer(smp, BAD_VALUE)
        return answer(smp, status, data if status == OK else None)

    def trap(self) -> bytearray | None:
        """The packet that tells the manager of a port that has changed; None: it is not known."""
        if not self.lid or not self.master_lid:
            return None
        self.traps += 1
        details = self.lid.to_bytes(2, "big").ljust(54, b"\0")
        notice = Notice(LINK_STATE_CHANGE, self.lid, details, count=self.traps & 0x7FFF)
        return encode(trap(notice.emit()), self.lid, self.master_lid)

    def _description(self, _at_ns: Instant, _smp: Smp, _in_port: int) -> tuple[int, bytes]:
        return OK, self._name.encode()[:DATA_BYTES]

    def _node_info(self, _at_ns: Instant, _smp: Smp, in_port: int) -> tuple[int, bytes]:
        info = NodeInfo(SWITCH, self._ports, self.guid, self.guid, self.guid, in_port, partition_cap=8)
        return OK, info.emit()

    def _switch_info(self, _at_ns: Instant, smp: Smp, _in_port: int) -> tuple[int, bytes]:
        if smp.method == SET:
            wanted = SwitchInfo.parse(smp.data)
            if wanted.linear_top > LID_MAX:
                return BAD_VALUE, b""
            self.linear_top = wanted.linear_top
            # IBTA 14.2.5.4: writing 1 says that the manager has seen it.
            self.state_change = self.state_change and not wanted.port_state_change
        info = SwitchInfo(LID_MAX + 1, self.linear_top, int(self.state_change), life_time=self._lives[0][0])
        return OK, info.emit()

    def _port_info(self, _at_ns: Instant, smp: Smp, in_port: int) -> tuple[int, bytes]:
        number = smp.modifier
        if number > self._ports:
            return BAD_VALUE, b""
        if smp.method == SET and number == SELF_PORT:
            wanted = PortInfo.parse(smp.data)
            if wanted.lid > LID_MAX or wanted.master_sm_lid > LID_MAX:
                return BAD_VALUE, b""
            self.lid, self.master_lid = wanted.lid, wanted.master_sm_lid
        up = number == SELF_PORT or self._up(number - 1)
        life, stalls = (0, 0) if number == SELF_PORT else self._lives[number - 1]
        info = PortInfo(
            self.lid if number == SELF_PORT else 0, PORT_ACTIVE if up else PORT_DOWN, in_port,
            master_sm_lid=self.master_lid, head_life=life, vl_stall_count=stalls,
            physical_state=_PHYSICAL_UP if up else _PHYSICAL_POLLING,
        )  # fmt: skip
        return OK, info.emit()

    def _table(self, at_ns: Instant, smp: Smp, _in_port: int) -> tuple[int, bytes]:
        block = smp.modifier
        if block >= BLOCKS_MAX:
            return BAD_VALUE, b""
        table = self._forwarding.table
        if smp.method == SET:
            if any(port > self._ports and port != NO_LFT_PORT for port in smp.data):
                return BAD_VALUE, b""
            ports = bytes(NO_PORT if port in (SELF_PORT, NO_LFT_PORT) else port - 1 for port in smp.data)
            before = bytes(table[block * BLOCK_LIDS : (block + 1) * BLOCK_LIDS]).ljust(BLOCK_LIDS, bytes((NO_PORT,)))
            self._forwarding.set_block(block, ports)
            self.written += 1
            changed = sum(one != other for one, other in zip(before, ports, strict=True))
            if changed:
                self.events.append(LftWritten(at_ns, block, changed))
        found = table[block * BLOCK_LIDS : (block + 1) * BLOCK_LIDS].ljust(BLOCK_LIDS, bytes((NO_PORT,)))
        return OK, bytes(NO_LFT_PORT if port == NO_PORT else port + 1 for port in found)
