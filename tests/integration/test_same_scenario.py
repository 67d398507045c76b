"""One scenario with a fault of almost every kind, chaos and a condition: the same trace on both backends.

Everything that a scenario can ask for meets here: the language, the programs, the faults on daemons and in virtual
time, the time that stands still between looks. Every byte that any node sends and every event is in the digest.
"""

import re
from pathlib import Path

import pytest

from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import Recording
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import load
from tests.support.corners import corners
from tests.support.runs import conducted

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCENARIO = """
name: everything
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 3, nics_per_t0: 1, evs_per_qp: 24, reserve_evs_per_qp: 8}
seed: paper
length: 900rtt
workload:
  - {name: ring, kind: ring_all_reduce, ranks: all, steps: 40, bucket_bytes: 256KiB}
method:
  - {name: down, at: 10rtt, for: 10rtt, fault: link_down, selector: {tier: t0-t1}, mode: one, direction: up}
  - {name: flap, at: 15rtt, for: 20rtt, fault: flap, period: 5rtt, duty: 0.5, selector: {tier: t0-t1}, mode: one}
  - {name: loss, at: 20rtt, for: 20rtt, fault: loss, toxicity: 2%, burst_packets: 3, selector: {tier: t0-t1}, mode: one}
  - {name: gray, at: 25rtt, for: 20rtt, fault: gray, toxicity: 5%, selector: {tier: t0-t1}, mode: one}
  - {name: corrupt, at: 30rtt, for: 20rtt, fault: corruption, toxicity: 1%, selector: {tier: t0-t1}, mode: one}
  - {name: twice, at: 35rtt, for: 20rtt, fault: duplication, toxicity: 1%, selector: {tier: nic-t0}, mode: one}
  - {name: mix, at: 40rtt, for: 20rtt, fault: reordering, toxicity: 5%, delay: 3us, selector: {tier: t0-t1}, mode: one}
  - {name: late, at: 45rtt, for: 20rtt, fault: delay, delay: 1us, jitter: 2us, selector: {tier: t0-t1}, mode: one}
  - {name: narrow, at: 50rtt, for: 20rtt, fault: rate_limit, rate: 25G, selector: {tier: t0-t1}, mode: one}
  - {name: reboot, at: 60rtt, for: 20rtt, fault: switch_reboot, selector: {tier: t1}, mode: one}
  - {name: freeze, at: 65rtt, for: 20rtt, fault: switch_freeze, selector: {tier: t1}, mode: one}
  - {name: port, at: 70rtt, for: 20rtt, fault: nic_port_down, selector: {nic_ports: "h001:1"}}
  - {name: ecn, at: 80rtt, for: 20rtt, fault: ecn_misconfigured, off: true, selector: {tier: t0}}
  - {name: trim, at: 90rtt, for: 20rtt, fault: trimming_off, selector: {tier: t0}}
  - {name: deaf, at: 100rtt, for: 20rtt, fault: control_cut, selector: {nodes: [h001, p0-t1-0]}}
  - {name: t0, at: 110rtt, for: 10rtt, fault: t0_down, selector: {nodes: [p1-t0-0]}}
  - {name: plane, at: 120rtt, for: 10rtt, fault: plane_down, selector: {plane: 0}}
  - {name: lens, when: {measure: steps, of: ring, at_least: 5}, for: 10rtt, fault: optic, selector: {of: p0-t1-1}}
  - name: storm
    at: 130rtt
    for: 60rtt
    chaos:
      every: 10rtt
      at_once_max: 2
      faults:
        - {fault: link_down, for: 8rtt, selector: {tier: t0-t1}, mode: one}
        - {fault: switch_reboot, for: 12rtt, selector: {tier: t1}, mode: one}
expect:
  - {measure: completed, at_least: 1}
"""

MAPPED = """
name: mapped
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 3, nics_per_t0: 1, evs_per_qp: 12, reserve_evs_per_qp: 6}
seed: paper
length: 300rtt
mapper: {period: 20us}
workload:
  - {name: pair, kind: p2p, ranks: all, messages: 60, message_bytes: 128KiB}
method:
  - {name: lossy, at: 5rtt, for: 200rtt, fault: loss, toxicity: 10%, selector: {links: ["p0-t0-0~p0-t1-1"]}}
  - {name: reboot, at: 30rtt, for: 60rtt, fault: switch_reboot, selector: {nodes: [p1-t1-0]}}
  - {name: deaf, at: 40rtt, for: 20rtt, fault: control_cut, selector: {nodes: [h001]}}
expect:
  - {measure: completed, at_least: 1}
"""

ANY_SYSTEM = Path(__file__).parents[2] / "examples" / "any-system.yaml"


async def both(plan: Plan, folder: Path) -> Recording:
    """The recording on real UDP, which is that of virtual time."""
    expected = await conducted(plan, "sim", folder)
    seen = await conducted(plan, "udp", folder / "run")
    assert (seen.ended, seen.lost) == ("complete", "")
    assert (seen.fidelity["late_share"], seen.fidelity["late_commands"], seen.fidelity["host_drops"]) == (0, 0, 0)
    assert seen.looks == expected.looks
    assert seen.events == expected.events
    assert seen.links == expected.links
    assert seen.trace_digest == expected.trace_digest != ""
    assert all(program.done for program in seen.programs)
    return seen


@pytest.mark.timeout(240)
async def test_everything_at_once_is_the_same_on_both_backends(tmp_path: Path) -> None:
    file = tmp_path / "everything.yaml"
    file.write_text(SCENARIO)
    seen = await both(load(str(file)), tmp_path)
    assert len(seen.faults) > 18


IB_MANAGERS = Path(__file__).parents[2] / "examples" / "ib-managers.yaml"


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long)], ids=["short", "whole"])
@pytest.mark.timeout(400)
async def test_managers_of_infiniband_repair_and_hand_over_the_same_on_both_backends(
    long: bool, tmp_path: Path
) -> None:
    """Tables begin empty, so that nothing arrives before a manager has written them.

    The whole run has a T1 that reboots, a slow master, a dead one, and a standby that takes over.
    """
    text = IB_MANAGERS.read_text()
    if not long:
        # The first steps of the work, and the reboot of a T1.
        text = text.replace("steps: 110", "steps: 14").replace("length: 3000rtt", "length: 600rtt")
        text = re.sub(r"  - \{name: (slow|cut|dead|again),.*\n", "", text).replace(
            "at: 100rtt, for: 100rtt", "at: 60rtt, for: 60rtt"
        )
    file = tmp_path / "managers.yaml"
    file.write_text(text)
    plan = load(str(file))
    seen = await both(plan, tmp_path)
    assert verdict(plan.expectations, seen).outcome == "held"
    assert len(seen.faults) == (5 if long else 1)


EVERYWHERE = ["mrc", "roce", "ib", "ib-adaptive", "uet", "uet-rccc", "uet-reps"]


@pytest.mark.parametrize("system", corners(EVERYWHERE, "ib-adaptive", "uet-rccc"))
@pytest.mark.timeout(240)
async def test_one_file_is_the_same_on_both_backends_whatever_the_system(system: str, tmp_path: Path) -> None:
    plan = load(str(ANY_SYSTEM), [f"system={system}"])
    seen = await both(plan, tmp_path)
    assert verdict(plan.expectations, seen).outcome == "held"
    met = {one.fault.id: one.met_packets for one in seen.faults}
    assert all(met[name] for name in ("cut", "lossy", "reboot"))
    assert bool(met["slow"]) == (system in ("roce", "ib", "ib-adaptive")), "only lossless switches can be held up"


async def test_a_mapper_finds_and_denies_the_same_on_both_backends(tmp_path: Path) -> None:
    file = tmp_path / "mapped.yaml"
    file.write_text(MAPPED)
    seen = await both(load(str(file)), tmp_path)
    assert seen.links is not None
    assert {name for found in seen.links for name in found.avoided} == {"p0-t0-0~p0-t1-1", "p1-t1-0"}
