"""Virtual time: delivery, order, windows, crashes and restarts."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.sim.simulator import Simulator
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode
from tests.support.nodes import Relay, Source

LINKS = {("a", 0): ("r", 0), ("r", 1): ("b", 0), ("b", 0): ("r", 1), ("r", 0): ("a", 0)}
# 120 bytes at 100 Gb/s are 13 ns with overhead, and a link takes 1000.
HOP_NS = 13 + 1_000


def fabric(**options: Any) -> tuple[Simulator, Source, Source]:
    a = Source("a", ports=1, packets=20, period_ns=700, size=120)
    b = Source("b", ports=1, packets=5, period_ns=1_100, size=120)
    return Simulator({"a": a, "r": Relay("r", 2), "b": b}, LINKS, **options), a, b


def digests(sim: Simulator) -> list[str]:
    return [trace.digest() for name in ("a", "r", "b") for trace in sim.traces(name)]


def reference() -> list[str]:
    sim, _, _ = fabric(keep=0)
    sim.run(40_000)
    return digests(sim)


def test_a_frame_takes_serialization_and_delay_per_hop():
    sim, _, b = fabric()
    sim.run(700 + 2 * HOP_NS - 1)
    assert b.heard == []
    sim.run(700 + 2 * HOP_NS)
    assert [(entry.at_ns, entry.text) for entry in b.heard] == [(700 + 2 * HOP_NS, "a/0/19")]


class Pauser:
    """Sends one link control frame and one packet on port 0, and keeps what comes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.now_ns = 0
        self.taken: list[Any] = []

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        self.taken += [body for *_, body in inputs]
        first = self.now_ns < 5 <= until
        self.now_ns = until
        return [(0, 1_010, encode(bytes(6), {3: 9})), (0, 1_020, bytearray(64))] if first else []

    def next_timeout(self) -> int | None:
        return 5 if self.now_ns < 5 else None

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return {}


def test_a_link_control_frame_keeps_its_type():
    a, b = Pauser("a"), Pauser("b")
    sim = Simulator({"a": a, "b": b}, {("a", 0): ("b", 0), ("b", 0): ("a", 0)}, keep=9)
    sim.run(10_000)
    assert [type(body) for body in a.taken] == [type(body) for body in b.taken] == [ControlFrame, bytearray]
    assert a.taken[0] == encode(bytes(6), {3: 9})


def test_everything_arrives_and_then_the_fabric_is_idle():
    sim, a, b = fabric()
    assert not sim.run_until(lambda: False, 1_000_000, 1_000)
    assert [entry.text for entry in b.heard] == [f"a/0/{n}" for n in range(19, -1, -1)]
    assert [entry.text for entry in a.heard] == [f"b/0/{n}" for n in range(4, -1, -1)]
    assert sim.next_due() is None
    assert sim.frames == 50


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 39_999), max_size=12), st.integers(1, 1_000))
def test_results_do_not_depend_on_how_time_is_cut(cuts, window_ns):
    sim, _, _ = fabric(keep=0, window_ns=window_ns)
    for until in [*sorted(cuts), 40_000]:
        sim.run(until)
    assert digests(sim) == reference()


def test_run_until_stops_at_the_predicate_and_at_the_deadline():
    sim, _, b = fabric()
    assert sim.run_until(lambda: len(b.heard) >= 3, 40_000, 500)
    assert len(b.heard) == 3
    assert not sim.run_until(lambda: len(b.heard) >= 9, sim.now_ns + 500, 200)
    assert not sim.run_until(lambda: False, sim.now_ns + 500, 200)


def test_commands_come_before_frames_of_the_same_instant():
    sim, _, b = fabric()
    sim.command("b", 700 + 2 * HOP_NS, "second")
    sim.command("b", 700 + 2 * HOP_NS, "third")
    sim.command("b", 5, "first")
    sim.run(700 + 2 * HOP_NS)
    assert [entry.text for entry in b.heard] == ["first", "second", "third", "a/0/19"]


def test_a_reaction_to_an_event_comes_a_window_later():
    def react(name: str, events: list[Any]) -> None:
        for event in events:
            if event.text.startswith("a/"):
                sim.command("b", event.at_ns + 1_000, f"saw {event.text}")

    sim, _, b = fabric(on_events=react)
    sim.run(40_000)
    saw = [entry for entry in b.heard if entry.text.startswith("saw")]
    heard = [entry for entry in b.heard if entry.text.startswith("a/")]
    assert [entry.at_ns for entry in saw] == [entry.at_ns + 1_000 for entry in heard]


def test_what_was_sent_before_the_crash_arrives_and_nothing_else():
    sim, a, b = fabric()
    sim.crash("a", 1_400)  # the instant of its second packet: it still leaves
    sim.run(1_400)
    assert not sim.alive("a")
    with pytest.raises(KeyError):
        sim.node("a")
    sim.run(40_000)
    assert [entry.text for entry in b.heard] == ["a/0/19", "a/0/18"]
    assert a.heard == []
    assert sim.vanished("a") == 5


def test_a_restarted_node_gets_frames_that_arrive_after_it_began():
    sim, _, b = fabric(keep=0)
    born: list[Source] = []

    def again(start_ns: int) -> Source:
        born.append(Source("b", ports=1, packets=0, period_ns=1_000, size=120, start_ns=start_ns))
        return born[-1]

    second = 1_400 + 2 * HOP_NS  # arrival of the second packet
    sim.crash("b", second - 100)
    sim.restart("b", second, again)
    sim.command("b", second + 1, "hello")
    sim.run(40_000)
    assert [entry.text for entry in b.heard] == ["a/0/19"]
    assert [entry.text for entry in born[0].heard][:3] == ["hello", "a/0/17", "a/0/16"]
    assert sim.vanished("b") == 1
    assert sim.node("b") is born[0]
    assert len(sim.traces("b")) == 2


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 20_000), st.integers(0, 5_000), st.lists(st.integers(1, 39_999), max_size=6))
def test_crash_and_restart_do_not_depend_on_cuts(crash_ns, down_ns, cuts):
    def ran(edges: list[int]) -> list[str]:
        sim, _, _ = fabric(keep=0)
        sim.crash("r", crash_ns)
        sim.restart("r", crash_ns + down_ns, lambda start_ns: Relay("r", 2, start_ns))
        for until in edges:
            sim.run(until)
        return [*digests(sim), str(sim.vanished("r"))]

    assert ran([*sorted(cuts), 40_000]) == ran([40_000])


class Recorder:
    """Keeps its inputs as they come."""

    name = "recorder"

    def __init__(self) -> None:
        self.now_ns = 0
        self.inputs: list[Input] = []

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        self.inputs += inputs
        self.now_ns = until
        return []

    def next_timeout(self) -> None:
        return None

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return {}


def test_inputs_of_one_instant_are_in_order_of_port_and_sequence():
    source = Source("s", ports=3, packets=2, period_ns=50, size=120)
    recorder = Recorder()
    sim = Simulator({"s": source, "t": recorder}, {("s", port): ("t", 2 - port) for port in range(3)})
    sim.run(10_000)
    first = 50 + HOP_NS
    assert [entry[:4] for entry in recorder.inputs] == [
        (at_ns, Rank.FRAME, port, sequence) for sequence, at_ns in ((1, first), (2, first + 50)) for port in range(3)
    ]


def test_idle_time_is_free():
    sim = Simulator({"s": Source("s", ports=1, packets=3, period_ns=10**15, size=120), "t": Recorder()}, {})
    sim.run(4 * 10**15)
    assert sim.frames == 0
    assert sim.next_due() is None
