"""Every kind of fault shows what docs/FAULTS.md says of it: messages across a small fabric in virtual time."""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from nicd.core.events import PortChange
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.kinds import KINDS
from orchestrator.sim.fabric import SimulatedFabric
from tests.support.scripts import permutation

SHAPE = Topology(name="catalogue", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
                 reserve_evs_per_qp=8)  # fmt: skip
SIZE = 1 << 18
START_NS, END_NS = 4_000, 150_000
QUIET_NS = 1_500_000
T0, T1 = "p0-t0-0", "p0-t1-1"
UP, DOWN = f"{T0}>{T1}", f"{T1}>{T0}"


class Run:
    """Two NICs write to each other across all T1s while something is broken; everything that was seen."""

    def __init__(self, *faults: Fault, until: int = QUIET_NS, size: int = SIZE, shape: Topology = SHAPE) -> None:
        self.carrier: list[tuple[str, int, int, bool]] = []
        self.fabric = SimulatedFabric(shape, on_events=self._note)
        self.size = size
        for step in permutation(shape, shift=1, size=size, pieces=4):
            self.fabric.command(step.node, step.op, step.args, step.at_ns)
        for fault in faults:
            self.fabric.inject(fault)
        self.fabric.run(until)

    def _note(self, node: str, events: list[Any]) -> None:
        self.carrier += [(node, one.at_ns, one.port, one.up) for one in events if isinstance(one, PortChange)]

    def nic(self, name: str = "h000") -> dict[str, Any]:
        return self.fabric.counters(name)

    def port(self, node: str, port: int) -> Mapping[str, Any]:
        return [*self.fabric.counters(node)["ports"].values()][port]

    def sum(self, counter: str) -> int:
        """A counter of the living NICs, over its entries too."""
        total = 0
        for name in filter(self.fabric.simulator.alive, self.fabric.topology.nic_names()):
            value = self.nic(name)[counter]
            total += sum(value.values()) if isinstance(value, dict) else value
        return total

    def arrived(self) -> bool:
        """Every byte was placed, and no QP failed."""
        placed = [self.nic(name)["bytes_placed"] for name in self.fabric.topology.nic_names()]
        return placed == [self.size] * len(placed) and not self.sum("qp_errors")


def bad_evs(run: Run, nic: str = "h000") -> int:
    return sum(states["assumed_bad"] for states in run.nic(nic)["ev_states"].values())


def went_bad(run: Run) -> int:
    return sum(run.nic(name)["ev_replacements"] for name in SHAPE.nic_names())


def test_without_a_fault_nothing_is_lost() -> None:
    run = Run()
    assert run.arrived()
    assert (run.sum("retransmits"), run.sum("duplicates"), run.sum("ev_replacements")) == (0, 0, 0)


def test_link_down() -> None:
    run = Run(once("link_down", f"{T0}~{T1}", at_ns=START_NS, until_ns=END_NS))
    assert run.arrived()
    assert run.port(T0, 2)["drops"]["link_down"] > 0
    assert run.port(T1, 0)["drops"]["link_down"] > 0
    assert went_bad(run) > 0
    assert bad_evs(run) == 0, "probes brought them back"
    assert run.carrier == []


def test_one_direction_down() -> None:
    run = Run(
        once("link_down", UP, at_ns=START_NS, until_ns=END_NS), once("link_down", f"h001>{T0[:-1]}1", at_ns=9_000)
    )
    assert run.arrived()
    assert run.port(T0, 2)["drops"]["link_down"] > 0
    assert run.port(T1, 0)["drops"]["link_down"] == 0
    assert run.carrier == [], "light in one direction is carrier"


def test_flap() -> None:
    windows = tuple(Window(START_NS + 20_000 * turn, START_NS + 20_000 * turn + 10_000, {}) for turn in range(3))
    run = Run(Fault("flap", "flap", (f"h000~{T0}",), windows))
    assert run.arrived()
    edges = [(at_ns, up) for window in windows for at_ns, up in ((window.start_ns, False), (window.end_ns, True))]
    assert run.carrier == [("h000", at_ns, 0, up) for at_ns, up in edges]


@pytest.mark.parametrize(
    ("kind", "target"), [("flap", f"h000~{T0}"), ("nic_port_down", "h000:0"), ("t0_down", T0), ("plane_down", "0")]
)
@pytest.mark.parametrize("healed_ns", [START_NS, START_NS + 5_000, START_NS + 15_000])
def test_what_is_healed_between_its_windows_troubles_nobody_any_more(kind: str, target: str, healed_ns: int) -> None:
    windows = tuple(Window(START_NS + 20_000 * turn, START_NS + 20_000 * turn + 10_000, {}) for turn in range(4))
    run = Run(until=START_NS - 100)
    run.fabric.inject(Fault("again", kind, (target,), windows))
    run.fabric.run(healed_ns - 50)
    run.fabric.heal("again", healed_ns)
    run.fabric.run(QUIET_NS)
    assert run.arrived()
    assert all(at_ns < START_NS + 15_000 for _node, at_ns, _port, _up in run.carrier)
    seen = [up for node, _at_ns, port, up in run.carrier if (node, port) == ("h000", 0)]
    assert seen == ([] if healed_ns == START_NS else [False, True])


def test_optic() -> None:
    links = (f"{T0}~p0-t1-0", f"{T0}~p0-t1-1")
    run = Run(once("optic", *links, at_ns=START_NS, until_ns=END_NS))
    assert run.arrived()
    assert all(run.port(T0, port)["drops"]["link_down"] for port in (1, 2))


@pytest.mark.parametrize("burst", [1, 8])
def test_loss(burst: int) -> None:
    run = Run(once("loss", UP, at_ns=START_NS, until_ns=END_NS, share_ppm=300_000, burst_packets=burst))
    assert run.arrived()
    assert run.port(T0, 2)["drops"]["loss"] > 0
    assert run.sum("retransmits") > 0


def test_link_retry() -> None:
    run = Run(once("link_retry", UP, at_ns=START_NS, until_ns=END_NS, share_ppm=300_000))
    assert run.arrived()
    assert run.port(T0, 2)["touched"]["retried"] > 0
    assert run.port(T0, 2)["drops"]["loss"] == 0
    assert run.sum("retransmits") == 0


def test_gray() -> None:
    run = Run(once("gray", f"{T0}~{T1}", at_ns=START_NS, until_ns=END_NS), until=100_000)
    assert run.port(T0, 2)["drops"]["gray"] > 0
    assert run.port(T0, 2)["control_packets"] > 0
    assert run.sum("retransmits") > 0
    assert went_bad(run) > 0
    run.fabric.run(QUIET_NS)
    assert run.arrived()


def test_corruption() -> None:
    run = Run(once("corruption", UP, at_ns=START_NS, until_ns=END_NS, share_ppm=400_000))
    assert run.arrived()
    assert run.port(T0, 2)["touched"]["corrupted"] > 0
    assert run.nic("h001")["drops"]["icrc"] > 0


def test_duplication() -> None:
    run = Run(once("duplication", UP, at_ns=START_NS, until_ns=END_NS, share_ppm=1_000_000))
    assert run.arrived()
    assert run.nic("h001")["duplicates"] > 0
    assert run.sum("packets_lost") == 0


def test_reordering() -> None:
    run = Run(once("reordering", UP, at_ns=START_NS, until_ns=END_NS, share_ppm=200_000, delay_ns=2_000))
    assert run.arrived()
    assert run.port(T0, 2)["touched"]["reordered"] > 0
    assert run.sum("qp_errors") == 0


def test_delay() -> None:
    calm = Run()
    run = Run(once("delay", f"{T0}~p0-t1-0", at_ns=START_NS, until_ns=END_NS, delay_ns=5_000))
    assert run.arrived()
    assert run.nic()["rtt_max_ns"] >= calm.nic()["rtt_max_ns"] + 3_000
    jittery = Run(once("delay", f"{T0}~{T1}", at_ns=START_NS, until_ns=END_NS, jitter_ns=5_000))
    assert jittery.arrived()
    assert jittery.port(T0, 2)["touched"]["delayed"] > 0


def test_rate_limit() -> None:
    calm = Run()
    limited = once("rate_limit", f"{T0}~{T1}", at_ns=START_NS, until_ns=END_NS, rate_bps=5_000_000_000)
    run = Run(limited)
    assert run.arrived()
    assert run.port(T0, 2)["data_bytes_peak"] > calm.port(T0, 2)["data_bytes_peak"]
    assert run.nic()["rtt_max_ns"] > calm.nic()["rtt_max_ns"]


def test_black_hole() -> None:
    run = Run(once("black_hole", f"h000>{T0}", at_ns=START_NS, until_ns=END_NS, usid=T1))
    assert run.arrived()
    assert run.port("h000", 0)["drops"]["black_hole"] > 0
    assert run.port("h000", 1)["drops"]["black_hole"] == 0
    assert run.sum("retransmits") > 0


def test_black_hole_of_one_ev() -> None:
    bare = SimulatedFabric(SHAPE)
    for step in permutation(SHAPE, shift=1, size=SIZE, pieces=4):
        bare.command(step.node, step.op, step.args, step.at_ns)
    bare.run(2_000)
    core: Any = bare.simulator.node("h000")
    row = next(row for row in core.ev_table(100) if row["active"] and row["plane"] == 0)
    run = Run(once("black_hole", f"h000>{T0}", at_ns=START_NS, ev=int(row["ev"])), until=120_000)
    assert run.port("h000", 0)["drops"]["black_hole"] > 0
    states = {int(one["ev"]): one["state"] for one in run.fabric.simulator.node("h000").ev_table(100)}  # type: ignore[attr-defined]
    assert [ev for ev, state in states.items() if state == "ASSUMED_BAD"] == [int(row["ev"])]


@pytest.mark.parametrize("kind", ["switch_crash", "switch_reboot"])
def test_switch_crash_and_reboot(kind: str) -> None:
    run = Run(once(kind, T1, at_ns=START_NS, until_ns=END_NS), until=END_NS - 1)
    assert not run.fabric.simulator.alive(T1)
    assert run.sum("retransmits") > 0
    run.fabric.run(QUIET_NS)
    assert run.arrived()
    assert run.fabric.counters(T1)["received"] > 0, "it forwards again: probes found it"
    assert bad_evs(run) == 0


def test_a_crash_without_an_end_ends_when_it_is_healed() -> None:
    run = Run(once("switch_crash", T1, at_ns=START_NS, fault_id="dead"), until=END_NS)
    rest = run.fabric.heal("dead", END_NS + 10)
    assert rest is not None
    run.fabric.run(rest.end_ns - 1)
    assert not run.fabric.simulator.alive(T1)
    run.fabric.run(rest.end_ns)
    assert run.fabric.simulator.alive(T1)
    assert run.fabric.faults() == []


def test_switch_freeze() -> None:
    run = Run(once("switch_freeze", T1, at_ns=START_NS, until_ns=END_NS))
    assert run.arrived()
    assert run.fabric.counters(T1)["drops"]["frozen"] > 0
    assert run.fabric.counters(T1)["forwarding"] == 1
    assert run.sum("retransmits") > 0
    assert run.carrier == []


def test_t0_down() -> None:
    run = Run(once("t0_down", T0, at_ns=START_NS, until_ns=END_NS))
    assert run.arrived()
    hop_ns = SHAPE.link_delay_ns
    assert run.carrier == [("h000", START_NS + hop_ns, 0, False), ("h000", END_NS + hop_ns, 0, True)]


def test_plane_down() -> None:
    run = Run(once("plane_down", "0", at_ns=START_NS, until_ns=END_NS))
    assert run.arrived()
    assert sorted(run.carrier) == [
        (nic, at_ns, 0, up) for nic in SHAPE.nic_names() for at_ns, up in ((START_NS, False), (END_NS, True))
    ]


def test_nic_port_down() -> None:
    run = Run(once("nic_port_down", "h001:1", at_ns=START_NS, until_ns=END_NS))
    assert run.arrived()
    assert run.carrier == [("h001", START_NS, 1, False), ("h001", END_NS, 1, True)]
    assert run.nic("h001")["port_updates_sent"] > 0
    assert run.nic("h000")["port_updates_received"] > 0


@pytest.mark.parametrize(("kind", "until_ns"), [("nic_crash", END_NS), ("host_loss", NEVER)])
def test_nic_crash_and_host_loss(kind: str, until_ns: int) -> None:
    run = Run(once(kind, "h001", at_ns=START_NS, until_ns=until_ns), until=END_NS + 10)
    assert run.fabric.simulator.alive("h001") == (until_ns == END_NS)
    if run.fabric.simulator.alive("h001"):
        assert run.nic("h001")["qps"]["rts"] == 0, "it knows nothing"
    assert run.nic("h000")["messages_completed"] < 4


INCAST = Topology(name="incast", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
                  reserve_evs_per_qp=8)  # fmt: skip


def squeezed(*faults: Fault) -> Run:
    """Four NICs at once over up-links of which one is slow: a queue."""
    slow = once("rate_limit", "p0-t0-0>p0-t1-0", at_ns=1_000, rate_bps=2_000_000_000)
    return Run(slow, *faults, shape=INCAST, until=70_000)


def test_ecn_misconfigured() -> None:
    marks = [
        sum(port["marks"] for port in squeezed(*faults).fabric.counters(T0)["ports"].values())
        for faults in (
            (),
            (once("ecn_misconfigured", T0, at_ns=1_000, off=True),),
            (once("ecn_misconfigured", T0, at_ns=1_000, min_bytes=0, max_bytes=0),),
        )
    ]
    assert marks[1] == 0
    assert marks[2] > marks[0]


def test_trimming_off() -> None:
    run = Run(
        once("trimming_off", T0, at_ns=1_000, until_ns=2_000),
        once("trimming_off", "p1-t0-0", at_ns=1_000),
        until=5_000,
    )
    trims = {node: [egress.trim for egress in run.fabric.simulator.node(node).egress] for node in (T0, "p1-t0-0")}  # type: ignore[attr-defined]
    assert any(trims[T0]), "as configured again"
    assert not any(trims["p1-t0-0"])


def test_control_cut() -> None:
    run = Run(once("control_cut", "h000", at_ns=START_NS, until_ns=END_NS), until=START_NS)
    with pytest.raises(RefusedError, match="h000 does not answer: its control channel is cut"):
        run.fabric.command("h000", "deny_paths", {"plane": 0})
    assert not run.fabric.hears("h000")
    run.fabric.inject(once("loss", f"h000>{T0}", at_ns=START_NS + 1, until_ns=END_NS, share_ppm=500_000))
    run.fabric.run(END_NS)
    assert run.port("h000", 0)["drops"]["loss"] > 0, "faults are no part of the network that is cut"
    run.fabric.command("h000", "deny_paths", {"plane": 0})
    run.fabric.run(QUIET_NS)
    assert run.arrived()


HOSTS = HostMap({"vm1": ("h000", "h001", "p0-t0-0", "p0-t0-1", "p1-t0-0", "p1-t0-1"), "vm2": (T1, "p1-t1-1"),
                     "vm3": ("p0-t1-0", "p1-t1-0")}, "vm1")  # fmt: skip
"""Each T1 of a plane on a host of its own."""


def on_hosts(kind: str, *hosts: str) -> Fault:
    return HOSTS.settled(SHAPE, once(kind, *hosts, at_ns=START_NS, until_ns=END_NS))


def test_host_crash() -> None:
    run = Run(on_hosts("host_crash", "vm2"), until=START_NS + 1)
    assert not any(map(run.fabric.simulator.alive, HOSTS.nodes["vm2"]))
    assert all(map(run.fabric.simulator.alive, HOSTS.nodes["vm3"]))
    run.fabric.run(QUIET_NS)
    assert run.arrived()
    assert run.sum("retransmits") > 0
    assert all(map(run.fabric.simulator.alive, HOSTS.nodes["vm2"])), "healed, it starts anew"
    assert run.carrier == []


@pytest.mark.parametrize(("kind", "hosts"), [("host_cut_off", "vm2"), ("host_partition", "vm1~vm2")])
def test_host_cut_off_and_host_partition(kind: str, hosts: str) -> None:
    run = Run(on_hosts(kind, hosts))
    assert run.arrived()
    assert run.port(T0, SHAPE.ports(T0)[-1].port)["drops"]["link_down"] > 0, "the link to T1 of vm2"
    assert run.port(T0, SHAPE.ports(T0)[-2].port)["drops"]["link_down"] == 0, "the link to T1 of vm3"
    assert run.carrier == []


def test_all_hosts_cut_off_is_nobody_reaching_anybody() -> None:
    run = Run(on_hosts("host_cut_off", "vm2", "vm3"), until=END_NS)
    assert not run.arrived()
    run.fabric.run(QUIET_NS)
    assert run.arrived()


def test_host_slow() -> None:
    slow, bare = Run(on_hosts("host_slow", "vm2")), Run()
    assert slow.arrived()
    assert slow.fabric.simulator.frames == bare.fabric.simulator.frames, "virtual time knows no pace"
    assert [slow.fabric.counters(node) for node in HOSTS.nodes["vm2"]] == [
        bare.fabric.counters(node) for node in HOSTS.nodes["vm2"]
    ]


def test_nth_packet() -> None:
    own = [step for step in permutation(SHAPE, shift=1, size=SIZE, pieces=4) if step.node == "h000"]
    sending = next(step.args["qpn"] for step in own if step.op == "post_write")
    (args,) = [step.args for step in own if step.op == "connect_qp" and step.args["qpn"] == sending]
    third = {"qpn": args["peer_qpn"], "psn": args["psn_send"] + 2 & 0xFFFFFF}
    run = Run(once("nth_packet", "h000~p0-t0-0", "h000~p1-t0-0", at_ns=1, until_ns=END_NS, **third))
    assert run.arrived()
    assert run.sum("packets_lost") == 1
    assert run.sum("retransmits") == 1


def test_every_kind_has_a_test_here() -> None:
    here = Path(__file__)
    others = (
        "test_kinds_of_pauses.py", "test_headroom.py", "test_kinds_of_hashes.py", "test_kinds_of_managers.py",
        "test_kinds_of_routing.py",
    )  # fmt: skip
    source = ast.parse(here.read_text() + "".join(here.with_name(name).read_text() for name in others))
    named = {
        node.value
        for function in source.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)  # its decorators included
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(KINDS) <= named
