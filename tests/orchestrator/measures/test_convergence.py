"""Who knew what when: worked out from events, against the timers that the switches have."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_MS, NS_PER_S, NS_PER_US
from orchestrator.faults.fault import Fault, once
from orchestrator.live.event_lines import of_nic
from orchestrator.measures.convergence import KINDS, Convergence, between, detector, left_port, of_fault, text
from orchestrator.sim.fabric import SimulatedFabric
from switchd.core.settings_bgp import BgpKnobs

S, MS, US = NS_PER_S, NS_PER_MS, NS_PER_US
CUT_NS, BACK_NS = 2 * S, 20 * S
T0S, T1S = 3, 2


def lines_of(*faults: Fault, until: int, **switch: Any) -> list[dict[str, Any]]:
    """The event log of a fabric in virtual time."""
    topology = Topology(
        planes=1, t0_per_plane=T0S, t1_per_plane=T1S, nics_per_t0=1, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "cc": "none"},
        switch={"forwarding": "ecmp", "routing": "bgp", "trim": False, "trim_last_hop": False, "ecn": False, **switch},
    )  # fmt: skip
    peers = {name: [end.peer for end in topology.ports(name)] for name in topology.switch_names()}
    lines: list[dict[str, Any]] = []

    def note(node: str, events: list[Any]) -> None:
        told = [event.record() for event in events if node in peers]
        lines.extend(of_nic(node, 0.0, one, peers=peers[node]) for one in told if one["kind"] in KINDS)

    fabric = SimulatedFabric(topology, on_events=note)
    for fault in faults:
        fabric.inject(fault)
        lines.append({"at_ns": fault.start_ns, "node": "", "kind": "fault", "id": fault.id})
        lines.append({"at_ns": fault.end_ns, "node": "", "kind": "ended", "id": fault.id})
    fabric.run(until)
    return lines


def cut(**switch: Any) -> Convergence:
    fault = once("link_down", "p0-t0-0~p0-t1-1", at_ns=CUT_NS, until_ns=BACK_NS, fault_id="cut")
    return of_fault(lines_of(fault, until=BACK_NS - S, **switch), "cut")[0]


@pytest.mark.parametrize("carrier_ns", [1 * MS, 7 * MS])
def test_a_cut_is_known_by_carrier_at_its_ends_and_by_update_elsewhere(carrier_ns: int) -> None:
    knobs = BgpKnobs()
    found = cut(bgp_carrier_ns=carrier_ns)
    knew = {one.node: (one.by, one.peer) for one in found.switches}
    assert knew["p0-t0-0"] == ("carrier", "p0-t1-1")
    assert knew["p0-t1-1"] == ("carrier", "p0-t0-0")
    assert all(knew[f"p0-t0-{one}"] == ("update", "p0-t1-1") for one in range(1, T0S))
    ends = [one for one in found.switches if one.by == "carrier"]
    assert {one.knew_ns - CUT_NS for one in ends} == {carrier_ns}
    # Detection, a batch with the routes of the lost session, the link, a batch, and the writing.
    work_ns = 2 * (knobs.bgp_batch_ns + knobs.bgp_prefix_ns) + knobs.fib_write_ns
    assert found.took_ns is not None
    assert carrier_ns + work_ns < found.took_ns < carrier_ns + work_ns + 100 * US
    others = [one for one in found.switches if one.by == "update"]
    assert {one.knew_ns for one in others} == {found.switches[-1].knew_ns}
    assert found.last_ns == max(one.wrote_last_ns or 0 for one in found.switches)


@pytest.mark.parametrize(("switch", "by", "least_ns", "most_ns"), [
    ({}, "hold timer", 6 * S, 9 * S), ({"bfd": True}, "BFD", 600 * MS, 900 * MS),
])  # fmt: skip
def test_a_death_is_known_by_whoever_listens(switch: dict[str, Any], by: str, least_ns: int, most_ns: int) -> None:
    fault = once("switch_reboot", "p0-t1-0", at_ns=CUT_NS, until_ns=BACK_NS, fault_id="boot")
    begins, ends = of_fault(lines_of(fault, until=BACK_NS + 20 * S, **switch), "boot")
    writers = [one for one in begins.switches if one.writes]
    assert {one.node: one.by for one in writers} == {f"p0-t0-{one}": by for one in range(T0S)}
    assert all(least_ns <= one.knew_ns - CUT_NS <= most_ns for one in writers)
    # The other T1 is told that the T0s have lost a way, which was none for it.
    assert {one.node for one in begins.switches} - {one.node for one in writers} <= {"p0-t1-1"}
    assert begins.until_ns == BACK_NS
    writers = [one for one in ends.switches if one.writes]
    assert {one.node for one in writers} == {"p0-t1-0", *(f"p0-t0-{one}" for one in range(T0S))}
    assert {one.by for one in ends.switches} <= {"session", "BFD", "update"}
    assert ends.until_ns is None


def test_what_comes_after_another_edge_is_not_put_down_to_the_first() -> None:
    first = once("link_down", "p0-t0-0~p0-t1-1", at_ns=CUT_NS, until_ns=BACK_NS, fault_id="first")
    second = once("link_down", "p0-t0-1~p0-t1-0", at_ns=CUT_NS + 10 * MS, until_ns=BACK_NS, fault_id="second")
    lines = lines_of(first, second, until=BACK_NS - S)
    found = {name: of_fault(lines, name)[0] for name in ("first", "second")}
    assert found["first"].until_ns == second.start_ns
    assert found["first"].last_ns is not None
    assert found["first"].last_ns < second.start_ns < min(one.knew_ns for one in found["second"].switches)
    assert of_fault(lines, "third") == []


def test_for_people_it_is_a_line_and_a_row_for_each_switch() -> None:
    found = cut()
    head, columns, *rows = text(found).splitlines()
    assert head.startswith(f"cut begins at {CUT_NS / 1000:,.3f} us: converged after ")
    assert columns.split()[0] == "switch"
    assert [row.split()[0] for row in rows] == [one.node for one in found.switches]
    nothing = between([], "cut begins", 5, None)
    assert text(nothing) == "cut begins at 0.005 us: no switch has written its table"
    assert found.record()["took_ns"] == found.took_ns


def test_a_switch_leaves_a_port_by_repair_or_by_writing() -> None:
    fault = once("link_down", "p0-t0-0~p0-t1-1", at_ns=CUT_NS, until_ns=BACK_NS, fault_id="cut")
    lines = sorted(lines_of(fault, until=BACK_NS - S), key=lambda line: line["at_ns"])
    knew, left = left_port(lines, "p0-t0-0", 2, CUT_NS) or pytest.fail("it has left it")
    assert (detector(knew), left["kind"]) == ("carrier", "fib_repaired")
    knew, left = left_port(lines, "p0-t0-1", 2, CUT_NS) or pytest.fail("it has left it")
    assert (detector(knew), left["kind"]) == ("update", "fib_written")
    assert knew["at_ns"] < left["at_ns"]
    assert left_port(lines, "p0-t0-1", 1, CUT_NS) is None
    assert left_port(lines, "p0-t0-1", 2, BACK_NS) is None
