"""The links that a flow's EVs cross, foretold, beside those that its QP has when it runs."""

import pytest

from mrcfabric.errors import ConfigError
from nicd.programs.program import Program
from orchestrator.faults.fault import once
from orchestrator.scenario.paths_in_use import links_in_use
from orchestrator.sim.backend import SimBackend
from tests.support.corners import corners
from tests.support.runs import simulated
from tests.support.scenarios import SMALL, plan_of

LOSSY = """\
method:
  - {name: lossy, at: 10rtt, for: 10rtt, fault: FAULT, selector: {evs_of: "FLOW", of: p0-t0-0}, mode: one}
"""


FEW_EVS = SMALL.replace("t1_per_plane: 2", "t1_per_plane: 8").replace(
    "evs_per_qp: 16, reserve_evs_per_qp: 4", "evs_per_qp: 4, reserve_evs_per_qp: 2"
)
"""So few that one QP meets a part of the links."""


def text(flow: str, fault: str = "link_down") -> str:
    return SMALL + LOSSY.replace("FLOW", flow).replace("FAULT", fault)


@pytest.mark.parametrize(("seed", "qps"), [("a", 1), ("b", 1), ("c", 1), ("a", 3), ("b", 8)])
async def test_they_are_those_of_the_active_evs_of_its_qps(seed: str, qps: int) -> None:
    plan = plan_of(FEW_EVS.replace("ranks: [h000, h002]", f"ranks: [h000, h002], qps: {qps}"), seed=seed)
    backend = SimBackend(plan.topology)
    await backend.load(plan.programs)
    (program,) = plan.programs
    tables = [backend.nic("h000").ev_table(program.qpn(1, turn)) for turn in range(qps)]
    rows = [row for table in tables for row in table if row["active"]]
    expected = {f"p{row['plane']}-t0-{t0}~p{row['plane']}-t1-{row['path']}" for row in rows for t0 in (0, 1)}
    assert links_in_use(plan.topology, program, 0, 1) == expected
    assert len(expected) > 8 or qps == 1, "more than the 4 EVs of one QP have, at both ends"


RC = """\
name: several
fabric: {planes: 4, t0_per_plane: 2, t1_per_plane: 4, nics_per_t0: 2, evs_per_qp: 16, reserve_evs_per_qp: 4, nic: NIC,
         switch: SWITCH}
seed: paper
length: 400rtt
workload:
  - {name: first, kind: all_to_all, steps: 1, block_bytes: 1000}
  - {name: aside, kind: p2p, ranks: [h001, h003], messages: 1}
  - {name: pair, kind: p2p, ranks: [h002, h000], both_ways: true, qps: QPS, messages: 8, begin: 5rtt}
"""
"""The flow that is asked about is not the first of its NIC."""
PLAIN, PINNED = ("{transport: rc}", "{forwarding: ecmp}"), ("{transport: rc, rc_path: pinned}", "{}")
BY_HASH = ("{transport: rc, rc_port: hash}", "{forwarding: ecmp, ecmp_hash: crc}")


@pytest.mark.parametrize("seed", corners(["a", "b", "c"], "a"))
@pytest.mark.parametrize("qps", corners([1, 3, 8], 3))
@pytest.mark.parametrize("settings", [PLAIN, PINNED, BY_HASH], ids=["plain", "pinned", "by hash"])
async def test_of_rc_they_are_where_packets_of_its_qps_go(settings: tuple[str, str], qps: int, seed: str) -> None:
    nic, switch = settings
    plan = plan_of(RC.replace("NIC", nic).replace("SWITCH", switch).replace("QPS", str(qps)), seed=seed)
    *before, program = plan.programs
    links = links_in_use(plan.topology, program, 1, 0, before)
    assert 2 <= len(links) <= 2 * qps
    cut = [once("link_down", link, at_ns=100) for link in links]
    others = [link.name for link in plan.topology.links() if link.a.endswith("t0-0") and link.name not in links]
    for faults, passes in ((cut, False), ([once("link_down", link, at_ns=100) for link in others], True)):
        backend = SimBackend(plan.topology)
        await backend.load((*before, program))
        for fault in faults:
            backend.fabric.inject(fault)
        backend.fabric.run(plan.begin_ns + 3_000_000)
        placed = {row["rank"]: row["placed"] for row in backend.nic("h002").host.records() if row["name"] == "pair"}
        assert bool(placed[0].get("h000")) == passes


@pytest.mark.parametrize(("mode", "entropies"), [("rud", 4), ("rud", 2), ("rod", 1)])
@pytest.mark.parametrize("qps", corners([1, 3], 1))
async def test_of_uet_they_are_where_entropies_lead(mode: str, entropies: int, qps: int) -> None:
    nic = f"{{transport: uet, uet_path: oblivious, uet_mode: {mode}}}"
    text = RC.replace("NIC", nic).replace("SWITCH", "{forwarding: ecmp}").replace("QPS", str(qps))
    plan = plan_of(text.replace("evs_per_qp: 16", f"evs_per_qp: {4 * entropies}"), seed="a")
    *before, program = plan.programs
    links = links_in_use(plan.topology, program, 1, 0, before)
    others = [link.name for link in plan.topology.links() if "-t1-" in link.b and link.name not in links]
    assert 2 * 4 <= len(links) <= 2 * 4 * min(4, entropies * qps)
    assert others, "not all up-links are met"
    backend = SimBackend(plan.topology)
    await backend.load((program,))
    for link in others:
        backend.fabric.inject(once("link_down", link, at_ns=100))
    backend.fabric.run(plan.begin_ns + 3_000_000)
    counters = backend.fabric.counters("h000")
    assert counters["data_packets"] > 0
    # Answers take other ways, and some meet a link that is down; a late judgement of them is a time-out.
    assert not counters["retransmits"]["gap"], "no packet met a link that is down"


def test_beside_qps_of_others_the_port_of_one_of_rc_is_not_known() -> None:
    text = RC.replace("NIC", PLAIN[0]).replace("SWITCH", PLAIN[1]).replace("QPS", "1")
    method = LOSSY.replace("FLOW", "pair:h000>h002").replace("FAULT", "link_down").replace("p0-t0-0", "'p*-t0-0'")
    plan = plan_of(text + method)
    assert plan.faults
    with pytest.raises(ConfigError, match="beside QPs of a fabric that runs already the ports of RC are not known"):
        plan_of(text + method, topology=plan.topology, begin_ns=plan.begin_ns)
    processes = text.replace("kind: all_to_all, steps: 1, block_bytes: 1000", "kind: all_reduce_processes, steps: 1")
    with pytest.raises(ConfigError, match="beside QPs of ranks that are processes"):
        plan_of(processes + method)


def test_below_one_t0_there_are_none() -> None:
    topology = plan_of(SMALL).topology
    assert links_in_use(topology, Program("pair", "p2p", 0, (0, 1), 1, "seed"), 0, 1) == frozenset()


@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
def test_a_fault_finds_one_of_them_with_every_seed(seed: str) -> None:
    plan = plan_of(text("pair:h000>h002"), seed=seed)
    (target,) = plan.faults[0].targets
    assert target in links_in_use(plan.topology, plan.programs[0], 0, 1)
    assert "p0-t0-0" in target


@pytest.mark.parametrize(
    ("flow", "fault", "part"),
    [
        ("pair", "link_down", "is no flow"),
        ("other:h000>h002", "link_down", "is no flow"),
        ("pair:h000>h001", "link_down", "h001 has no rank in pair"),
        ("pair:h000>h002", "control_cut", "is not about links"),
    ],
)
def test_what_names_no_flow_is_refused(flow: str, fault: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as refused:
        plan_of(text(flow, fault))
    assert str(refused.value).count("method[0]") == 1


@pytest.mark.parametrize(
    ("flow", "what"),
    [
        ("pairs:h000>h001", "cross no T1: both NICs are below one T0"),
        ("pairs:h000>h002", r"h000 and h002 exchange nothing in pairs \(with h000: h001\)"),
        ("pair:h000>h002", "no path in use of pair:h000>h002 crosses what else is selected"),
    ],
)
@pytest.mark.parametrize("system", ["mrc", "roce", "uet"])
def test_a_flow_that_crosses_nothing_is_refused_where_it_stands(flow: str, what: str, system: str) -> None:
    file = text(flow).replace("method:", "  - {name: pairs, kind: p2p}\nmethod:").replace("of: p0-t0-0", "of: h000")
    with pytest.raises(ConfigError, match=rf"{what}$") as refused:
        plan_of(f"system: {system}\n{file}")
    assert refused.value.where.endswith(".yaml:10: method[0].selector.evs_of")
    assert str(refused.value).count("method[0]") == 1


@pytest.mark.parametrize(("packet", "more"), [(1, ""), (3, ""), (16, ", psns: 2"), (5, ", psns: 64")])
async def test_the_nth_packet_of_a_flow_is_lost_once(packet: int, more: str) -> None:
    lost = int(more.rpartition(" ")[2] or 1)
    plan = plan_of(
        SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], messages: 1")
        + f'method: [{{name: nth, fault: nth_packet, flow: "pair:h000>h002", packet: {packet}{more}, '
        + "selector: {tier: nic-t0, of: h000}, direction: up}]\n"
    )
    recording = await simulated(plan)
    assert recording.faults[0].met_packets == lost
    counts = recording.looks[-1].nics["h000"].counts
    assert (counts["packets_lost"], counts["drops.loss"]) == (lost, lost)
    assert recording.programs[0].done


@pytest.mark.parametrize("qp", [1, 2, 4])
async def test_the_nth_packet_of_any_qp_of_a_flow_is_lost(qp: int) -> None:
    plan = plan_of(
        SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], messages: 8, qps: 4")
        + f'method: [{{name: nth, fault: nth_packet, flow: "pair:h000>h002", qp: {qp}, packet: 3, psns: 2, '
        + "selector: {tier: nic-t0, of: h000}, direction: up}]\n"
    )
    figures = plan.faults[0].windows[0].figures
    assert figures["qpn"] == plan.programs[0].qpn(0, qp - 1)
    recording = await simulated(plan)
    assert recording.faults[0].met_packets == 2
    assert recording.looks[-1].nics["h000"].counts["packets_lost"] == 2


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ('flow: "pair:h000>h002", packet: 1, qp: 2', "no QP 2: pair has 1"),
        ('flow: "pair:h000>h002"', "names no packet"),
        ('flow: "pair:h000>h001", packet: 1', "h001 has no rank"),
        ('flow: "pair:h000>h002", packet: 1, qpn: 4', "or two"),
        ("qpn: 4", "names no packet"),
    ],
)
def test_a_packet_is_named_in_one_way(words: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        plan_of(SMALL + f"method: [{{name: nth, fault: nth_packet, {words}}}]\n")
