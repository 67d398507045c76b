"""A NIC in the middle of two transfers, and one of its two peers turns hostile: `nic`, `nic-spilling`.

The bytes say which of that peer's frames are replaced, preceded or followed by damaged copies. What must hold: nothing
raises, what the NIC keeps stays bounded, counts are conserved, the result does not depend on how time is cut, and the
transfer with the other peer ends as if nothing had happened.
"""

from functools import cache
from typing import Any

from fuzz.script import Script, damaged
from fuzz.stage import (
    CULPRIT,
    INNOCENT,
    PIECES,
    QPN_OF,
    R_KEYS,
    VICTIM,
    Stage,
    commands_of,
    config_of_nic,
    packets_of_each_kind,
    pattern,
    region_of,
)
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.rng import Rng
from mrcfabric.wire.layout import INNER_SOURCE
from nicd.core.nic import Nic
from nicd.core.process_size import reachable

INJECTED_MAX = 24
"""Damaged frames of one run."""
DEADLINE_NS = 3_000_000
AFTERMATH_NS = 300_000
"""How long the fabric goes on when the innocent's work is done: timers and retries of the others have their turn."""
OBJECTS_MORE = 600
"""What a NIC may keep beyond what it keeps in an undisturbed run: tables of the attacked QP, all of them bounded."""
_CUTS = 12
_INSTEAD, _BEFORE, _AFTER, _AGAIN = range(4)


class Attacked:
    """The NIC under attack, with a note of everything that went in and came out. A `mrcfabric.node.Node`."""

    def __init__(self, script: Script, spilling: bool = False) -> None:
        self.spilling = spilling
        self.nic = Nic(config_of_nic(VICTIM, spilling))
        self.name = VICTIM
        self.frames: list[Input] = []
        """Everything that reached it, in order; copies."""
        self.transmits: list[Transmit] = []
        self._script = script
        self._wait = script.number() % 32 if script.left else -1
        self._injected = 0

    @property
    def now_ns(self) -> int:
        return self.nic.now_ns

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        """As the NIC's, with the damage done first."""
        mixed: list[Input] = []
        for entry in map(Input._make, inputs):
            if entry.rank == Rank.FRAME:
                mixed += self._mixed(entry)
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

    def region_bytes(self, region_id: int) -> bytes:
        """As the NIC's."""
        return self.nic.region_bytes(region_id)

    def _mixed(self, entry: Input) -> list[Input]:
        """A genuine frame with what the script puts in its place."""
        genuine = entry._replace(body=bytes(entry.body))
        found = [genuine]
        if genuine.body[INNER_SOURCE] == config_of_nic(CULPRIT).address:
            self._wait -= 1
            while self._wait < 0 and self._script.left and self._injected < INJECTED_MAX:
                self._injected += 1
                self._inject(genuine, found)
        self.frames += found
        return [one._replace(body=bytearray(one.body)) for one in found]

    def _inject(self, genuine: Input, found: list[Input]) -> None:
        script = self._script
        head = script.number()
        body = bytes(damaged(script, genuine.body, packets_of_each_kind(), tuple(QPN_OF.values())))
        self._wait = head >> 2 & 15
        if body[INNER_SOURCE] == config_of_nic(INNOCENT).address:
            # The culprit can break its own QP with its own name, not another's.
            return
        bad = genuine._replace(body=body, port=genuine.port if head & 64 else genuine.port ^ 1 & head >> 7)
        place = head & 3
        if place == _INSTEAD:
            found[:] = [bad]
        elif place == _BEFORE:
            found.insert(0, bad)
        else:
            found += [bad] * (2 if place == _AGAIN else 1)


def attack(data: bytes) -> None:
    """One run. Raises when a property does not hold."""
    _attack(Attacked(Script(data)), data)


def attack_spilling(data: bytes) -> None:
    """The same, and the NIC has on-chip memory for one of its two QPs."""
    _attack(Attacked(Script(data), spilling=True), data)


def _attack(attacked: Attacked, data: bytes) -> None:
    stage = Stage({VICTIM: attacked})
    assert stage.finish(DEADLINE_NS), "the innocent's work is done in time"
    stage.simulator.run(stage.simulator.now_ns + AFTERMATH_NS)
    _check_innocent(stage, attacked)
    _check_counts(stage, attacked)
    assert attacked.nic.overfull() == [], "no table ever held more than its bound"
    kept = reachable(attacked.nic, "nicd.core").objects
    assert kept <= _objects_undisturbed() + OBJECTS_MORE, f"what is kept is bounded, and not {kept} objects"
    _check_cuts(stage, attacked, Rng("cuts", len(data), *data[:64]))


def seeds() -> list[bytes]:
    """Runs without damage, with one of every kind of edit, and with a lot of everything."""
    rng = Rng("nic seeds")
    single = [bytes([wait, place | 64, 2 + sealed, kind, *(rng.below(256) for _ in range(12))])
              for kind in range(9) for place in range(4) for sealed in (0, 1) for wait in (rng.below(20),)]  # fmt: skip
    long = [bytes(rng.below(256) for _ in range(size)) for size in (20, 60, 120, 240)]
    return [b"", *single, *long]


@cache
def _objects_undisturbed() -> int:
    stage = Stage()
    assert stage.finish(DEADLINE_NS)
    nic = stage.simulator.node(VICTIM)
    return reachable(nic, "nicd.core").objects


def _check_innocent(stage: Stage, attacked: Attacked) -> None:
    for name, peer in ((VICTIM, INNOCENT), (INNOCENT, VICTIM)):
        assert not stage.failures(name, peer), "the innocent's QP does not fail"
        ends = stage.ends(name, peer)
        assert [end.status for end in ends] == ["ok"] * PIECES, "every message of it is complete, once"
        assert len({end.wr_id for end in ends}) == PIECES
    assert stage.written(INNOCENT, VICTIM) == pattern(VICTIM, INNOCENT), "its bytes are whole"
    key = R_KEYS[INNOCENT].to_bytes(4, "big")
    address = config_of_nic(CULPRIT).address
    # Who names the key of a region may write to it.
    if not any(entry.body[INNER_SOURCE] == address and key in entry.body for entry in attacked.frames):
        assert attacked.region_bytes(region_of(INNOCENT, True)) == pattern(INNOCENT, VICTIM), "nobody else wrote there"


def _check_counts(stage: Stage, attacked: Attacked) -> None:
    counters = attacked.counters()
    received = sum(counters[name] for name in ("data_received", "sacks_received", "acks_received", "nacks_received"))
    received += sum(counters["trims"].values())
    assert received <= len(attacked.frames), "no frame is counted twice"
    sent = [0] * len(counters["ports"])
    for transmit in attacked.transmits:
        sent[transmit[0]] += 1
    for port, figures in counters["ports"].items():
        lost = sum(figures["drops"][reason] for reason in LOSS_REASONS)
        assert figures["packets"] == sent[int(port)] + lost, "what left a port is sent or counted as lost"
    mine = [end.wr_id for end in stage.ends(VICTIM, CULPRIT)]
    assert len(mine) == len(set(mine)) <= PIECES, "a message ends once"
    assert counters["bytes_placed"] <= sum(len(entry.body) for entry in attacked.frames)


def _check_cuts(stage: Stage, attacked: Attacked, rng: Rng) -> None:
    """The same inputs, cut elsewhere, give the same outputs."""
    end = stage.simulator.now_ns
    commands = [Input(at_ns, Rank.COMMAND, 0, number, command)
                for number, (at_ns, command) in enumerate(commands_of(VICTIM))]  # fmt: skip
    inputs = [*commands, *(entry._replace(body=bytearray(entry.body)) for entry in attacked.frames)]
    inputs.sort(key=lambda entry: (entry.at_ns, entry.rank))
    other = Nic(config_of_nic(VICTIM, attacked.spilling))
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
    for port in range(len(config_of_nic(VICTIM).ports)):
        one, two = (_on_port(found, port) for found in (attacked.transmits, transmits))
        assert one == two, "same packets"


def _on_port(transmits: list[Transmit], port: int) -> list[tuple[int, bytes]]:
    return [(transmit[1], bytes(transmit[2])) for transmit in transmits if transmit[0] == port]
