"""Taps of several nodes become one stream in time order, through deaths, silences and overflow."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.tap import Tap
from mrcfabric.taps import TAPS_MAX, Taps
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import DEFAULT_OPTIONS
from orchestrator.captures.taps import RECORDS_LEAST, FabricTaps
from orchestrator.captures.wires import wires_of
from orchestrator.fabric.readings import ClockReading
from tests.vectors import wire as golden

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
UP, DOWN = "p0-t0-0>p0-t1-0", "p0-t1-0>p0-t0-0"
T0, T1 = "p0-t0-0", "p0-t1-0"
T0_PORT, T1_PORT = 2, 0


class _Node:
    """The taps of a daemon without the daemon: what it sends is said by the test."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.active: tuple[Tap, ...] | None = None
        self.silent = self.dead = False
        self.restart()

    def restart(self) -> None:
        self.active = None
        self.taps = Taps(Dscp(), DEFAULT_OPTIONS, lambda active: setattr(self, "active", active), lambda: self.now_ns)

    def send(self, port: int, *arrivals: int, packet: bytes = golden.SACK) -> None:
        for tap in self.active or ():
            tap.take([(port, at_ns, packet) for at_ns in arrivals])

    async def call(self, op: str, args: Mapping[str, Any]) -> Any:
        if self.silent:
            raise NoAnswerError(op)
        if self.dead:
            raise RefusedError("is down")
        return None if op == "status" else await self.taps.ops[op](dict(args))


class _Nodes:
    """Two of them, asked as a fabric is."""

    def __init__(self) -> None:
        self.nodes = {T0: _Node(), T1: _Node()}
        self.gone = False

    async def call(self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float = 1.0) -> Any:
        return await self.nodes[node].call(op, args or {})

    async def clock(self) -> ClockReading:
        if self.gone:
            raise RefusedError("the agent cannot be reached")
        return ClockReading(0, 0, 0, 0, None, False, False, "run", {})

    def reach(self, now_ns: int) -> None:
        for node in self.nodes.values():
            node.now_ns = now_ns

    def close(self) -> None:
        for node in self.nodes.values():
            node.taps.close()


def listening(nodes: _Nodes, links: Sequence[str] = (UP, DOWN), **wanted: Any) -> FabricTaps:
    return FabricTaps(nodes, wires_of(TOPOLOGY, links), PacketFilter(**wanted), 64, records_max=1)


async def test_packets_of_all_nodes_come_in_the_order_of_their_arrival() -> None:
    nodes = _Nodes()
    ears = listening(nodes)
    await ears.begin()
    nodes.nodes[T0].send(T0_PORT, 110, 300)
    nodes.nodes[T1].send(T1_PORT, 105, 120)
    nodes.reach(200)
    heard = await ears.look()
    assert [(one.at_ns, one.wire) for one in heard] == [(105, 1), (110, 0), (120, 1)]
    assert (heard[0].size, heard[0].data) == (len(golden.SACK), golden.SACK[:64])
    assert ears.complete_ns == 200
    nodes.nodes[T1].send(T1_PORT, 250)
    nodes.reach(400)
    assert [one.at_ns for one in await ears.look()] == [250, 300]
    await ears.end()
    assert [node.active for node in nodes.nodes.values()] == [None, None]
    nodes.close()


async def test_nobody_goes_beyond_the_node_that_has_said_least() -> None:
    nodes = _Nodes()
    ears = listening(nodes)
    await ears.begin()
    nodes.nodes[T0].now_ns = 500
    nodes.nodes[T0].send(T0_PORT, 50, 150)
    nodes.nodes[T1].now_ns = 100
    assert [one.at_ns for one in await ears.look()] == [50]
    nodes.nodes[T1].silent = True
    nodes.nodes[T1].now_ns = 900
    assert await ears.look() == []
    assert ears.silent == {T1}
    nodes.nodes[T1].silent = False
    assert [one.at_ns for one in await ears.look()] == [150]
    assert ears.silent == set()
    nodes.nodes[T0].send(T0_PORT, 600)
    assert await ears.look() == []
    assert [one.at_ns for one in ears.rest()] == [600]
    nodes.close()


async def test_a_node_that_dies_is_not_waited_for_and_gets_its_tap_back() -> None:
    nodes = _Nodes()
    ears = listening(nodes)
    await ears.begin()
    nodes.nodes[T1].dead = True
    nodes.nodes[T0].send(T0_PORT, 150)
    nodes.reach(200)
    assert [one.at_ns for one in await ears.look()] == [150]
    nodes.nodes[T1].dead = False
    nodes.nodes[T1].restart()
    assert await ears.look() == []
    assert await ears.look() == []
    assert ears.again == [T1]
    nodes.nodes[T1].send(T1_PORT, 250)
    nodes.reach(300)
    assert [one.at_ns for one in await ears.look()] == [250]
    nodes.close()


async def test_what_was_forgotten_is_counted_over_all_lives_of_a_tap() -> None:
    nodes = _Nodes()
    ears = listening(nodes)
    await ears.begin()
    for _ in range(2):
        nodes.nodes[T0].send(T0_PORT, *range(RECORDS_LEAST + 6))
        nodes.reach(100)
        assert len(await ears.look()) == RECORDS_LEAST
        nodes.nodes[T0].restart()
        await ears.look()
        await ears.look()
    assert ears.lost() == {0: 12}
    nodes.close()


async def test_what_has_no_room_counts_with_its_direction() -> None:
    nodes = _Nodes()
    ears = listening(nodes, (UP, "p0-t0-0>p0-t1-1"))
    await ears.begin()
    for _ in range(2):
        nodes.nodes[T0].send(T0_PORT, *range(RECORDS_LEAST))
        nodes.nodes[T0].send(T0_PORT + 1, 1, 2, 3)
        nodes.reach(200)
        assert len(await ears.look()) == RECORDS_LEAST
        await ears.look()
    nodes.nodes[T0].send(T0_PORT, *range(RECORDS_LEAST + 2))
    await ears.end()
    assert ears.lost() == {0: 2, 1: 6}
    nodes.close()


async def test_a_look_ends_with_what_there_was_when_it_began() -> None:
    nodes = _Nodes()
    ears = listening(nodes)
    await ears.begin()
    node = nodes.nodes[T0]
    node.send(T0_PORT, 10)
    node.call = _sending_while_asked(node, node.call)  # type: ignore[method-assign]
    nodes.reach(100)
    assert [one.at_ns for one in await ears.look()] == [10]
    assert ears.complete_ns == 100
    nodes.close()


def _sending_while_asked(node: _Node, call: Any) -> Any:
    async def busy(op: str, args: Mapping[str, Any]) -> Any:
        answer = await call(op, args)
        node.now_ns += 100
        node.send(T0_PORT, node.now_ns + 50)
        return answer

    return busy


async def test_a_filter_is_carried_to_every_node() -> None:
    nodes = _Nodes()
    ears = listening(nodes, (UP,), kinds=("nack",))
    await ears.begin()
    assert nodes.nodes[T1].active is None
    nodes.nodes[T0].send(T0_PORT, 10, packet=golden.SACK)
    nodes.nodes[T0].send(T0_PORT, 20, packet=golden.NACK)
    nodes.nodes[T0].send(T0_PORT + 1, 30, packet=golden.NACK)
    nodes.reach(100)
    assert [one.at_ns for one in await ears.look()] == [20]
    nodes.close()


async def test_a_node_with_too_many_taps_says_so_at_once() -> None:
    nodes = _Nodes()
    for number in range(TAPS_MAX):
        await nodes.call(T0, "tap", {"id": f"other-{number}"})
    with pytest.raises(RefusedError, match="p0-t0-0: this node has 8 taps already"):
        await listening(nodes).begin()
    nodes.close()


async def test_a_node_that_is_down_at_first_is_no_mistake() -> None:
    nodes = _Nodes()
    nodes.nodes[T0].dead = nodes.nodes[T1].dead = True
    ears = listening(nodes)
    await ears.begin()
    assert await ears.look() == []
    assert ears.complete_ns == NEVER
    nodes.gone = True
    with pytest.raises(RefusedError, match="cannot be reached"):
        await ears.look()
    nodes.close()
