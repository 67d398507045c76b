"""A NIC that runs RC or UET in the middle of two transfers, and one of its two peers turns hostile: `rc`, `uet-core`.

As `fuzz.nic_core` for MRC: the bytes say which of that peer's frames are replaced, preceded or followed by damaged
copies, and which link control frames come in between. What must hold: nothing raises, what the NIC keeps stays bounded,
counts are conserved, the result does not depend on how time is cut, and the transfer with the other peer ends as if
nothing had happened; pauses may only make it later.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fuzz.pausing_switch import KINDS, spoilt_control
from fuzz.script import Script, damaged
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Node, Rank, Transmit
from mrcfabric.rng import Rng
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Setting, Topology
from mrcfabric.wire.layout import IPV6_SIZE
from mrcfabric.wire.link import ControlFrame
from nicd.compose import nic_config
from nicd.core.commands import Command, ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, Completion, QpChange
from nicd.core.nic import Nic
from nicd.core.process_size import reachable
from nicd.core.settings import NicConfig
from switchd.compose import switch_config
from switchd.core.build import build_switch

VICTIM, CULPRIT, INNOCENT = "h000", "h002", "h003"
QPN_OF = {(VICTIM, CULPRIT): 20, (CULPRIT, VICTIM): 21, (VICTIM, INNOCENT): 30, (INNOCENT, VICTIM): 31}
PIECE: Final = 900
PIECES: Final = 6
LENGTH: Final = PIECE * PIECES
SOURCE_VA, TARGET_VA = 0x1000, 0x10_0000
R_KEYS = {CULPRIT: 0x0C, VICTIM: 0x0A0A, INNOCENT: 0x0B0B0B0B}
_SMALL: Final[dict[str, Setting]] = {"transport": "uet", "uet_crc": "none", "mpr_units": 1, "uet_contexts_max": 8}
SPRAYED: Final[dict[str, dict[str, Setting]]] = {
    "uet": {**_SMALL, "uet_path": "reps"}, "uet-credits": {**_SMALL, "uet_cc": "both", "uet_mode": "rod"},
}  # fmt: skip
"""The settings of NICs that run UET, by kind of stage; the other kinds are the recoveries of RC."""
INJECTED_MAX: Final = 24
DEADLINE_NS: Final = 20_000_000
"""Each of the injected pauses may last as long as quanta can."""
AFTERMATH_NS: Final = 3_000_000
OBJECTS_MORE: Final = 600
_CUTS: Final = 12
_SOURCE: Final = slice(8, 24)


@cache
def _topology(kind: str) -> Topology:
    base = KINDS["lossless"]
    if kind in SPRAYED:
        return Topology.from_dict({**base.to_dict(), "nic": SPRAYED[kind], "switch": {"forwarding": "ecmp"}})
    more = {"rc_recovery": kind, "rc_psns_max": 64, "rc_window_bytes": 4_096}
    plain = {name: value for name, value in base.switch.items() if not name.startswith(("pfc_", "buffer"))}
    return Topology.from_dict({**base.to_dict(), "nic": {**base.nic, **more}, "switch": plain})


@cache
def _config(kind: str, name: str) -> NicConfig:
    return nic_config(_topology(kind), name)


@cache
def pattern(name: str, peer: str) -> bytes:
    """What one NIC writes to another."""
    seed = QPN_OF[name, peer]
    return bytes((value * 167 + seed * 59 + (value >> 8) * 31) & 0xFF for value in range(LENGTH))


def _commands(kind: str, name: str) -> list[tuple[int, Command]]:
    topology = _topology(kind)
    found: list[tuple[int, Command]] = []
    own = topology.nic_index(name)
    for end, peer in QPN_OF:
        if end != name:
            continue
        qpn, other = QPN_OF[name, peer], topology.nic_index(peer)
        source = memoryview(bytearray(pattern(name, peer)))
        psn = [(0xFFFFF0 + 5 * index) & 0xFFFFFF for index in (own, other)]
        found += [
            (1, RegisterMemory(0, SOURCE_VA, LENGTH, 2 * other + 10, 0xF000 + qpn, source)),
            (1, RegisterMemory(0, TARGET_VA, LENGTH, 2 * other + 11, R_KEYS[peer])),
            (2, CreateQp(0, qpn)),
            (3, ConnectQp(0, qpn, other, QPN_OF[peer, name], psn[0], psn[1])),
            (4, ModifyQp(0, qpn, "rts")),
        ]
        for number in range(PIECES):
            place = number * PIECE
            work = PostWrite(
                0, qpn, number, 2 * other + 10, SOURCE_VA + place, PIECE, TARGET_VA + place, R_KEYS[name],
                number if number % 2 else None,
            )  # fmt: skip
            found.append((100 + 400 * number + own, work))
    return sorted(found, key=lambda entry: entry[0])


class _Stage:
    """The fabric, its work, and a record of every event."""

    def __init__(self, kind: str, victim: Node) -> None:
        topology = _topology(kind)
        nodes: dict[str, Node] = {name: Nic(_config(kind, name)) for name in topology.nic_names()}
        nodes |= {name: build_switch(switch_config(topology, name)) for name in topology.switch_names()}
        nodes[VICTIM] = victim
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in topology.ports(name)}
        self.events: dict[str, list[Any]] = {name: [] for name in nodes}
        self.simulator = Simulator(
            nodes, links, window_ns=topology.link_delay_ns, on_events=lambda name, new: self.events[name].extend(new)
        )
        for name in (VICTIM, CULPRIT, INNOCENT):
            for at_ns, command in _commands(kind, name):
                self.simulator.command(name, at_ns, command)

    def ends(self, name: str, peer: str) -> list[Completion]:
        """Completions of the messages that one NIC posted towards another."""
        qpn = QPN_OF[name, peer]
        return [event for event in self.events[name]
                if isinstance(event, Completion) and event.qpn == qpn and event.opcode != RECV_WITH_IMM]  # fmt: skip

    def finish(self) -> bool:
        """Run until all work between the victim and the innocent is complete."""
        ways = ((VICTIM, INNOCENT), (INNOCENT, VICTIM))
        return self.simulator.run_until(
            lambda: all(len(self.ends(*way)) >= PIECES for way in ways), DEADLINE_NS, 20_000
        )


class _Attacked:
    """The NIC under attack, with a note of everything that went in and came out. A `mrcfabric.node.Node`."""

    def __init__(self, kind: str, mix: Callable[[Input], list[Input]]) -> None:
        self.nic = Nic(_config(kind, VICTIM))
        self.name = VICTIM
        self.frames: list[Input] = []
        self.transmits: list[Transmit] = []
        self._mix = mix

    @property
    def now_ns(self) -> int:
        return self.nic.now_ns

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        mixed: list[Input] = []
        for entry in map(Input._make, inputs):
            if entry.rank == Rank.FRAME:
                found = self._mix(_kept(entry))
                self.frames += found
                mixed += map(_fresh, found)
            else:
                mixed.append(entry)
        out = self.nic.advance(mixed, until)
        # The switch behind the port changes its packets in place.
        self.transmits += [(port, at_ns, bytes(packet)) for port, at_ns, packet in out]
        return out

    def next_timeout(self) -> int | None:
        return self.nic.next_timeout()

    def drain_events(self) -> list[Any]:
        return self.nic.drain_events()

    def counters(self) -> dict[str, Any]:
        return self.nic.counters()


def _kept(entry: Input) -> Input:
    return entry if isinstance(entry.body, ControlFrame) else entry._replace(body=bytes(entry.body))


def _fresh(entry: Input) -> Input:
    return entry if isinstance(entry.body, ControlFrame) else entry._replace(body=bytearray(entry.body))


class _Hostile:
    """What a script makes of the culprit's frames."""

    def __init__(self, script: Script, kinds: tuple[bytes, ...]) -> None:
        self._script = script
        self._kinds = kinds
        self._wait = script.number() % 16 if script.left else -1
        self._injected = 0

    def mix(self, genuine: Input) -> list[Input]:
        """A genuine frame with what the script puts in its place."""
        found = [genuine]
        if genuine.body[_SOURCE] == nic_address(2):
            self._wait -= 1
            while self._wait < 0 and self._script.left and self._injected < INJECTED_MAX:
                self._injected += 1
                self._inject(genuine, found)
        return found

    def _inject(self, genuine: Input, found: list[Input]) -> None:
        script = self._script
        head = script.number()
        self._wait = head >> 3 & 7
        if head >> 6 == 3:
            body: Any = spoilt_control(script)
        else:
            front = bytes(IPV6_SIZE)
            others = [front + one for one in self._kinds]
            base = front + (script.one_of(self._kinds) if head >> 6 == 2 else genuine.body)
            body = bytes(damaged(script, base, others, tuple(QPN_OF.values())))[IPV6_SIZE:]
            if body[_SOURCE] == nic_address(3):
                # The culprit can break its own QP with its own name, not another's.
                return
        bad = genuine._replace(body=body)
        place = head & 3
        if place == 0:
            found[:] = [bad]
        elif place == 1:
            found.insert(0, bad)
        else:
            found += [bad] * (place - 1)


@cache
def _kinds(kind: str) -> tuple[bytes, ...]:
    """One packet per opcode that reaches the victim from its culprit, undisturbed."""
    found: dict[int, bytes] = {}

    def hear(entry: Input) -> list[Input]:
        if not isinstance(entry.body, ControlFrame) and entry.body[_SOURCE] == nic_address(2):
            found.setdefault(entry.body[48], entry.body)
        return [entry]

    stage = _Stage(kind, _Attacked(kind, hear))
    assert stage.finish(), "the undisturbed stage plays to its end"
    return tuple(found[opcode] for opcode in sorted(found))


@cache
def _objects_undisturbed(kind: str) -> int:
    attacked = _Attacked(kind, lambda entry: [entry])
    assert _Stage(kind, attacked).finish()
    return reachable(attacked.nic, "nicd.core").objects


def attack(data: bytes) -> None:
    """One run with go-back-N. Raises when a property does not hold."""
    _attack("go_back_n", data)


def attack_selective(data: bytes) -> None:
    """The same with selective recovery."""
    _attack("selective", data)


def attack_uet(data: bytes) -> None:
    """The same with UET, whose packets have no sum here, so that damage is not noticed."""
    _attack("uet", data)


def attack_uet_credits(data: bytes) -> None:
    """The same with credits and ordered delivery."""
    _attack("uet-credits", data)


def seeds() -> list[bytes]:
    """Runs without damage, with one of every kind of edit, and with a lot of everything."""
    rng = Rng("rc seeds")
    single = [bytes([rng.below(16), place | 8 * kind, 2 + sealed, kind, *(rng.below(256) for _ in range(12))])
              for kind in range(9) for place in range(4) for sealed in (0, 1)]  # fmt: skip
    control = [bytes([wait, 192 | wait & 3, choice, 255, 7]) for wait in (0, 5, 10) for choice in (0, 2, 3, 128)]
    long = [bytes(rng.below(256) for _ in range(size)) for size in (20, 60, 120, 240)]
    return [b"", *single, *control, *long]


def _attack(kind: str, data: bytes) -> None:
    hostile = _Hostile(Script(data), _kinds(kind))
    attacked = _Attacked(kind, hostile.mix)
    stage = _Stage(kind, attacked)
    assert stage.finish(), "the innocent's work is done in time"
    stage.simulator.run(stage.simulator.now_ns + AFTERMATH_NS)
    _check_innocent(stage, attacked)
    _check_counts(stage, attacked, kind)
    assert attacked.nic.overfull() == [], "no table ever held more than its bound"
    kept = reachable(attacked.nic, "nicd.core").objects
    assert kept <= _objects_undisturbed(kind) + OBJECTS_MORE, f"what is kept is bounded, and not {kept} objects"
    _check_cuts(stage, attacked, kind, Rng("cuts", len(data), *data[:64]))


def _check_innocent(stage: _Stage, attacked: _Attacked) -> None:
    for name, peer in ((VICTIM, INNOCENT), (INNOCENT, VICTIM)):
        qpn = QPN_OF[name, peer]
        failed = [event for event in stage.events[name]
                  if isinstance(event, QpChange) and event.qpn == qpn and event.target == "error"]  # fmt: skip
        assert not failed, "the innocent's QP does not fail"
        ends = stage.ends(name, peer)
        assert [(end.wr_id, end.status) for end in ends] == [(number, "ok") for number in range(PIECES)], "each once"
    innocent = stage.simulator.node(INNOCENT)
    assert isinstance(innocent, Nic)
    assert innocent.region_bytes(11) == pattern(VICTIM, INNOCENT), "its bytes are whole"
    # Who names the key of a region may write to it.
    key = R_KEYS[INNOCENT].to_bytes(4, "big")
    if not any(bytes(entry.body[_SOURCE]) == nic_address(2) and key in entry.body for entry in attacked.frames):
        assert attacked.nic.region_bytes(17) == pattern(INNOCENT, VICTIM), "nobody else wrote there"


def _check_counts(stage: _Stage, attacked: _Attacked, kind: str) -> None:
    counters = attacked.counters()
    received = sum(counters[name] for name in ("data_received", "acks_received", "nacks_received"))
    assert received <= len(attacked.frames), "no frame is counted twice"
    for port, figures in counters["ports"].items():
        sent = sum(one[0] == int(port) for one in attacked.transmits)
        lost = sum(figures["drops"][reason] for reason in LOSS_REASONS)
        assert figures["packets"] + figures.get("control_frames", 0) == sent + lost, "what left is sent or lost"
    mine = [end.wr_id for end in stage.ends(VICTIM, CULPRIT)]
    assert sorted(mine) == sorted(set(mine)), "messages end once"
    assert kind in SPRAYED or mine == sorted(mine), "and in order"
    assert counters["bytes_placed"] <= sum(len(entry.body) for entry in attacked.frames)


def _check_cuts(stage: _Stage, attacked: _Attacked, kind: str, rng: Rng) -> None:
    """The same inputs, cut elsewhere, give the same outputs."""
    end = stage.simulator.now_ns
    commands = [Input(at_ns, Rank.COMMAND, 0, number, command)
                for number, (at_ns, command) in enumerate(_commands(kind, VICTIM))]  # fmt: skip
    inputs = sorted([*commands, *map(_fresh, attacked.frames)], key=lambda entry: (entry.at_ns, entry.rank))
    other = Nic(_config(kind, VICTIM))
    transmits: list[Transmit] = []
    events: list[Any] = []
    start = 0
    for until in (*sorted(rng.below(end) for _ in range(_CUTS)), end):
        stop = start
        while stop < len(inputs) and inputs[stop].at_ns <= until:
            stop += 1
        if until > other.now_ns:
            transmits += other.advance(inputs[start:stop], until)
            events += other.drain_events()
            start = stop
    assert [event.record() for event in events] == [event.record() for event in stage.events[VICTIM]], "same events"
    one, two = ([(at[1], at[0], bytes(at[2])) for at in found] for found in (attacked.transmits, transmits))
    assert sorted(one) == sorted(two), "same packets"
