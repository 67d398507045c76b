"""When shares are killed and started: never before all nodes have died of the crash, never under a birth."""

import asyncio

from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from orchestrator.fabric.host_lifecycle import HostLifecycle
from orchestrator.faults.fault import Fault, once
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.table import FaultTable
from orchestrator.process.launcher import ProcessFailedError

TOPOLOGY = Topology(planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=4, reserve_evs_per_qp=2)
HOSTS = HostMap({"vm1": ("h000", "p0-t0-0"), "vm2": ("h001", "p0-t1-0")}, "vm1")
NODES = HOSTS.nodes["vm2"]
CRASH_NS, END_NS = 10_000, 50_000


class Hosts:
    """One host whose share is killed and started at once, and nodes that are where the test says."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = False
        self.state = "lost"
        self.begins: dict[str, Instant | None] = dict.fromkeys(NODES, 0)
        self.living = set(NODES)
        self.table = FaultTable(TOPOLOGY)
        self.lifecycle = HostLifecycle(HOSTS, lambda node: int(node in NODES), self.table, self, self)

    async def kill_share(self, number: int) -> None:
        self.done.append(f"kill {number}")

    async def start_share(self, number: int) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise ProcessFailedError("host vm2 is on fire")
        self.done.append(f"start {number}")

    def condition(self, _number: int) -> tuple[str, str]:
        return self.state, ""

    def alive(self, node: str) -> bool:
        return node in self.living

    def begins_ns(self, node: str) -> Instant | None:
        return self.begins[node]

    async def recall(self, node: str) -> None:
        self.done.append(f"recall {node}")
        self.living.discard(node)

    def add(self, fault: Fault) -> None:
        self.table.add(HOSTS.settled(TOPOLOGY, fault), 0)
        self.lifecycle.look()

    def died(self, node: str, begins_ns: Instant | None) -> None:
        self.living.discard(node)
        self.begins[node] = begins_ns
        self.lifecycle.look()

    async def bear(self, node: str, start_ns: Instant) -> None:
        async with self.lifecycle.birth(node, start_ns):
            self.done.append(f"bear {node}")
            self.living.add(node)
            self.begins[node] = start_ns


def crash(until_ns: Instant = END_NS, at_ns: Instant = CRASH_NS) -> Fault:
    return once("host_crash", "vm2", at_ns=at_ns, until_ns=until_ns, fault_id=f"crash-{at_ns}")


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_share_dies_with_its_last_node_and_is_there_before_the_first_is_born() -> None:
    hosts = Hosts()
    hosts.add(crash())
    hosts.died("h001", END_NS)
    births = [asyncio.ensure_future(hosts.bear("h001", END_NS))]
    await turns()
    assert hosts.done == []
    assert hosts.lifecycle.waits("h001", END_NS)
    hosts.died("p0-t1-0", END_NS)
    births.append(asyncio.ensure_future(hosts.bear("p0-t1-0", END_NS)))
    await asyncio.gather(*births)
    assert hosts.done[:2] == ["kill 1", "start 1"]
    assert sorted(hosts.done[2:]) == ["bear h001", "bear p0-t1-0"]
    hosts.lifecycle.look()
    await turns()
    assert len(hosts.done) == 4, "a crash is one"


async def test_who_is_away_for_another_reason_returns_before_the_crash_or_after_it() -> None:
    hosts = Hosts()
    hosts.add(crash())
    hosts.died("h001", CRASH_NS - 1)
    hosts.died("p0-t1-0", END_NS)
    await turns()
    assert hosts.done == [], "one of them lives once more before it"
    await hosts.bear("h001", CRASH_NS - 1)
    hosts.died("h001", None)
    await turns()
    assert hosts.done == ["bear h001", "kill 1"]


async def test_nobody_is_born_on_a_share_that_is_about_to_die() -> None:
    hosts = Hosts()
    hosts.died("h001", END_NS + 1)
    await hosts.bear("h001", END_NS + 1)
    hosts.add(crash())
    await turns()
    assert hosts.done == ["bear h001", "recall h001"], "its process waited for a life after the crash"
    again = asyncio.ensure_future(hosts.bear("h001", END_NS + 1))
    hosts.died("p0-t1-0", None)
    await again
    assert hosts.done[2:] == ["kill 1", "start 1", "bear h001"]


async def test_a_crash_that_lasts_longer_after_all_is_one_and_a_later_one_is_another() -> None:
    hosts = Hosts()
    hosts.add(crash())
    for node in NODES:
        hosts.died(node, END_NS)
    await turns()
    hosts.add(crash(END_NS + 40_000, END_NS - 1))
    hosts.table.forget(END_NS + 20_000)  # the first of them
    hosts.lifecycle.look()
    await turns()
    assert hosts.done == ["kill 1"]
    hosts.table.heal(f"crash-{END_NS - 1}", END_NS + 21_000, END_NS + 20_000)
    hosts.add(crash(END_NS + 90_000, END_NS + 35_000))
    await turns()
    assert hosts.done == ["kill 1"], "they live in between"
    for node in NODES:
        hosts.died(node, END_NS + 90_000)
    await turns()
    assert hosts.done == ["kill 1", "kill 1"]


async def test_a_crash_that_is_called_off_is_waited_for_no_longer() -> None:
    hosts = Hosts()
    hosts.add(crash())
    hosts.died("h001", END_NS)
    birth = asyncio.ensure_future(hosts.bear("h001", END_NS))
    await turns()
    assert not birth.done()
    hosts.table.heal(f"crash-{CRASH_NS}", 5_000, 0)
    hosts.lifecycle.look()
    await birth
    assert hosts.done == ["bear h001"]


async def test_a_share_that_does_not_start_is_told_and_tried_again() -> None:
    hosts = Hosts()
    hosts.add(crash(NEVER))
    for node in NODES:
        hosts.died(node, None)
    await turns()
    hosts.fails = True
    told = await asyncio.gather(*(hosts.bear(node, END_NS) for node in NODES), return_exceptions=True)
    assert list(map(str, told)) == ["host vm2 is on fire"] * 2
    hosts.fails = False
    await hosts.bear("h001", END_NS)
    assert hosts.done == ["kill 1", "start 1", "bear h001"]


async def test_other_hosts_have_nothing_to_wait_for_and_the_end_forgets_all() -> None:
    hosts = Hosts()
    hosts.add(crash())
    await hosts.bear("h000", END_NS)
    assert not hosts.lifecycle.waits("h000", END_NS)
    await hosts.lifecycle.close()
    for node in NODES:
        hosts.died(node, None)
    await turns()
    assert hosts.done == ["bear h000"]


async def test_no_share_is_killed_under_a_birth() -> None:
    hosts = Hosts()
    for node in NODES:
        hosts.died(node, END_NS)
    async with hosts.lifecycle.birth("h001", END_NS):
        # A crash before that, of which nobody knew when the birth began.
        hosts.add(crash(until_ns=END_NS - 1))
        await turns()
        assert hosts.done == []
    await turns()
    assert hosts.done == ["kill 1"]


async def test_a_share_that_somebody_else_has_started_is_not_started_again() -> None:
    hosts = Hosts()
    hosts.add(crash())
    for node in NODES:
        hosts.died(node, END_NS)
    await turns()
    hosts.state = "runs"
    await hosts.bear("h001", END_NS)
    assert hosts.done == ["kill 1", "bear h001"]
