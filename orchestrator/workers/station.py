"""What a role works with: a worker's NIC, memory, QPs and channel, and the out-of-band exchange before it starts.

A worker creates one QP per peer, tells the orchestrator, hears of its peers' ends, and starts sending only when all can
receive.

    worker -> orchestrator   hello {ends: [[peer, endpoint]...], va, r_key}, connected, ready, ...
    orchestrator -> worker   peers {ends: [[peer, endpoint, va, r_key]...]}, start, ...
"""

import select
from dataclasses import dataclass

from nicd.verbs import Cqe, Device, Endpoint, MemoryRegion, QueuePair
from orchestrator.workers.channel import ChannelClosedError, Message, WorkerChannel

WAIT_S = 60.0
"""Longest wait without an event before the worker looks again, in case an event is missed."""
CQES_MAX = 1 << 16
"""More completions than can ever wait: a worker takes all of them before it sleeps."""


class WorkloadError(Exception):
    """The workload went wrong: a completion with an error, a QP in error, a message out of turn."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One peer: our QP to it, and its memory."""

    qp: QueuePair
    va: int
    r_key: int


class Station:
    """What a role works with: a worker's NIC, memory, QPs and channel."""

    def __init__(self, channel: WorkerChannel, nic: Device, name: str) -> None:
        self.channel = channel
        self.nic = nic
        self.name = name
        self.peers: dict[int, Peer] = {}
        """By the peer's number in the group."""
        self.memory: MemoryRegion
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._poll.register(nic, select.POLLIN)

    def connect(self, peers: list[int], memory_bytes: int) -> None:
        """Register memory, create a QP per peer, exchange ends. Returns when all workers can send."""
        nic, channel = self.nic, self.channel
        self.memory = nic.reg_mr(memory_bytes)
        qps = {peer: nic.create_qp() for peer in peers}
        ends = [[peer, list(qp.local)] for peer, qp in qps.items()]
        channel.send("hello", ends=ends, va=self.memory.va, r_key=self.memory.r_key)
        for peer, endpoint, va, r_key in self.expect("peers")["ends"]:
            nic.connect(qps[peer], Endpoint(*endpoint))
            self.peers[peer] = Peer(qps[peer], va, r_key)
        channel.send("connected")
        self.expect("start")
        for qp in qps.values():
            nic.start(qp)
        channel.send("ready")

    def expect(self, kind: str) -> Message:
        """The next message. Raises WorkloadError when it has another kind."""
        message = self.channel.receive()
        if message is None or message["kind"] != kind:
            raise WorkloadError(f"expected {kind}, got {message}")
        return message

    def wait(self) -> None:
        """Sleep until the NIC or the orchestrator has news. Raises ChannelClosedError when the channel is closed."""
        if not self.nic.waiting:
            ready = dict(self._poll.poll(WAIT_S * 1000))
            if ready.get(self.channel.fileno(), 0) & select.POLLHUP:
                raise ChannelClosedError("the orchestrator closed the channel")

    def completions(self) -> list[Cqe]:
        """The completions so far. Raises WorkloadError for the first failure."""
        cqes = self.nic.poll_cq(CQES_MAX)
        for cqe in cqes:
            if not cqe.ok:
                raise WorkloadError(f"QP {cqe.qpn}: {cqe.opcode} ended with {cqe.status} {cqe.detail}".rstrip())
        if self.nic.qp_errors:
            qpn, reason = self.nic.qp_errors[0]
            raise WorkloadError(f"QP {qpn} went into error: {reason}")
        return cqes
