"""The UDP driver: exact under the horizon rule, faithful about what it cannot hide, the same as virtual time."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable

import pytest

from mrcfabric.brake import SHARE_PPM_MIN, Brake
from mrcfabric.clock import ClockPage
from mrcfabric.drive import Drive
from mrcfabric.link_port import LinkEnd
from mrcfabric.node import Node
from mrcfabric.runner import MISSED_LOOKS_MAX, Runner
from mrcfabric.sim.simulator import Simulator
from mrcfabric.sim.trace import Trace
from mrcfabric.udp import Address
from mrcfabric.wire.link import link_frame, link_stamp
from tests.support.nodes import Relay, Source
from tests.support.ports import free_udp_ports
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

TAG = 0x1234
DELAY_NS = 1_000
# left -- relay -- right; the relay's port 0 faces left, its port 1 faces right.
PEERS = [[(1, 0)], [(0, 0), (2, 0)], [(1, 1)]]
END_NS = 200_000


def nodes() -> dict[str, Node]:
    return {
        "left": Source("left", ports=1, packets=40, period_ns=700, size=4_200),
        "relay": Relay("relay", ports=2),
        "right": Source("right", ports=1, packets=60, period_ns=300, size=120),
    }


class Row:
    """Three nodes in a row, each under its own runner, all in this process."""

    def __init__(
        self,
        dilation: float = 0.0,
        offload: bool = True,
        absent: str = "",
        spins: bool = False,
        together: bool = False,
        all_together: bool = False,
    ) -> None:
        """`spins`: they look out for each other; `together`: left and relay share a runner, or all three do."""
        self.page = ClockPage.create(PEERS, dilation)
        self.doorbells = [os.eventfd(0, os.EFD_NONBLOCK) for _ in PEERS]
        numbers = iter(free_udp_ports(4))
        self.addresses: dict[tuple[int, int], Address] = {
            (node, port): ("127.0.0.1", next(numbers)) for node, ports in enumerate(PEERS) for port in range(len(ports))
        }
        self.nodes = nodes()
        self.traces = {name: Trace(keep=1000) for name in self.nodes}
        self.drives: list[Drive] = []
        self.stop = asyncio.Event()
        self.offload = offload
        self.runners = [Runner(self.page, bell, agent_doorbell=None, spins=spins) for bell in self.doorbells]
        if all_together:
            self.runners, self.doorbells = [self.runners[1]] * 3, [self.doorbells[1]] * 3
        if together:
            self.runners[0], self.doorbells[0] = self.runners[1], self.doorbells[1]
        for slot, (name, core) in enumerate(self.nodes.items()):
            if name != absent:
                self.drives.append(self.add(slot, core, self.traces[name]))

    def add(self, slot: int, core: Node, trace: Trace) -> Drive:
        links = [
            LinkEnd(
                port=port,
                local=self.addresses[slot, port],
                peer=self.addresses[peer, peer_port],
                peer_node=peer,
                peer_port=peer_port,
                delay_ns=DELAY_NS,
                peer_doorbell=None if self.runners[peer] is self.runners[slot] else self.doorbells[peer],
                peer_waits_for=lambda peer=peer: [(*end, DELAY_NS) for end in PEERS[peer]],
                tag=TAG,
                peer_tag=TAG,
            )
            for port, (peer, peer_port) in enumerate(PEERS[slot])
        ]
        return self.runners[slot].add(core, slot, links, trace=trace, offload=self.offload)

    def wake(self) -> None:
        self.page.wake()
        self.ring()

    def ring(self) -> None:
        for bell in self.doorbells:
            os.eventfd_write(bell, 1)

    async def reach(self, at_ns: int) -> None:
        await eventually(lambda: self.page.fabric_now() >= at_ns, deadline_s=20)


@pytest.fixture
async def row(request: pytest.FixtureRequest) -> AsyncIterator[Row]:
    row = Row(**getattr(request, "param", {}))
    async with asyncio.TaskGroup() as group:
        for runner in set(row.runners):
            group.create_task(runner.serve(row.stop))
        yield row
        row.stop.set()


def simulated(prepare: Callable[[Simulator], None] = lambda _sim: None) -> dict[str, Trace]:
    links = {
        ("left", 0): ("relay", 0), ("relay", 0): ("left", 0),
        ("relay", 1): ("right", 0), ("right", 0): ("relay", 1),
    }  # fmt: skip
    simulator = Simulator(nodes(), links, window_ns=DELAY_NS, keep=1000)
    prepare(simulator)
    simulator.run(END_NS)
    return {name: simulator.traces(name)[-1] for name in ("left", "relay", "right")}


@pytest.mark.parametrize(
    "row",
    [{}, {"offload": False}, {"dilation": 2_000.0}, {"spins": True}, {"spins": True, "together": True}],
    ids=["free", "portable", "paced", "looking", "together"],
    indirect=True,
)
async def test_real_datagrams_give_the_trace_of_virtual_time(row: Row) -> None:
    row.wake()
    await row.reach(END_NS)
    for name, expected in simulated().items():
        assert row.traces[name].digest() == expected.digest(), name
    for drive in row.drives:
        record = drive.fidelity_record()
        assert (record["late_frames"], record["host_drops"], record["bad_frames"]) == (0, 0, 0)
    assert len(row.nodes["right"].heard) == 40  # type: ignore[attr-defined]
    assert len(row.nodes["left"].heard) == 60  # type: ignore[attr-defined]


@pytest.mark.parametrize("row", [{"together": True}], indirect=True)
async def test_a_turn_that_ends_between_two_nodes_goes_on_with_the_next_one(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every turn ends after one tick: others are heard in between, and nobody is passed over."""
    monkeypatch.setattr("mrcfabric.runner.TURN_WALL_NS", -1)
    monkeypatch.setattr("mrcfabric.runner.TICKS_MAX", 1)
    row.wake()
    await row.reach(END_NS)
    for name, expected in simulated().items():
        assert row.traces[name].digest() == expected.digest(), name
    left, relay = (row.drives[slot].fidelity.ticks for slot in (0, 1))
    assert abs(left - relay) <= (left + relay) // 4


@pytest.mark.parametrize("row", [{"all_together": True}], indirect=True)
async def test_doorbells_do_not_multiply_turns(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn ends after one tick and asks for the next one; a doorbell that rings meanwhile adds none."""
    monkeypatch.setattr("mrcfabric.runner.TURN_WALL_NS", -1)
    monkeypatch.setattr("mrcfabric.runner.TICKS_MAX", 1)
    row.wake()
    most = before = 0
    for _ in range(200):
        row.ring()
        await asyncio.sleep(0)  # one iteration of the loop
        ticks = sum(drive.fidelity.ticks for drive in row.drives)
        most, before = max(most, ticks - before), ticks
    assert 1 <= most <= 2
    await row.reach(END_NS)


@pytest.mark.parametrize(
    "row",
    [{}, {"dilation": 2_000.0}, {"spins": True, "together": True}],
    ids=["free", "paced", "together"],
    indirect=True,
)
async def test_time_that_stands_still_at_odd_instants_gives_the_same_trace(row: Row) -> None:
    row.wake()
    for limit_ns in (1, 2, 999, 1_000, 3_333, 40_001, END_NS):
        row.page.set_limit(limit_ns)
        row.ring()
        await row.reach(limit_ns)
        assert [row.page.horizon(node) for node in range(3)] == [limit_ns] * 3
    for name, expected in simulated().items():
        assert row.traces[name].digest() == expected.digest(), name


async def test_a_node_that_pauses_changes_nothing_but_the_pace(row: Row) -> None:
    pauses: list[float] = []
    asked_s: list[float] = []
    early: list[float] = []
    relay = row.drives[1]

    class Counted(Brake):
        def pause_s(self, worked_s: float, now_ns: int) -> float:
            # Whoever is put aside before this line seems to have begun later than it has, never earlier.
            begun_s = time.monotonic() - worked_s + 1e-6
            if begun_s < relay.resumes_s:
                early.append(relay.resumes_s - begun_s)
            pauses.append(super().pause_s(worked_s, now_ns))
            asked_s.append(time.monotonic())
            return pauses[-1]

    row.drives[1].brake = Counted()
    row.drives[1].brake.tell([[1_000, END_NS, SHARE_PPM_MIN]])
    row.wake()
    await row.reach(END_NS)
    assert sum(pause_s > 0 for pause_s in pauses) > 10
    assert not early, "who pauses takes no turn"
    assert asked_s[-1] - asked_s[0] >= sum(pauses[1:-1]), "each pause takes its time"
    for name, expected in simulated().items():
        assert row.traces[name].digest() == expected.digest(), name
    assert all(drive.fidelity_record()["late_frames"] == 0 for drive in row.drives)


@pytest.mark.parametrize("row", [{"spins": True}], indirect=True)
async def test_who_stands_at_the_limit_or_sleeps_does_not_look_out(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    row.page.set_limit(5_500)
    row.wake()
    await row.reach(5_500)
    await asyncio.sleep(0)
    gave_way: list[int] = []
    monkeypatch.setattr("os.sched_yield", lambda: gave_way.append(1))
    for runner in row.runners:
        runner._turn()
    row.page.set_limit(END_NS)
    row.page.sleep()
    for runner in row.runners:
        runner._turn()
    assert gave_way == []


@pytest.mark.parametrize("row", [{"spins": True, "absent": "relay"}], indirect=True)
async def test_who_looks_in_vain_looks_less_and_less_often(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrcfabric.runner.YIELD_WALL_NS", 1 << 40)  # a busy machine must not decide
    row.page.mark_booting(1, 5_000)
    row.wake()
    await eventually(lambda: row.page.horizon(0) == row.page.horizon(2) == 5_000 + DELAY_NS, deadline_s=10)
    left, looked = row.runners[0], 0
    left._skip_looks = left._missed_looks = 0
    for _ in range(2 << MISSED_LOOKS_MAX):
        before = left._skip_looks
        left._turn()
        looked += before == 0
    assert 2 <= looked <= MISSED_LOOKS_MAX + 2


async def test_nobody_arranges_another_turn_at_the_limit(row: Row) -> None:
    row.page.set_limit(5_500)
    row.wake()
    await row.reach(5_500)
    for runner in row.runners:
        runner._turn()
        assert runner._timer is None
        assert not runner._kicked
    assert all(drive.stands for drive in row.drives)
    row.page.set_limit(END_NS)
    row.ring()
    await row.reach(END_NS)


async def test_a_command_for_the_instant_after_the_limit_is_in_time(row: Row) -> None:
    row.page.set_limit(5_500)
    row.wake()
    await row.reach(5_500)
    row.drives[0].command("hello", at_ns=5_501)
    row.page.set_limit(5_501)
    row.ring()
    await row.reach(5_501)
    assert row.nodes["left"].heard[-1].at_ns == 5_501  # type: ignore[attr-defined]
    assert row.drives[0].fidelity.late_commands == 0


@pytest.mark.parametrize("row", [{"together": True}], indirect=True)
async def test_those_for_whom_other_processes_wait_have_their_turn_first(row: Row) -> None:
    assert [drive.slot for drive in row.runners[1].drives] == [1, 0]
    assert [drive.outward for drive in row.runners[1].drives] == [True, False]


@pytest.mark.parametrize("row", [{"absent": "relay"}], indirect=True)
async def test_nobody_passes_a_node_that_is_still_to_come(row: Row) -> None:
    row.page.mark_booting(1, 5_000)
    row.wake()
    await eventually(lambda: row.page.horizon(0) == 5_000 + DELAY_NS, deadline_s=10)
    assert row.page.horizon(2) == 5_000 + DELAY_NS


@pytest.mark.parametrize("row", [{"absent": "relay"}], indirect=True)
async def test_the_dead_bind_nobody(row: Row) -> None:
    row.page.mark_dead(1)
    row.wake()
    await row.reach(END_NS)
    assert row.nodes["left"].counters() == {"left": 0, "heard": 0}


async def test_a_sleeping_fabric_does_not_move_and_a_command_waits(row: Row) -> None:
    row.drives[0].command("hello")
    row.drives[0].command("at a time", at_ns=9_000)
    assert row.page.fabric_now() == 0
    row.wake()
    await row.reach(END_NS)
    heard = row.nodes["left"].heard  # type: ignore[attr-defined]
    assert [event.at_ns for event in heard if event.text == "hello"] == [1]
    assert [event.at_ns for event in heard if event.text == "at a time"] == [9_000]


async def test_a_late_command_is_carried_out_at_once_and_counted(row: Row) -> None:
    row.wake()
    await row.reach(50_000)
    row.drives[2].command("late", at_ns=10)
    heard = row.nodes["right"].heard  # type: ignore[attr-defined]
    await eventually(lambda: any(event.text == "late" for event in heard), deadline_s=10)
    assert row.drives[2].fidelity.late_commands == 1


async def test_garbage_from_the_right_address_is_counted_and_dropped(row: Row) -> None:
    """The dead neighbour's port is taken over by a program that talks nonsense."""
    row.runners[2].remove(row.drives[2])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as liar:
        liar.bind(row.addresses[2, 0])
        liar.connect(row.addresses[1, 1])
        liar.send(b"x")
        liar.send(b"\xa5" * 300)
        liar.send(link_frame(1, 1, link_stamp(0, 0, TAG + 1), b"other fabric"))
        # Published as if it were three frames, so that the relay looks into the socket.
        row.page.words[row.page.sent_word(2, 0)] = 3
        row.page.mark_dead(2)
        row.wake()
        await eventually(lambda: row.drives[1].fidelity.bad_frames == 3, deadline_s=10)
        await row.reach(50_000)
    record = row.drives[1].fidelity_record()
    assert (record["host_drops"], record["ports"]) == (3, {1: [0, 3]})


async def test_idle_nodes_say_so(row: Row) -> None:
    row.wake()
    await eventually(row.page.all_idle, deadline_s=20)
    row.page.sleep()
    reached = row.page.fabric_front()
    await asyncio.sleep(0)
    assert row.page.fabric_front() == reached
