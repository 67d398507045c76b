"""One daemon: a core under the runner, its control channel, and the ops that every daemon has.

Owns the path between control requests and the core: commands with their tokens and answers, the ring of events, the
counters. nicd and switchd subclass `Daemon` to add their own parts; `mrcfabric.daemon_process` has processes, signals
and the clock. The ops, with their args:

    status {}                    the node's identity, and how far it has come
    counters {parts}             all counters, or only these parts: core, fidelity, control, process, ...
    glance {}                    a few of these, for frequent requests (`mrcfabric.glance`)
    together {op, args, nodes}   what these daemons of the process answer to one of these (`mrcfabric.together`)
    command {op, args, at_ns}    a command of the core, at a fabric time or as soon as possible; answers when done
    commands {}                  names of the core's commands
    events {since, limit}        events after number `since`
    trace {}                     digests of all that the node did (when the configuration asks for them)
    script {commands}            many commands of the core, each [at_ns, op, args]; answers when it has taken them.
                                 Fabric time may stop before them: the sender must see to it that time gets there
    crash {at_ns, never}         advance to that instant (by default as soon as possible), then die as by SIGKILL; with
                                 `never` cancel that
    tap, tapped, untap {...}     copies of the packets that it sends (`mrcfabric.taps`)
    witness, witnessed, dismiss  what happens here to packets that are followed (`mrcfabric.witness_stand`)
    cut_control {windows}        drop requests and answers in these windows of fabric time (`mrcfabric.control_cut`)
    slow {windows}               use only a share of wall time in these windows of fabric time (`mrcfabric.brake`)
    stop {}                      end the process in good order
"""

import asyncio
import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TextIO

from mrcfabric.command_table import CommandTable
from mrcfabric.control import ControlServer, Op
from mrcfabric.control_cut import ControlCuts
from mrcfabric.daemon_config import DaemonConfig
from mrcfabric.drive import Drive
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.event_ring import EventRing
from mrcfabric.glance import Glance, Head
from mrcfabric.link_port import LinkEnd
from mrcfabric.metrics import Family, text
from mrcfabric.metrics_server import serve_metrics
from mrcfabric.node import Node
from mrcfabric.runner import Runner
from mrcfabric.sim.trace import Trace
from mrcfabric.taps import Taps
from mrcfabric.together import OP, Together
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.link import link_tag
from mrcfabric.wire_settings import code_points, wire_options
from mrcfabric.witness import Witness
from mrcfabric.witness_stand import WitnessStand

EVENTS_KEPT = 16_384
EVENTS_PER_ANSWER_MAX = 4096
EVENTS_PER_ANSWER = 1024
SCRIPT_COMMANDS_MAX = 1024
OPS_OF_THE_EMULATION = ("script", "cut_control", "slow", "crash", "stop")
"""Ops that inject and heal faults. A cut of the control channel lets them pass: they are no emulated traffic."""
TOKEN_MAX = (1 << 32) - 1
"""Tokens of the daemon's own commands stay below this; those of a NIC's applications begin above."""


class Daemon:
    """One node of a fabric in this process. `open`, then `attach`, then `serve` as a task; `close` at the end."""

    kind = "node"
    """`nic` or `switch`."""
    commands: CommandTable

    def __init__(self, config: DaemonConfig, core: Node, stop: asyncio.Event) -> None:
        self.config = config
        self.core = core
        self.drive: Drive
        self._stop = stop
        self.closed = False
        self.alone = True
        """False when its crash would end other daemons too."""
        self.log_to: TextIO = sys.stderr
        self._tokens = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._ring = EventRing(EVENTS_KEPT)
        ops: dict[str, Op] = {
            "status": self._status,
            "counters": self._counters,
            "glance": self._glance,
            "command": self._command,
            "script": self._script,
            "commands": self._commands,
            "events": self._events,
            "trace": self._trace,
            "cut_control": self._cut_control,
            "slow": self._slow,
            "crash": self._crash,
            "stop": self._stop_op,
        }
        self.together = Together(self)
        wire = code_points(config.topology), wire_options(config.topology)
        self._taps = Taps(*wire, lambda taps: setattr(self.drive, "taps", taps), lambda: self.drive.now_ns)
        self._stand = WitnessStand(*wire, self.set_witness, lambda: self.drive.now_ns)
        self._cuts = ControlCuts()
        self._control = ControlServer(
            config.control,
            config.realm.of(config.node),
            {**ops, **self._taps.ops, **self._stand.ops, OP: self.together.answer, **self.own_ops()},
            incarnation=config.incarnation,
            cut_off=lambda: not self.hears(),
            uncut=(*OPS_OF_THE_EMULATION, OP),
        )  # fmt: skip

    # Filled in by nicd and switchd.

    def own_ops(self) -> Mapping[str, Op]:
        """Ops beside those of every daemon."""
        return {}

    def own_counters(self) -> dict[str, Callable[[], Any]]:
        """Further parts of the counters, by name, beside those of every daemon."""
        return {}

    def own_glance(self) -> tuple[list[Any], Sequence[Any]]:
        """The ports and the rest of a glance (`mrcfabric.glance`)."""
        raise NotImplementedError

    def own_totals(self) -> Sequence[int]:
        """The counts of the core, as `mrcfabric.tally.TOTALS`."""
        raise NotImplementedError

    @staticmethod
    def noteworthy(event: Any) -> bool:
        """Whether the ring keeps an event; it keeps all but answers to commands."""
        return not hasattr(event, "token")

    def deliver(self, events: list[Any]) -> None:
        """Take events of the core. The daemon has already taken the answers to its own commands."""

    def families(self, counters: dict[str, Any]) -> list[Family]:
        """The counters as Prometheus metrics."""
        raise NotImplementedError

    def set_witness(self, witness: Witness | None) -> None:
        """Put this witness into the core, or remove it."""
        raise NotImplementedError

    # Lifecycle.

    async def open(self) -> None:
        """Bind the control socket. Raises ConfigError."""
        await self._control.open()

    def attach(self, runner: Runner, links: list[LinkEnd], slot: int, *, alone: bool = True) -> None:
        """Bind the data sockets and take the node's place in the clock page. Raises ConfigError.

        `alone`: its crash ends no other daemon.
        """
        config = self.config
        scripted = []
        for number, entry in enumerate(config.commands):
            try:
                scripted.append((self.commands.build(entry.op, entry.args, 0), entry.at_ns))
            except (RefusedError, ConfigError) as error:
                raise ConfigError(f"{config.node}: commands[{number}]", str(error)) from None
        self.alone = alone
        self.drive = runner.add(
            self.core,
            slot,
            links,
            incarnation=config.incarnation,
            trace=Trace() if config.trace else None,
            offload=config.offload,
        )
        self.drive.on_events, self.drive.totals = self._on_events, self.own_totals
        self.drive.on_late = lambda one, late_ns: self.log("late command", op=type(one).__name__, late_ns=late_ns)
        if config.crash_ns < NEVER:
            self.drive.crash_at(config.crash_ns)
        for command, at_ns in scripted:
            if at_ns > config.start_ns:  # an earlier incarnation carried out the commands before the start
                command.token = next(self._tokens)
                self.drive.script(command, at_ns)

    async def serve(self) -> None:
        """Answer the control channel, and Prometheus where asked to, until cancelled."""
        self.log("ready", control=self._control.address[1], incarnation=self.config.incarnation)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._control.serve())
            if self.config.metrics_listen is not None:
                group.create_task(serve_metrics(self.config.metrics_listen, self._render))

    def close(self) -> None:
        """Close the taps, the witness and the control socket."""
        self.closed = True
        self._taps.close()
        self._stand.close()
        self._control.close()

    def drop(self) -> None:
        """The same as if the process had been killed: nobody is told anything."""
        Daemon.close(self)

    def log(self, what: str, **fields: Any) -> None:
        """Write one line to the log: node first, then key=value."""
        text = " ".join(f"{key}={value}" for key, value in fields.items())
        # If the disk is full the line is lost, and the daemon runs on.
        with contextlib.suppress(OSError, ValueError):  # ValueError: its log is closed, it has been dropped
            print(f"{self.config.node} {what} {text}".rstrip(), file=self.log_to, flush=True)

    # Control requests and the core.

    def submit(self, op: str, args: Mapping[str, Any], at_ns: Instant | None) -> "asyncio.Future[Any]":
        """Hand a command to the core; the future resolves to its CommandDone. Raises RefusedError."""
        token = next(self._tokens)
        assert token <= TOKEN_MAX
        command = self.commands.build(op, args, token)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        self.drive.command(command, at_ns)
        return future

    def _on_events(self, events: list[Any]) -> None:
        notes = []
        for event in events:
            token = getattr(event, "token", None)
            if token is None or token > TOKEN_MAX:
                if self.noteworthy(event):
                    notes.append(event)
                continue
            future = self._waiting.pop(token, None)
            if future is not None and not future.done():
                future.set_result(event)
            elif future is None and event.error is not None:
                self.log("scripted command refused", at_ns=event.at_ns, error=event.error)
        self._ring.add(notes)
        self.deliver(events)

    def counters(self, parts: Collection[str] | None = None) -> dict[str, Any]:
        """What the daemon counts: `core`, `fidelity`, `control`, `process`, and its own; or only these parts."""
        self.drive.tell()  # if the process dies now, the page still has every count that it has told anybody
        tables: dict[str, Callable[[], Any]] = {
            "core": self.core.counters,
            "fidelity": self.drive.fidelity_record,
            "control": self._control.counters,
            "process": self._process,
            **self.own_counters(),
        }
        return {name: table() for name, table in tables.items() if parts is None or name in parts}

    def _process(self) -> dict[str, int]:
        return {
            "now_ns": self.drive.now_ns,
            "cpu_ns": time.process_time_ns(),
            "incarnation": self.config.incarnation,
        }

    def _render(self) -> bytes:
        return text(self.families(self.counters()))

    # Ops.

    async def _status(self, _args: dict[str, Any]) -> dict[str, Any]:
        config = self.config
        return {
            "node": config.node,
            "kind": self.kind,
            "fabric": config.realm.fabric,
            "epoch": config.realm.epoch,
            "incarnation": config.incarnation,
            "pid": os.getpid(),
            "alone": self.alone,
            "now_ns": self.drive.now_ns,
            "commands_taken": self.drive.commands_taken,
            "next_timeout_ns": self.core.next_timeout(),
            "last_event": self._ring.last,
            "cpu_ns": time.process_time_ns(),
        }

    async def _counters(self, args: dict[str, Any]) -> dict[str, Any]:
        parts = args.get("parts")
        if parts is not None and not (isinstance(parts, list | tuple) and all(isinstance(one, str) for one in parts)):
            raise RefusedError("parts: wanted a list of names")
        return self.counters(parts)

    def hears(self) -> bool:
        """Whether no fault cuts it off from its control channel now."""
        return not self._cuts.cuts or not self._cuts.cut_off(self.drive.now_ns)

    async def _glance(self, _args: dict[str, Any]) -> Glance:
        return self.glance()

    def glance(self) -> Glance:
        """What it shows at a look (`mrcfabric.glance`)."""
        count = self.drive.fidelity
        head = Head(
            self.drive.now_ns, self.config.incarnation, self._ring.last, count.frames_in, count.late_frames,
            count.host_drops,
        )  # fmt: skip
        return [head, *self.own_glance()]

    async def _command(self, args: dict[str, Any]) -> dict[str, Any]:
        op, body = args.get("op"), args.get("args", {})
        if not isinstance(op, str) or not isinstance(body, dict):
            raise RefusedError("command needs op (a name) and args (a table)")
        done = await self.submit(op, body, instant_of(args, "at_ns"))
        if done.error is not None:
            raise RefusedError(done.error)
        return {"at_ns": done.at_ns, "result": done.result}

    async def _script(self, args: dict[str, Any]) -> int:
        """Takes all commands or none. If the core refuses one at its instant, the daemon logs it."""
        entries = args.get("commands")
        if not isinstance(entries, list | tuple) or len(entries) > SCRIPT_COMMANDS_MAX:
            raise RefusedError(f"commands: wanted a list of at most {SCRIPT_COMMANDS_MAX}")
        built = []
        for entry in entries:
            if not isinstance(entry, list | tuple) or len(entry) != 3 or not isinstance(entry[2], dict):
                raise RefusedError("commands: wanted [at_ns, op, args] of each")
            at_ns = instant_of({"at_ns": entry[0]}, "at_ns")
            if at_ns is None or not isinstance(entry[1], str):
                raise RefusedError("commands: wanted an instant and a name of each")
            built.append((self.commands.build(entry[1], entry[2], next(self._tokens)), at_ns))
        for command, at_ns in built:
            self.drive.script(command, at_ns)
        return len(built)

    async def _commands(self, _args: dict[str, Any]) -> list[str]:
        return self.commands.names

    async def _events(self, args: dict[str, Any]) -> dict[str, Any]:
        since = instant_of(args, "since") or 0
        limit = instant_of(args, "limit") or EVENTS_PER_ANSWER
        return self._ring.after(since, min(limit, EVENTS_PER_ANSWER_MAX))

    async def _trace(self, _args: dict[str, Any]) -> dict[str, Any]:
        if self.drive.trace is None:
            raise RefusedError("no trace is kept; set trace: true in the configuration")
        return self.drive.trace.summary()

    async def _crash(self, args: dict[str, Any]) -> dict[str, Any]:
        if not self.alone:
            raise RefusedError("this process carries other nodes too; crash one in a process of its own")
        at_ns = instant_of(args, "at_ns")
        at_ns = NEVER if args.get("never") is True else max(at_ns or 0, self.drive.now_ns)
        self.drive.crash_at(at_ns)
        return {"at_ns": at_ns}

    async def _cut_control(self, args: dict[str, Any]) -> dict[str, Any]:
        self._cuts.tell(args.get("windows"), self.drive.now_ns)
        self._stay_awake()
        return {"windows": [list(cut) for cut in self._cuts.cuts]}

    async def _slow(self, args: dict[str, Any]) -> dict[str, Any]:
        self.drive.brake.tell(args.get("windows"))
        self._stay_awake()
        return {"windows": [list(spell) for spell in self.drive.brake.spells]}

    def _stay_awake(self) -> None:
        """Keep fabric time running until the last cut and the last slow window are over."""
        self.drive.stay_awake(max(self._cuts.end_ns, self.drive.brake.end_ns))

    async def _stop_op(self, _args: dict[str, Any]) -> None:
        self._stop.set()


def instant_of(args: Mapping[str, Any], name: str) -> int | None:
    """A whole number out of untrusted args; None when absent. Raises RefusedError."""
    value = args.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < NEVER):
        raise RefusedError(f"{name}: {value!r} will not do (wanted: a whole number from 0)")
    return value


def link_ends(config: DaemonConfig, own_doorbell: int, first_peer_slot: int | None) -> list[LinkEnd]:
    """The links as the runner wants them. `first_peer_slot`: of the private slots for the peers, one per port."""
    ends = []
    realm, far_ends = config.realm, {end.port: end for end in config.topology.ports(config.node)}
    tag = partial(link_tag, realm.secret, realm.fabric, realm.epoch)
    for index, link in enumerate(config.links):
        far = far_ends[link.port]
        private = first_peer_slot is not None
        doorbell = link.peer_doorbell if link.peer_doorbell != own_doorbell else None
        ends.append(
            LinkEnd(
                port=link.port,
                local=link.local,
                peer=link.peer,
                peer_node=link.peer_slot if first_peer_slot is None else first_peer_slot + index,
                peer_port=0 if private else link.peer_port,
                delay_ns=link.delay_ns,
                peer_doorbell=None if private else doorbell,
                path_mtu=link.path_mtu,
                tag=tag(config.node, link.port),
                peer_tag=tag(far.peer, far.peer_port),
                peer_waits_for=None if private else config.waits_of(far.peer),
            )
        )
    return ends
