"""One connected QP with nothing behind its ports, for ladders of input and expected output."""

from collections.abc import Callable
from typing import Any

from mrcfabric.node import Transmit
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.fastpath import Peeked, peeker
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.execute import Executor
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.qp import Link
from nicd.core.mrc.reverse_set import Way
from nicd.core.mrc.transport import MrcTransport

PLANES = 2
QPN, PEER_QPN = 100, 200
PSN_SEND, PSN_RECEIVE = 0xFFFFFE, 500
R_KEY = 7
VA = 0x1000
SIZE = 1 << 20


def topology(**nic: Any) -> Topology:
    return Topology(
        name="bench", planes=PLANES, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
        reserve_evs_per_qp=8, nic=nic,
    )  # fmt: skip


class Bench:
    """NIC h000 with QP 100 connected to QP 200 of h002, in RTS; region 1 (R_Key 7) at VA 0x1000."""

    def __init__(self, **nic: Any) -> None:
        self.board = MrcBoard(nic_config(topology(**nic), "h000"))
        self.transport = MrcTransport(self.board)
        self.table = self.transport._table
        self.executor = Executor(self.transport)
        self._peek: Callable[[Any], Peeked] = peeker(Dscp())
        for command in (
            RegisterMemory(0, VA, SIZE, 1, R_KEY),
            CreateQp(0, QPN),
            ConnectQp(0, QPN, 2, PEER_QPN, PSN_SEND, PSN_RECEIVE),
            ModifyQp(0, QPN, "rts"),
        ):
            self.executor.execute(0, command)
        link = self.table.find(QPN).link
        assert link is not None
        self.link: Link = link
        self.peer = link.peer
        self.board.events.clear()

    def post(self, now: int, length: int, wr_id: int = 1, imm: int | None = None) -> None:
        self.executor.execute(now, PostWrite(0, QPN, wr_id, 1, VA, length, VA, R_KEY, imm))

    def pump(self, now: int) -> list[Peeked]:
        """Let the scheduler fill the ports; what leaves up to `now`, taken apart."""
        if self.board.scheduler.busy:
            self.board.scheduler.pump(now)
        return self.sent(now)

    def sent(self, now: int) -> list[Peeked]:
        """What has left the ports up to `now`, taken apart, in order of arrival at the far ends."""
        return [self._peek(packet) for packet in self.packets(now)]

    def packets(self, now: int) -> list[Any]:
        """The same, as packets."""
        ports = self.board.ports
        for egress in ports.egress:
            egress.run(now, ports.out)
        if ports.tracking:
            ports.track(now + 1)
        out: list[Transmit] = sorted(ports.out, key=lambda entry: (entry[1], entry[0]))
        ports.out.clear()
        return [entry[2] for entry in out]

    def reply_port(self) -> int:
        """The port by which the next acknowledgement leaves; -1: none can."""
        way = self.peer.reply()
        return -1 if way is None else way[0]

    def way(self, ev: int) -> Way:
        """The way of an EV to the peer."""
        path = self.peer.destination.path(ev)
        return path.port, ev, path.outer

    def fire(self, until: int) -> None:
        """Let every timer up to `until` fire."""
        while (now := self.board.timers.next_ns()) <= until:
            self.board.timers.fire(now)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.board.events if isinstance(event, kind)]
