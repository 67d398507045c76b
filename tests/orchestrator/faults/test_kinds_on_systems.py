"""Every kind of fault and every selector on every system: it works, or it is refused in a line with a reason.

One scenario per system has all kinds one after the other, by role. A kind that has nothing to act on in a system is
carried out all the same, and reports that no packet met it.
"""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from mrcfabric import bundles
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import read_system
from orchestrator.faults.host_map import HostMap
from orchestrator.faults.kinds import KINDS, OF_ROUTING
from orchestrator.measures.recording import Recording
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import resolve
from orchestrator.yamlfile.document import parse
from tests.support.corners import corners
from tests.support.runs import simulated

SYSTEMS: Final = bundles.names()
OF_SWITCHES: Final = {name: read_system(name).tables["switch"] for name in SYSTEMS}
LOSSLESS: Final = tuple(name for name in SYSTEMS if OF_SWITCHES[name].get("lossless") in ("pfc", "credits"))
NOT_LOSSLESS: Final = tuple(name for name in SYSTEMS if name not in LOSSLESS)
WITHOUT_PAUSES: Final = tuple(name for name in SYSTEMS if OF_SWITCHES[name].get("lossless") != "pfc")
SOME: Final = corners(SYSTEMS, "mrc", "roce", "irn", "ib")
"""One that sprays, one that pauses, one that does neither, and one with credits."""
WITHOUT_USIDS: Final = tuple(name for name in SYSTEMS if name != "mrc")
HEAD: Final = """
name: kinds
system: {system}
fabric:
  planes: 2
  t0_per_plane: 2
  t1_per_plane: 2
  nics_per_t0: 1
  rate_bps: 25G
  evs_per_qp: 16
  reserve_evs_per_qp: 8
  switch: {{pfc_threshold: static, pfc_xoff_bytes: 12000}}
  nic: {{rc_timeout: 3, rc_rto_low_ns: 20us, rc_rto_high_ns: 40us}}
seed: one
length: 2000rtt
settle: 0
workload: [{{name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, qps: 2, for: {work}rtt}}]
method:
"""
EVERY_RTTS: Final = 20
"""From one fault to the next: time enough to get on again."""
FOR_RTTS: Final = 8

WORDS: Final[Mapping[str, str]] = {
    "flap": "period: 4rtt, selector: {tier: t0-t1}",
    "loss": "toxicity: 20%, burst_packets: 2, selector: {tier: t0-t1}",
    "corruption": "toxicity: 20%, selector: {tier: t0-t1}",
    "duplication": "toxicity: 20%, selector: {tier: t0-t1}",
    "reordering": "toxicity: 20%, selector: {tier: t0-t1}",
    "link_retry": "toxicity: 20%, selector: {tier: t0-t1}",
    "gray": "toxicity: 50%, selector: {tier: t0-t1}",
    "rate_limit": "rate: 10G, selector: {tier: nic-t0}",
    "pfc_loss": "selector: {tier: nic-t0}",
    "slow_receiver": "rate: 1G, buffer_bytes: 16KiB, selector: {tier: nic}",
    "ecn_misconfigured": "min_bytes: 0, max_bytes: 1, selector: {tier: t0}",
    "switch_crash": "selector: {tier: t1}",
    "switch_reboot": "selector: {tier: t1}",
    "switch_freeze": "selector: {tier: t1}",
    "trimming_off": "selector: {tier: t0}",
    "plane_down": "selector: {plane: 1}",
    "nic_port_down": "selector: {nodes: h000, plane: 0}",
    "wrong_headroom": "headroom_bytes: 0, towards: t1, selector: {tier: t0}",
    "polarised_hash": "selector: {tier: t0}",
    "nic_crash": "selector: {nodes: h001}",
    "host_loss": "selector: {nodes: h001}",
    "pause_storm": "selector: {nodes: h001}",
    "control_cut": "selector: {tier: t1}",
    "t0_down": "selector: {plane: 0, of: h000}",
    "black_hole": "usid: p0-t1-0, selector: {tier: t0-t1}",
    "nth_packet": 'flow: "pair:h000>h001", packet: 40, selector: {tier: nic-t0, of: h000}, direction: up',
    "host_crash": "selector: {hosts: vm2}",
    "host_cut_off": "selector: {hosts: vm2}",
    "host_partition": "selector: {hosts: vm1~vm2}",
    "host_slow": "cpu: 50%, selector: {hosts: vm2}",
    "manager_down": "selector: {nodes: h000}",
    "manager_slow": "delay: 1ms, selector: {tier: nic}",
    "routing_hang": "selector: {tier: t0}",
    "slow_routing": "factor: 50, selector: {tier: t1}",
    "fib_stuck": "selector: {tier: t0}",
    "stuck_route": "nic: h001, selector: {tier: t1}",
    "route_leak": "nic: h000, selector: {nodes: p0-t0-1}",
    "withdrawal_storm": "period: 4rtt, selector: {tier: t1}",
    "session_flap": "period: 4rtt, selector: {plane: 0}",
    "graceful_shutdown": "selector: {tier: t1}",
}
"""What to say of a kind; of all others: links between T0s and T1s."""
FIRST: Final = ("nth_packet",)
"""Kinds that are about what leaves first."""
WITH_PAUSES: Final[Mapping[str, str]] = {"pfc_loss": "slow_receiver", "wrong_headroom": "pause_storm"}
"""Kinds that go wrong with pauses -> who asks for them meanwhile."""
LAST: Final = ("nic_crash", "host_loss")
"""Kinds after which the work cannot go on."""
LENGTHLESS: Final = ("host_loss",)

NOTHING_TO_ACT_ON: Final[Mapping[str, tuple[str, ...]]] = {
    "pause_storm": NOT_LOSSLESS,
    "slow_receiver": NOT_LOSSLESS,
    "pfc_loss": NOT_LOSSLESS,
    "trimming_off": tuple(name for name in SYSTEMS if not OF_SWITCHES[name].get("trim", True)),
    "ecn_misconfigured": tuple(name for name in SYSTEMS if not OF_SWITCHES[name].get("ecn", True)),
    "wrong_headroom": WITHOUT_PAUSES,
    "polarised_hash": ("mrc", "ib", "ib-adaptive"),
    **dict.fromkeys(OF_ROUTING, tuple(name for name in SYSTEMS if OF_SWITCHES[name].get("routing") != "bgp")),
}
"""Kind -> the systems in which no packet meets it."""
REFUSED: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "black_hole": (WITHOUT_USIDS, "carry no uSIDs, so that it would swallow nothing"),
}
"""Kind -> the systems that cannot have it, and the reason."""


def hosts(topology: Topology) -> HostMap:
    """T1s of plane 0 on a host of their own."""
    here = {node: "vm2" if node.startswith("p0-t1") else "vm1" for node in topology.node_names()}
    return HostMap.of(topology, here, {"vm1": ["rack=a"], "vm2": ["rack=b"]})


def plan_with(system: str, kinds: list[str], words: Mapping[str, str] = WORDS) -> Plan:
    """A timetable of these kinds, one after the other."""
    lines = []
    for turn, kind in enumerate(kinds):
        turn = kinds.index(WITH_PAUSES[kind]) if WITH_PAUSES.get(kind) in kinds else turn
        lasting = "" if kind in LENGTHLESS else f" for: {FOR_RTTS}rtt,"
        of = words.get(kind, "selector: {tier: t0-t1}")
        at = 0 if kind in FIRST else 10 + turn * EVERY_RTTS
        lines.append(f"  - {{name: {kind}, at: {at}rtt,{lasting} fault: {kind}, {of}}}")
    text = HEAD.format(system=system, work=20 + len(kinds) * EVERY_RTTS) + "\n".join(lines) + "\n"
    return resolve(parse("kinds.yaml", text), hosts=hosts)


def works(system: str, kind: str) -> bool:
    return system not in REFUSED.get(kind, ((), ""))[0]


async def carried_out(system: str, kinds: list[str]) -> Recording:
    recording = await simulated(plan_with(system, kinds))
    met = {one.fault.id: one.met_packets for one in recording.faults}
    assert sorted(met) == sorted(kinds)
    for kind in kinds:
        if kind in ("control_cut", "host_slow", "manager_down", "manager_slow"):
            assert met[kind] is None
        else:
            assert bool(met[kind]) != (system in NOTHING_TO_ACT_ON.get(kind, ())), (kind, met[kind])
    return recording


@pytest.mark.parametrize("system", SOME)
async def test_every_kind_meets_packets_or_says_that_it_met_none(system: str) -> None:
    recording = await carried_out(system, [kind for kind in KINDS if kind not in LAST and works(system, kind)])
    assert recording.ended == "complete"
    assert all(program.done for program in recording.programs)


@pytest.mark.parametrize("kind", LAST)
@pytest.mark.parametrize("system", SOME)
async def test_a_nic_that_dies_is_told_on_every_system(system: str, kind: str) -> None:
    await carried_out(system, [kind])


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_kind_without_meaning_in_a_system_is_refused_with_the_reason(system: str, kind: str) -> None:
    if works(system, kind):
        assert plan_with(system, [kind]).faults
        return
    with pytest.raises(ConfigError) as refusal:
        plan_with(system, [kind])
    assert REFUSED[kind][1] in str(refusal.value)
    assert str(refusal.value).startswith("kinds.yaml:")
    assert "\n" not in str(refusal.value)


SELECTORS: Final[Mapping[str, tuple[str, ...]]] = {
    "link_down": (
        "{}", '{links: "p*-t0-0~p*-t1-*"}', '{links: "p0-t0-0>p0-t1-1"}', "{tier: nic-t0}",
        "{tier: t0-t1, plane: [0, 1]}", "{of: p0-t1-1}", "{tier: nic-t0}, direction: up",
        "{tier: t0-t1}, direction: down, mode: one",
        "{tier: t0-t1}, mode: fixed, value: 3", "{tier: t0-t1}, mode: fixed-percent, value: 50",
        "{}, mode: random-max-percent, value: 70",
    ),
    "switch_reboot": (
        "{}", "{tier: t0}", "{tier: t1, plane: 1}", '{nodes: "p*-t1-0"}', "{of: h000}", "{tier: t1}, mode: one",
    ),
    "slow_receiver": ("{}", "{tier: nic}", '{nodes: "h00*"}', "{of: p0-t0-0}", "{tier: nic}, mode: one"),
    "pause_storm": ("{}", '{nic_ports: "h00*:1"}', "{nodes: h000}", "{plane: 1}", "{of: p1-t0-1}"),
    "plane_down": ("{}", "{plane: 1}", "{}, mode: one"),
    "control_cut": ("{}", "{tier: nic}", "{tier: t0, plane: 0}", "{of: h001}", '{nodes: ["h000", "p0-t1-*"]}'),
    "host_cut_off": ("{hosts: vm2}", '{hosts: "vm*"}', '{labels: "rack=b"}'),
    "host_partition": ("{hosts: vm1~vm2}", "{hosts: vm2~vm1}"),
}  # fmt: skip
"""Every key of a selector, on each kind of target."""


def chosen(system: str, kind: str) -> list[tuple[str, ...]]:
    """What each selector of a kind stands for, all in one scenario."""
    figures = "rate: 1G, " if kind == "slow_receiver" else ""
    lines = [
        f"  - {{name: n{number}, at: {10 + number * EVERY_RTTS}rtt, for: {FOR_RTTS}rtt, fault: {kind}, "
        f"{figures}selector: {selector}}}\n"
        for number, selector in enumerate(SELECTORS[kind])
    ]
    text = HEAD.format(system=system, work=20 + len(lines) * EVERY_RTTS) + "".join(lines)
    return [fault.targets for fault in resolve(parse("kinds.yaml", text), hosts=hosts).faults]


@pytest.mark.parametrize("kind", SELECTORS)
def test_a_selector_means_the_same_on_every_system(kind: str) -> None:
    of_systems = [chosen(system, kind) for system in SYSTEMS]
    for selector, *targets in zip(SELECTORS[kind], *of_systems, strict=True):
        assert len(set(targets)) == 1, selector
        assert targets[0], selector


@pytest.mark.parametrize("system", SYSTEMS)
def test_evs_are_of_mrc_alone(system: str) -> None:
    words = {"black_hole": "ev: 3, selector: {tier: t0-t1}"}
    if system == "mrc":
        assert plan_with(system, list(words), words).faults
        return
    with pytest.raises(ConfigError, match="only packets of MRC carry EVs") as refusal:
        plan_with(system, list(words), words)
    assert f"nic.transport {'uet' if system.startswith('uet') else 'rc'}" in str(refusal.value)


@pytest.mark.parametrize("seed", corners(["one", "two", "three"], "one"))
@pytest.mark.parametrize("system", SOME)
async def test_a_fault_on_the_way_of_a_flow_meets_it_on_every_system(system: str, seed: str) -> None:
    text = HEAD.format(system=system, work=60).replace("seed: one", f"seed: {seed}") + (
        "  - {name: cut, at: 10rtt, for: 4rtt, fault: link_down, direction: up, mode: one,\n"
        '     selector: {evs_of: "pair:h000>h001", of: p*-t0-0}}\n'
    )
    recording = await simulated(resolve(parse("kinds.yaml", text)))
    assert recording.faults[0].met_packets
    assert all(program.done for program in recording.programs)


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ({"deny": [{"nics": "h000", "plane": 0}]}, "only MRC NICs keep paths from being used"),
        ({"ev_profiles": [{"number": 1, "nics": "*", "count": 16, "reserve": 4}]}, "only MRC has EV profiles"),
    ],
)
def test_settings_of_evs_are_refused_where_there_are_none(tables: dict[str, Any], reason: str) -> None:
    text = HEAD.format(system="{}", work=20) + "  []\n" + "".join(f"{key}: {value}\n" for key, value in tables.items())
    assert resolve(parse("kinds.yaml", text.replace("{}", "mrc"))).orders
    with pytest.raises(ConfigError, match=rf"^kinds\.yaml:\d+: .*{reason}.*nic.transport rc"):
        resolve(parse("kinds.yaml", text.replace("{}", "irn")))


@pytest.mark.parametrize("packets", [1, 3])
@pytest.mark.parametrize("system", SOME)
async def test_packets_by_number_are_lost_once(system: str, packets: int) -> None:
    """A retransmission of RC looks like the packet that was lost, and passes all the same."""
    words = {"nth_packet": f"{WORDS['nth_packet']}, psns: {packets}"}
    recording = await simulated(plan_with(system, ["nth_packet"], words))
    assert recording.faults[0].met_packets == packets
    assert all(program.done for program in recording.programs)
