"""Faults of a control plane: what traffic loses while a routing core is in trouble, and how each of them ends."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S
from nicd.core.events import RECV_WITH_IMM, Completion
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.faults.idle import why_idle
from orchestrator.faults.kinds import KINDS, OF_ROUTING
from orchestrator.sim.fabric import SimulatedFabric
from switchd.core.events_routing import FibWritten, SessionChange
from tests.support.scripts import permutation

S, MS = NS_PER_S, NS_PER_MS
T1S = 4
PERIOD_NS = 10 * MS
LATE_NS = 100_000
"""Far longer than a write takes, far shorter than what a lost one waits for."""
TIMEOUT_NS = 4_096 << 18


def shape(**switch: Any) -> Topology:
    return Topology(
        name="routed", planes=1, t0_per_plane=3, t1_per_plane=T1S, nics_per_t0=3, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "cc": "none", "rc_timeout": 18},
        switch={"forwarding": "ecmp", "routing": "bgp", "trim": False, "trim_last_hop": False, "ecn": False, **switch},
    )  # fmt: skip


class Run:
    """Each NIC writes a packet to one of the next rack in each period, from `begin_ns` to `end_ns`."""

    def __init__(self, *faults: Fault, begin_ns: int = S, end_ns: int = 4 * S, **switch: Any) -> None:
        self.completions: list[tuple[str, int, int]] = []
        self.told: list[tuple[str, Any]] = []
        self.fabric = SimulatedFabric(shape(**switch), on_events=self._note)
        self.posts = list(range(begin_ns, end_ns, PERIOD_NS))
        for step in permutation(self.fabric.topology, shift=3, size=4096, pieces=1, start_ns=begin_ns):
            self.fabric.command(step.node, step.op, step.args, step.at_ns)
            if step.op == "post_write":
                for number, at_ns in enumerate(self.posts[1:], 1):
                    self.fabric.command(step.node, step.op, {**step.args, "wr_id": number}, at_ns)
        for fault in faults:
            self.fabric.inject(fault)

    def _note(self, node: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, Completion):
                if event.opcode != RECV_WITH_IMM:
                    self.completions.append((node, event.wr_id, event.at_ns))
            else:
                self.told.append((node, event))

    def late(self) -> list[tuple[str, int]]:
        """(sender, instant of posting) of the writes that lost a packet, in their order."""
        done = {(node, number): at_ns for node, number, at_ns in self.completions}
        return [
            (node, posted_ns)
            for number, posted_ns in enumerate(self.posts)
            for node in self.fabric.topology.nic_names()
            if done.get((node, number), NEVER) - posted_ns > LATE_NS
        ]

    def written(self, node: str, after_ns: int = 0) -> list[FibWritten]:
        return [one for name, one in self.told if name == node and isinstance(one, FibWritten) and one.at_ns > after_ns]

    def lost(self, node: str) -> list[str]:
        """Why sessions of a switch ended, in their order."""
        return [one.why for name, one in self.told if name == node and isinstance(one, SessionChange) and not one.up]

    def sessions(self) -> int:
        names = self.fabric.topology.switch_names()
        return sum(self.fabric.counters(name)["routing"]["established"] for name in names)


ALL = 2 * 3 * T1S
"""Sessions, counted at both ends."""


def test_without_a_fault_nothing_is_late() -> None:
    run = Run(end_ns=2 * S)
    run.fabric.run(3 * S)
    assert len(run.completions) == 9 * len(run.posts)
    assert run.late() == []
    assert run.sessions() == ALL


# Maintenance.


@pytest.mark.parametrize("drained", [True, False])
def test_a_t1_that_was_drained_reboots_without_a_loss(drained: bool) -> None:
    down_ns, up_ns, detect_ns = 3 * S, 5 * S, 900 * MS
    faults = [once("switch_reboot", "p0-t1-1", at_ns=down_ns, until_ns=up_ns)]
    if drained:
        faults.append(once("graceful_shutdown", "p0-t1-1", at_ns=2 * S, until_ns=12 * S))
    run = Run(*faults, begin_ns=S, end_ns=14 * S, bfd=True)
    run.fabric.run(15 * S)
    assert len(run.completions) == 9 * len(run.posts)
    assert run.sessions() == ALL
    assert {event.ports for event in run.written("p0-t0-0")[-3:]} == {(3, 4, 5, 6)}, "it is a member again"
    late = run.late()
    if drained:
        assert late == []
        return
    # BFD: 900 ms after the last packet that came, up to 300 ms before.
    first, last = late[0][1], late[-1][1]
    assert first == down_ns
    assert detect_ns * 2 // 3 - PERIOD_NS <= last - first <= detect_ns + TIMEOUT_NS
    share = len(late) / (9 * ((last - first) // PERIOD_NS + 1))
    assert 0 < share < 1, "those that a hash sent there, and no others"


def test_a_drained_t1_that_dies_comes_back_drained() -> None:
    drain = once("graceful_shutdown", "p0-t1-1", at_ns=2 * S, until_ns=NEVER)
    run = Run(drain, once("switch_reboot", "p0-t1-1", at_ns=3 * S, until_ns=4 * S), end_ns=2 * S, bfd=True)
    run.fabric.run(12 * S)
    assert run.sessions() == ALL
    assert all(4 not in event.ports for event in run.written("p0-t0-0"))
    run.fabric.heal(drain.id, 13 * S)
    run.fabric.run(14 * S)
    assert {event.ports for event in run.written("p0-t0-0", 13 * S)} == {(3, 4, 5, 6)}


# A core in trouble.


def test_a_core_that_hangs_loses_nothing_until_something_breaks() -> None:
    hang = once("routing_hang", "p0-t0-0", at_ns=2 * S, until_ns=6 * S)
    run = Run(hang, end_ns=7 * S)
    run.fabric.run(8 * S)
    assert (run.late(), run.sessions()) == ([], ALL)
    cut = once("link_down", "p0-t0-1~p0-t1-0", at_ns=3 * S, until_ns=20 * S)
    run = Run(hang, cut, end_ns=7 * S)
    run.fabric.run(8 * S)
    # What T0 0 sends to T0 1 by T1 0 is lost until it wakes and reads what it has been told.
    ports = {event.at_ns: event.ports for event in run.written("p0-t0-0")}
    assert min(ports) > 6 * S
    assert set(ports.values()) == {(4, 5, 6)}
    late = {at_ns for node, at_ns in run.late() if node in ("h000", "h001", "h002")}
    assert not late or 3 * S <= min(late) <= max(late) <= max(ports) + TIMEOUT_NS


@pytest.mark.parametrize("factor", [10, 300])
def test_a_slow_core_converges_so_much_later(factor: int) -> None:
    took = {}
    for slow in (False, True):
        cut = once("link_down", "p0-t0-1~p0-t1-0", at_ns=3 * S, until_ns=20 * S)
        faults = [once("slow_routing", "p0-t1-0", at_ns=2 * S, until_ns=20 * S, factor=factor)] if slow else []
        run = Run(cut, *faults, end_ns=S + 1)
        run.fabric.run(6 * S)
        took[slow] = run.written("p0-t0-0")[-1].at_ns
    work_ns = MS + 2 * 10_000
    assert took[True] - took[False] == (factor - 1) * work_ns


def test_a_table_that_takes_no_writes_is_a_black_hole() -> None:
    stuck = once("fib_stuck", "p0-t0-0", at_ns=2 * S, until_ns=6 * S)
    run = Run(stuck, once("link_down", "p0-t0-1~p0-t1-0", at_ns=3 * S, until_ns=20 * S), end_ns=S + 1)
    run.fabric.run(5 * S)
    assert run.written("p0-t0-0") == []
    rows = run.fabric.counters("p0-t0-0")["routing"]
    assert rows["fib_waiting"] == 0, "it believes that all is written"
    run.fabric.run(7 * S)
    assert {event.ports for event in run.written("p0-t0-0")} == {(4, 5, 6)}
    assert min(event.at_ns for event in run.written("p0-t0-0")) > 6 * S


def test_a_stuck_route_is_used_and_told_of_until_it_is_let_go() -> None:
    # T1 0 goes on saying that it reaches the rack that it has lost: nobody writes anything, and packets end there.
    stuck = once("stuck_route", "p0-t1-0", at_ns=2 * S, until_ns=6 * S, nic="h003")
    cut = once("link_down", "p0-t0-1~p0-t1-0", at_ns=3 * S, until_ns=20 * S)
    run = Run(stuck, cut, end_ns=7 * S)
    run.fabric.run(9 * S)
    kept = [event for event in run.written("p0-t0-0") if event.at_ns < 6 * S]
    let_go = [event for event in run.written("p0-t0-0") if event.at_ns > 6 * S]
    prefix = {event.prefix for event in let_go}
    assert len(prefix) == 1
    assert prefix.isdisjoint(event.prefix for event in kept)
    assert {event.ports for event in let_go} == {(4, 5, 6)}
    drops = run.fabric.counters("p0-t1-0")["drops"]
    late = [at_ns for node, at_ns in run.late() if at_ns >= 3 * S]
    assert bool(late) == bool(drops["no_route"])


def test_a_leaked_prefix_draws_traffic_away() -> None:
    leak = once("route_leak", "p0-t0-2", at_ns=2 * S, until_ns=3 * S, nic="h000")
    run = Run(leak, end_ns=S + 1)
    run.fabric.run(int(2.5 * S))
    assert {event.ports for event in run.written("p0-t1-0")} == {(0, 2)}, "half of it goes the wrong way"
    run.fabric.run(4 * S)
    assert {event.ports for event in run.written("p0-t1-0", 3 * S)} == {(0,)}


def test_a_leak_outlives_the_switch() -> None:
    leak = once("route_leak", "p0-t0-2", at_ns=2 * S, until_ns=20 * S, nic="h000")
    run = Run(leak, once("switch_reboot", "p0-t0-2", at_ns=3 * S, until_ns=4 * S), end_ns=S + 1, bfd=True)
    run.fabric.run(15 * S)
    assert (0, 2) in {event.ports for event in run.written("p0-t1-0", 4 * S)}


def test_a_storm_of_withdrawals_has_everybody_write_each_time() -> None:
    windows = tuple(Window((2 + turn) * S, (2 + turn) * S + S // 2, {}) for turn in range(3))
    run = Run(Fault("storm", "withdrawal_storm", ("p0-t1-3",), windows), end_ns=6 * S)
    run.fabric.run(7 * S)
    per_turn = len({event.prefix for event in run.written("p0-t0-0")})
    assert [event.ports for event in run.written("p0-t0-0")] == ([(3, 4, 5)] * per_turn + [(3, 4, 5, 6)] * per_turn) * 3
    assert run.late() == [], "each time neighbours have written before anything is lost"
    assert run.lost("p0-t0-0") == []


def test_storms_damp_routes() -> None:
    windows = tuple(Window((2 + turn) * S, (2 + turn) * S + S // 2, {}) for turn in range(3))
    run = Run(Fault("storm", "withdrawal_storm", ("p0-t1-3",), windows), end_ns=S + 1, bgp_dampening=True)
    run.fabric.run(7 * S)
    counts = run.fabric.counters("p0-t0-0")["routing"]
    assert counts["damped"] == len({event.prefix for event in run.written("p0-t0-0")})
    assert counts["withdrawals_heard"] == 3 * counts["damped"]


# Sessions.


def test_a_session_that_is_shut_down_stays_so_and_comes_back() -> None:
    run = Run(once("session_down", "p0-t0-0~p0-t1-1", at_ns=2 * S, until_ns=5 * S), end_ns=7 * S)
    run.fabric.run(int(4.9 * S))
    assert run.sessions() == ALL - 2
    assert (run.lost("p0-t0-0"), run.lost("p0-t1-1")) == (["shutdown"], ["shutdown"])
    assert {event.ports for event in run.written("p0-t0-1")} == {(3, 5, 6)}
    run.fabric.run(8 * S)
    assert run.sessions() == ALL
    assert run.written("p0-t0-1")[-1].ports == (3, 4, 5, 6)


def test_a_session_that_flaps_is_reset_each_time() -> None:
    windows = tuple(Window((2 + 4 * turn) * S, (2 + 4 * turn) * S + 10 * MS, {}) for turn in range(3))
    run = Run(Fault("flaps", "session_flap", ("p0-t0-0~p0-t1-1",), windows), end_ns=S + 1)
    run.fabric.run(15 * S)
    assert run.lost("p0-t0-0") == ["shutdown"] * 3
    assert run.sessions() == ALL


def test_flaps_of_a_session_that_are_healed_reset_it_no_more() -> None:
    windows = tuple(Window(turn * S, turn * S + S // 2, {}) for turn in range(2, 9))
    run = Run(Fault("flaps", "session_flap", ("p0-t0-0~p0-t1-1",), windows), end_ns=S + 1)
    run.fabric.run(2 * S + S // 4)
    run.fabric.heal("flaps")
    run.fabric.run(15 * S)
    assert run.lost("p0-t0-0") == ["shutdown"]
    assert run.sessions() == ALL


def test_it_survives_its_switch_and_its_link() -> None:
    down = once("session_down", "p0-t0-0~p0-t1-1", at_ns=2 * S, until_ns=15 * S)
    reboot = once("switch_reboot", "p0-t1-1", at_ns=3 * S, until_ns=4 * S)
    flap = once("link_down", "p0-t0-0~p0-t1-1", at_ns=11 * S, until_ns=12 * S)
    run = Run(down, reboot, flap, end_ns=S + 1, bfd=True)
    run.fabric.run(int(14.9 * S))
    assert run.sessions() == ALL - 2
    run.fabric.run(30 * S)
    assert run.sessions() == ALL


# Everywhere else.


def test_several_faults_of_one_core_add_up_and_part_again() -> None:
    run = Run(
        once("slow_routing", "p0-t1-0", at_ns=2 * S, until_ns=6 * S, factor=5),
        once("slow_routing", "p0-t1-0", at_ns=3 * S, until_ns=4 * S, factor=50, fault_id="slower"),
        once("routing_hang", "p0-t1-0", at_ns=3 * S, until_ns=5 * S),
        end_ns=S + 1,
    )
    router = run.fabric.simulator.node("p0-t1-0").router  # type: ignore[attr-defined]
    seen = []
    for half in range(3, 14):
        run.fabric.run(half * S // 2 + 1)
        seen.append((router.processor.slower, router._state.hung))
    assert seen == [
        (1, False), (5, False), (5, False), (50, True), (50, True), (5, True), (5, True),
        (5, False), (5, False), (1, False), (1, False),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", sorted(OF_ROUTING))
def test_where_tables_stand_it_meets_nothing_and_says_so(kind: str) -> None:
    static = shape(routing="static")
    assert "switch.routing: static" in why_idle(static, kind)
    assert not why_idle(shape(), kind)
    given: dict[str, Any] = {"nic": "h000"} if "nic" in KINDS[kind].figures else {}
    target = "p0-t0-0~p0-t1-1" if kind.startswith("session") else "p0-t1-1"
    runs = []
    for faults in ([], [once(kind, target, at_ns=int(1.5 * S), until_ns=int(1.8 * S), **given)]):
        run = Run(*faults, end_ns=2 * S, routing="static")
        run.fabric.run(int(2.1 * S))
        runs.append(run)
    assert runs[0].completions == runs[1].completions
    assert runs[0].fabric.simulator.frames == runs[1].fabric.simulator.frames


@pytest.mark.parametrize(
    ("kind", "target", "figures", "complaint"),
    [
        ("session_down", "h000~p0-t0-0", {}, "has no session of its own"),
        ("session_down", "p0-t0-0>p0-t1-0", {}, "have no direction"),
        ("route_leak", "p0-t0-0", {}, "is missing"),
        ("stuck_route", "p0-t0-0", {"nic": "h009"}, "h009"),
        ("slow_routing", "p0-t0-0", {"factor": 0}, "1 to 1000000"),
    ],
)
def test_nonsense_is_refused(kind: str, target: str, figures: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        SimulatedFabric(shape()).inject(once(kind, target, at_ns=S, until_ns=2 * S, **figures))
    assert complaint in str(refusal.value)
    assert "\n" not in str(refusal.value)
