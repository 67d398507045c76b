"""A switch with small queues, fed with the frames of a real transfer and damaged copies of them: `switch`.

The bytes say which frames come damaged, at which port, how close to one another, and which ports are broken when. What
must hold: nothing raises, packets are conserved on the whole switch and at every port, what the switch keeps stays
bounded by its queues, and the result does not depend on how time is cut.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from fuzz.script import Script, damaged
from fuzz.stage import QPN_OF, config_of_switch, frames_at, packets_of_each_kind
from mrcfabric.impairment import LOSS_REASONS, Impairment
from mrcfabric.naming import adjacency_usid
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode
from switchd.core.commands import ClearImpairments, SetEcn, SetForwarding, SetImpairment, SetTrim
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch

FRAMES_MAX = 96
SETTLED_NS = 10_000_000
"""Long after every queue is empty again."""
_NAMES = ("p0-t0-0", "p1-t1-0")
_CUTS = 10
_QUEUE_BYTES = 1_500
"""Room for a handful of packets, so that marks, trims and drops happen."""


@cache
def _config(name: str) -> SwitchConfig:
    config = config_of_switch(name)
    ports = tuple(
        replace(port, data_bytes_max=_QUEUE_BYTES, control_bytes_max=_QUEUE_BYTES, ecn=port.ecn, trim_bytes=128,
                ecn_min_bytes=min(port.ecn_min_bytes, 200), ecn_max_bytes=1_000, control_burst_bytes=300)
        for port in config.ports
    )  # fmt: skip
    return replace(config, ports=ports, adjacency={adjacency_usid(port): port for port in range(len(ports))})


def attack(data: bytes) -> None:
    """One run. Raises when a property does not hold."""
    script = Script(data)
    config = _config(script.one_of(_NAMES))
    plan = _timetable(script, config)
    end = (plan[-1].at_ns if plan else 0) + 1
    node = Switch(config)
    halfway = _play(node, plan, [end])
    _check_conserved(node, plan, halfway)
    rng = Rng("cuts", len(data), *data[:64])
    other = Switch(config)
    again = _play(other, plan, [*sorted({1 + rng.below(end) for _ in range(_CUTS)} - {end}), end])
    assert _by_port(again[0]) == _by_port(halfway[0]), "same packets"
    assert again[1] == halfway[1], "same events"
    assert other.counters() == node.counters(), "same counts"
    rest = node.advance([Input(end + 1, Rank.COMMAND, 0, len(plan), SetForwarding(0, on=True))], SETTLED_NS)
    assert node.next_timeout() is None, "nothing is left waiting"
    counters = node.counters()
    arrived = len(halfway[0]) + len(rest) - counters["touched"]["duplicated"]
    assert counters["received"] == arrived + sum(counters["drops"].values()), "every packet was sent or dropped"


def seeds() -> list[bytes]:
    """Quiet and busy runs through either switch, with and without faults."""
    rng = Rng("switch seeds")
    return [bytes([first, *(rng.below(256) for _ in range(size))])
            for first in (0, 1) for size in (0, 8, 40, 120, 300) for _ in range(4)]  # fmt: skip


def _timetable(script: Script, config: SwitchConfig) -> list[Input]:
    """Frames and commands in the order of time; bodies are bytes, to be copied for each run."""
    stream = frames_at(config.name)
    qpns = tuple(QPN_OF.values())
    plan: list[Input] = []
    at_ns, position = 0, 0
    while script.left and len(plan) < FRAMES_MAX:
        head = script.number()
        at_ns += (head & 7) * 20
        if head >> 3 == 31:
            plan.append(Input(at_ns, Rank.COMMAND, 0, len(plan), order(script, len(config.ports), len(plan))))
            continue
        entry = stream[position % len(stream)]
        position += 1 + (head >> 3 & 3)
        body = bytes(damaged(script, entry.body, packets_of_each_kind(), qpns)) if head & 32 else entry.body
        if head >> 3 == 30:
            # Whatever stands in a link control frame, it is no packet.
            body = encode(body[:6], {script.below(8): script.number()}) if head & 1 else ControlFrame(body)
        port = entry.port if head & 64 else script.below(len(config.ports))
        plan.append(Input(at_ns, Rank.FRAME, port, len(plan), body))
    plan.sort(key=lambda entry: entry[:4])
    return plan


def order(script: Script, ports: int, token: int) -> Any:
    """A fault, or trimming or marking switched at a port that there is, at one that there is not, or at all."""
    kind = script.number()
    if kind & 3 == 1:
        return SetForwarding(token, bool(kind & 8)) if kind & 4 else ClearImpairments(token)
    if kind & 3 == 3:
        port: int | None = script.below(ports + 2)
        port = None if port == ports + 1 else port
        if kind & 4:
            return SetEcn(token, bool(kind & 8), port, *(script.number() * 8 for _ in range((kind >> 4) % 3)))
        return SetTrim(token, None if kind & 16 else bool(kind & 8), port)
    return SetImpairment(token, script.below(ports + 1), _impairment(script, kind))


def _impairment(script: Script, kind: int) -> Impairment:
    share = script.number(2) * 15 % PPM
    parts = (
        Impairment(up=bool(kind & 2), loss_ppm=share),
        Impairment(loss_ppm=share, loss_burst_packets=3, gray_ppm=share),
        Impairment(corruption_ppm=share, duplication_ppm=PPM - share),
        Impairment(reordering_ppm=share, reordering_ns=1 + (kind >> 4) * 50),
        Impairment(delay_ppm=PPM - share, delay_ns=kind, jitter_ns=kind & 0xF0),
        Impairment(black_hole_usids=(1 + kind & 0xF,), black_hole_evs=(kind,)),
        Impairment(rate_bps=1_000_000_000 + share * 10_000),
    )
    return Impairment.merged(parts[index] for index in (kind >> 2 & 7, kind >> 5) if index < len(parts))


def _play(node: Switch, plan: list[Input], edges: list[int]) -> tuple[list[Transmit], list[dict[str, Any]]]:
    """Everything that comes out up to the last edge."""
    transmits: list[Transmit] = []
    events: list[dict[str, Any]] = []
    start = 0
    for until in edges:
        stop = start
        while stop < len(plan) and plan[stop].at_ns <= until:
            stop += 1
        due = [_fresh(entry) for entry in plan[start:stop]]
        transmits += [(port, at_ns, bytes(packet)) for port, at_ns, packet in node.advance(due, until)]
        events += [event.record() for event in node.drain_events()]
        start = stop
    return transmits, events


def _fresh(entry: Input) -> Input:
    """The entry with a packet of its own; a link control frame cannot be changed."""
    if entry.rank != Rank.FRAME or isinstance(entry.body, ControlFrame):
        return entry
    return entry._replace(body=bytearray(entry.body))


def _check_conserved(node: Switch, plan: list[Input], ran: tuple[list[Transmit], list[dict[str, Any]]]) -> None:
    counters = node.counters()
    drops = counters["drops"]
    frames = [entry for entry in plan if entry.rank == Rank.FRAME]
    assert counters["received"] == len(frames), "every frame counts once, a command never"
    held = sum(port["held"] for port in counters["ports"].values())
    arrived = len(ran[0]) + held - counters["touched"]["duplicated"]
    assert counters["packets"] == arrived + sum(drops[reason] for reason in LOSS_REASONS), (
        "departures arrive or are lost"
    )
    waiting = counters["received"] - arrived - sum(drops.values())
    assert waiting == counters["data_waiting"] + counters["control_waiting"] >= 0, "what waits is in a queue"
    assert sum(entry["packets"] for entry in counters["usids"].values()) == counters["received"] - sum(
        node.drops.values()
    ), "whatever reached a port followed an entry of the table"
    pending = held + waiting * node.forwarding
    assert (pending > 0) == (node.next_timeout() is not None), "whatever waits will leave"
    assert len(ran[1]) == len(plan) - len(frames), "every command is answered once"
    for port in counters["ports"].values():
        assert port["data_bytes"] <= port["data_bytes_peak"] <= _QUEUE_BYTES, "queues are bounded"
        assert port["control_bytes"] <= port["control_bytes_peak"] <= _QUEUE_BYTES
        assert port["trimmed"] == port["trim_admitted"] + port["trim_dropped"]


def _by_port(transmits: list[Transmit]) -> dict[int, list[tuple[int, bytes]]]:
    found: dict[int, list[tuple[int, bytes]]] = {}
    for transmit in transmits:
        found.setdefault(transmit[0], []).append((transmit[1], bytes(transmit[2])))
    return found
