"""The host of one NIC: the ranks of programs that run there, their QPs and memory, and when they resume.

Owns the way from a program's record to connected QPs, and from completions to ranks. The core reports a completion at
its instant. The host resumes ranks by a timer of the NIC at the same instant, after everything else that arrives then.
So a rank's behaviour depends on fabric time alone. The module of its kind says what a rank does.
"""

from functools import partial
from itertools import product
from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import nic_name
from mrcfabric.units import NEVER, Instant
from nicd.core.board import Board
from nicd.core.commands import ConnectQp, CreateQp, DeregisterMemory, DestroyQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, STATUS_OK, Completion, RankChange, Result
from nicd.core.execute import Executor
from nicd.core.memory import Region
from nicd.core.timers import Timer
from nicd.programs.catalogue import part_of
from nicd.programs.commands import RunProgram, StopProgram
from nicd.programs.kind import Part, Run
from nicd.programs.program import PROGRAMS_MAX, UNKNOWN, Program
from nicd.programs.rank import Rank
from nicd.programs.record import RankRecord

_NO_TOKEN: Final = 0
"""The host gets the results of its commands at once, not by an event."""


class Guest:
    """One rank at this host, with its memory and QPs at the NIC."""

    __slots__ = ("begun", "program", "qps", "rank", "region", "run")

    def __init__(self, program: Program, run: Run, rank: Rank, region: Region, qps: dict[int, tuple[int, int]]) -> None:
        self.program = program
        self.run = run
        self.rank = rank
        self.region: Region | None = region
        self.qps = qps
        """QPN -> rank of the peer, and the QP's turn among those to that peer."""
        self.begun = False

    def is_running(self) -> bool:
        """Whether it is neither done nor failed."""
        return self.rank.record.state == "running"

    @property
    def next_ns(self) -> Instant:
        """The next instant at which it wants to run."""
        if not self.is_running():
            return NEVER
        return self.rank.strands.next_ns if self.begun else self.program.begin_ns


class Host:
    """Runs programs beside the core of a NIC."""

    def __init__(self, board: Board, executor: Executor) -> None:
        self._board = board
        self._executor = executor
        self._guests: dict[str, Guest] = {}
        self._by_qpn: dict[int, Guest] = {}
        self._timer = Timer(board.timers, self._go_on)
        board.host = self
        executor.teach(RunProgram, self.run_program)
        executor.teach(StopProgram, self.stop_program)

    # Called by the core.

    def completed(self, completion: Completion) -> None:
        """Take a completion of any QP of the NIC."""
        guest = self._by_qpn.get(completion.qpn)
        if guest is None or not guest.is_running():
            return
        now = completion.at_ns
        peer, turn = guest.qps[completion.qpn]
        rank = guest.rank
        rank.strands.now = now
        if completion.status != STATUS_OK:
            self._fail(now, guest, completion.qpn, completion.status)
        elif completion.opcode == RECV_WITH_IMM:
            rank.on_received(peer, completion.byte_len, completion.imm or 0, turn)
        else:
            rank.on_sent(completion.wr_id)
        self._timer.set_by(now)

    def qp_failed(self, now: Instant, qpn: int, reason: str) -> None:
        """Take the news that a QP of the NIC went to ERROR."""
        guest = self._by_qpn.get(qpn)
        if guest is not None:
            self._fail(now, guest, qpn, reason)

    def _fail(self, now: Instant, guest: Guest, qpn: int, reason: str) -> None:
        peer = nic_name(guest.program.ranks[guest.qps[qpn][0]])
        self._end(now, guest, "failed", f"QP to {peer}: {reason}")

    def _end(self, now: Instant, guest: Guest, state: str, reason: str) -> None:
        """End a rank as failed; `state` says whether it did, or was stopped."""
        if guest.is_running():
            self._tell(now, guest, state, reason)
            guest.rank.end(now, "failed", reason)

    def _tell(self, now: Instant, guest: Guest, state: str, reason: str) -> None:
        """Tell of a rank whose job can be restarted."""
        program = guest.program
        if program.attempt or program.figures.get("restarts"):
            step = guest.rank.record.steps_done
            self._board.tell(RankChange(now, program.name, guest.rank.number, program.attempt, state, step, reason))

    # Queries.

    def records(self) -> list[dict[str, Any]]:
        """Every rank that is not forgotten: `name`, `kind`, `rank`, and the contents of `RankRecord.record`."""
        return [
            {"name": name, "kind": guest.program.kind, "rank": guest.rank.number, **self._told(guest).record()}
            for name, guest in self._guests.items()
        ]

    def progress(self) -> dict[str, dict[str, Any]]:
        """Program -> its number, and how far its rank here has come; see `RankRecord.progress`."""
        return {
            name: {"number": guest.program.number, **self._told(guest).progress()}
            for name, guest in self._guests.items()
        }

    def _told(self, guest: Guest) -> RankRecord:
        """The record of a rank, updated with the bytes that its QPs have placed by now."""
        placed: dict[str, int] = {}
        for qpn, (peer, _) in guest.qps.items():
            if count := self._executor.transport.bytes_placed(qpn):
                name = nic_name(guest.program.ranks[peer])
                placed[name] = placed.get(name, 0) + count
        guest.rank.record.placed = placed
        return guest.rank.record

    def glance(self) -> list[tuple[str, str, int, str, int, int]]:
        """A `mrcfabric.glance.ProgramGlance` of every rank that is not forgotten, as plain tuples."""
        found = []
        for name, guest in self._guests.items():
            program, record = guest.program, guest.rank.record
            found.append((name, program.kind, len(program.ranks), record.state, record.steps_done, record.attempt))
        return found

    def counters(self) -> list[dict[str, Any]]:
        """The figures of every rank that is not forgotten: `name`, `kind`, and those of `RankRecord.counters`."""
        return [
            {"name": name, "kind": guest.program.kind, **guest.rank.record.counters()}
            for name, guest in self._guests.items()
        ]

    # Starting.

    def run_program(self, now: Instant, command: RunProgram) -> Result:
        """Take part in a program. RefusedError gives the reason, and then everything is undone."""
        try:
            program = Program.of(command.program)
            number = self._place_of(now, program)
            part = part_of(program, number)
        except ConfigError as mistake:
            raise RefusedError(str(mistake)) from None
        done: list[Any] = []
        try:
            guest = self._prepare(now, program, number, part, done)
        except RefusedError:
            for undo in reversed(done):
                self._executor.carry_out(now, undo)
            raise
        self._guests[program.name] = guest
        self._by_qpn.update(dict.fromkeys(guest.qps, guest))
        self._timer.set_by(program.begin_ns)
        return {"name": program.name, "rank": number, "qps": len(guest.qps)}

    def _place_of(self, now: Instant, program: Program) -> int:
        """The rank of this NIC. RefusedError when it has none, or when the program cannot run."""
        index = self._board.config.index
        if index not in program.ranks:
            raise RefusedError(f"program {program.name} has no rank at {self._board.config.name}")
        if max(program.ranks) >= self._board.config.paths.nics:
            raise RefusedError(f"program {program.name} has a rank at {nic_name(max(program.ranks))}, which is no NIC")
        if program.begin_ns <= now:
            raise RefusedError(f"program {program.name} begins at {program.begin_ns}, and it is {now} already")
        for other in self._guests.values():
            if program.name == other.program.name or program.number == other.program.number:
                raise RefusedError(f"program {other.program.name} has this name or number already")
        assert len(self._guests) < PROGRAMS_MAX, "numbers differ and are below the bound"
        return program.ranks.index(index)

    def _prepare(self, now: Instant, program: Program, number: int, part: Part, done: list[Any]) -> Guest:
        """Make the memory and QPs of a rank; appends to `done` the commands that undo each step."""
        ask = partial(self._executor.carry_out, now)
        size = max(1, part.inbound_bytes + len(part.noise))
        register = RegisterMemory(_NO_TOKEN, program.va(number), size, r_key=program.r_key(number))
        region_id = int(ask(register)["region_id"] or 0)
        done.append(DeregisterMemory(_NO_TOKEN, region_id))
        region = self._board.memory.find(region_id)
        region.view[part.inbound_bytes : part.inbound_bytes + len(part.noise)] = part.noise
        qps = {}
        for peer, turn in product(part.peers, range(program.qps)):
            qpn = program.qpn(peer, turn)
            ask(CreateQp(_NO_TOKEN, qpn, program.profile))
            done.append(DestroyQp(_NO_TOKEN, qpn))
            psns = program.psn(number, peer, turn), program.psn(peer, number, turn)
            ask(ConnectQp(_NO_TOKEN, qpn, program.ranks[peer], program.qpn(number, turn), *psns))
            qps[qpn] = peer, turn
        names = tuple(nic_name(index) for index in program.ranks)
        rank = Rank(program, number, names, region.view, partial(self._send, program, region))
        return Guest(program, part.run, rank, region, qps)

    def _begin(self, now: Instant, guest: Guest) -> None:
        """Let a rank send: by now all ranks are connected."""
        guest.begun = True
        guest.rank.strands.now = now
        if guest.program.attempt:
            self._tell(now, guest, "running", f"restart {guest.program.attempt} from a checkpoint")
        for qpn in guest.qps:
            self._executor.carry_out(now, ModifyQp(_NO_TOKEN, qpn, "rts"))
        guest.rank.begin(self._whole(guest))

    async def _whole(self, guest: Guest) -> None:
        """Run a rank to its end: after the last acknowledgement its memory is free."""
        await guest.run(guest.rank)
        await guest.rank.all_sent()
        guest.rank.record.state = "done"
        guest.rank.record.end_ns = guest.rank.now

    # Stopping.

    def stop_program(self, now: Instant, command: StopProgram) -> Result:
        """Remove everything of a program here; peers may still send to it. RefusedError for an unknown program."""
        guest = self._guests.get(command.name)
        if guest is None:
            raise RefusedError(f"{UNKNOWN} {command.name}")
        # The rank ends first: it must not see completions of its destroyed QPs.
        self._end(now, guest, "stopped", "stopped")
        for qpn in guest.qps:
            del self._by_qpn[qpn]
            if qpn in self._executor.transport.qps:
                self._executor.carry_out(now, DestroyQp(_NO_TOKEN, qpn))
        # The memory goes last: QPs may send from it until they are destroyed.
        self._free(now, guest)
        del self._guests[command.name]
        return {"name": command.name}

    # Running.

    def _go_on(self, now: Instant) -> None:
        """Run every rank whose instant has come."""
        soonest = NEVER
        for guest in self._guests.values():
            if guest.next_ns <= now:
                try:
                    if not guest.begun:
                        self._begin(now, guest)
                    guest.rank.strands.run(now, guest.is_running)
                except RefusedError as refusal:
                    self._end(now, guest, "failed", str(refusal))
                self._release(now, guest)
            soonest = min(soonest, guest.next_ns)
        if soonest < NEVER:
            self._timer.set_by(soonest)

    def _release(self, now: Instant, guest: Guest) -> None:
        """Free the memory of a rank that is done. Its QPs stay, so that they still acknowledge to peers."""
        if guest.rank.record.state == "done":
            self._free(now, guest)

    def _free(self, now: Instant, guest: Guest) -> None:
        if guest.region is not None:
            self._executor.carry_out(now, DeregisterMemory(_NO_TOKEN, guest.region.region_id))
            guest.region = None
            guest.rank.memory = memoryview(b"")

    def _send(
        self, program: Program, region: Region, now: Instant, peer: int, turn: int, work: int, offset: int, size: int,
        to: int, imm: int,
    ) -> None:  # fmt: skip
        qpn = program.qpn(peer, turn)
        post = PostWrite(
            _NO_TOKEN, qpn, work, region.region_id, region.va + offset, size, program.va(peer) + to,
            program.r_key(peer), imm,
        )  # fmt: skip
        self._executor.carry_out(now, post)
