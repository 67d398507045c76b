"""NICs without a fabric: commands are carried out at once, a WRITE is a copy.

Stands where the NIC cores stand behind a verbs server, so that the host API and the workloads can be tried without
packets. Fabric time is a count of commands.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nicd.core.commands import (
    Command,
    ConnectQp,
    CreateQp,
    DeregisterMemory,
    DestroyQp,
    ModifyQp,
    PostWrite,
    RegisterMemory,
)
from nicd.core.events import CommandDone, Completion, QpChange

BYTES_PER_NS = 100
"""100 GB/s: eight ports of 100 Gb/s."""


@dataclass(slots=True)
class LoopbackQp:
    qpn: int
    state: str = "init"
    peer_index: int = -1
    peer_qpn: int = -1
    sent: int = 0


@dataclass(slots=True)
class LoopbackNic:
    """One NIC of a group; `on_events` is the seam to a verbs server."""

    index: int
    group: "list[LoopbackNic]"
    on_events: Callable[[list[Any]], None]
    now_ns: int = 0
    regions: dict[int, tuple[int, memoryview, int]] = field(default_factory=dict)
    qps: dict[int, LoopbackQp] = field(default_factory=dict)
    numbers: int = 16
    commands: list[Command] = field(default_factory=list)
    corrupt_at: int | None = None
    """Flip a bit of this message (counted from 0) on its way."""
    writes: int = 0

    def command(self, command: Command) -> None:
        self.commands.append(command)
        asyncio.get_running_loop().call_soon(self.carry_out, command)

    def carry_out(self, command: Command) -> None:
        self.now_ns += 1000
        events: list[Any] = []
        at_ns = self.now_ns
        try:
            result = self.result_of(command, events)
            done = CommandDone(at_ns, command.token, None, result)
        except ValueError as error:
            done = CommandDone(at_ns, command.token, str(error), {})
        self.on_events([done, *events])

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def result_of(self, command: Command, events: list[Any]) -> dict[str, Any]:
        match command:
            case RegisterMemory(va=va, length=length, memory=memory):
                assert memory is not None
                number = self.number()
                self.regions[number] = (va, memory, number + 1000)
                return {"region_id": number, "r_key": number + 1000, "va": va, "length": length}
            case DeregisterMemory(region_id=number):
                if number not in self.regions:
                    raise ValueError("no such region")
                del self.regions[number]
                return {"region_id": number}
            case CreateQp():
                qpn = self.number()
                self.qps[qpn] = LoopbackQp(qpn)
                return {"qpn": qpn}
            case ConnectQp(qpn=qpn, peer_index=peer_index, peer_qpn=peer_qpn):
                if peer_index >= len(self.group):
                    raise ValueError(f"no NIC {peer_index}")
                qp = self.qps[qpn]
                qp.state, qp.peer_index, qp.peer_qpn = "rtr", peer_index, peer_qpn
                return {"qpn": qpn, "state": "rtr"}
            case ModifyQp(qpn=qpn, state=state):
                self.qps[qpn].state = state
                return {"qpn": qpn, "state": state}
            case DestroyQp(qpn=qpn):
                self.qps.pop(qpn)
                return {"qpn": qpn}
            case PostWrite():
                return self.write(command, events)
        raise ValueError("not a verbs command")

    def write(self, work: PostWrite, events: list[Any]) -> dict[str, Any]:
        qp = self.qps[work.qpn]
        if qp.state != "rts":
            raise ValueError(f"QP {qp.qpn} is in state {qp.state}, not rts")
        opcode = "write" if work.imm is None else "write_with_imm"
        if work.local_region not in self.regions:
            status = "local_access"
            events.append(QpChange(self.now_ns, qp.qpn, "rts", "error", status))
            events.append(Completion(self.now_ns, qp.qpn, work.wr_id, status, opcode, work.length, work.imm))
            return {"qpn": work.qpn, "wr_id": work.wr_id}
        va, memory, _ = self.regions[work.local_region]
        payload = bytes(memory[work.local_va - va : work.local_va - va + work.length])
        self.now_ns += work.length // BYTES_PER_NS
        if self.writes == self.corrupt_at:
            # The fourth byte: in a float32 a bit that no rounding hides.
            payload = payload[:3] + bytes([payload[3] ^ 1]) + payload[4:]
        self.writes += 1
        peer = self.group[qp.peer_index]
        status = peer.place(qp.peer_qpn, work, payload, self.now_ns)
        if status != "ok":
            events.append(QpChange(self.now_ns, qp.qpn, "rts", "error", status))
        events.append(
            Completion(self.now_ns, qp.qpn, work.wr_id, status, opcode, work.length, work.imm),
        )
        return {"qpn": work.qpn, "wr_id": work.wr_id}

    def place(self, qpn: int, work: PostWrite, payload: bytes, at_ns: int) -> str:
        for va, memory, r_key in self.regions.values():
            offset = work.remote_va - va
            if r_key == work.r_key and qpn in self.qps and 0 <= offset <= len(memory) - work.length:
                memory[offset : offset + work.length] = payload
                self.now_ns = max(self.now_ns, at_ns)
                if work.imm is not None:
                    msn = self.qps[qpn].sent
                    self.qps[qpn].sent += 1
                    self.on_events([Completion(self.now_ns, qpn, msn, "ok", "recv_with_imm", work.length, work.imm)])
                return "ok"
        return "remote_invalid_request"
