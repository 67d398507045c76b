"""From a file to a plan: what belongs to no single entry."""

import copy
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric import topology_file
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.resolve import BEGIN_RTTS, load, resolve
from orchestrator.sim.backend import SimBackend
from orchestrator.yamlfile.document import parse
from tests.support.runs import Ears
from tests.support.scenarios import SMALL, WHOLE, complaint, plan_of, small_plan

RUNNING = Topology(
    name="up", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4
)


def test_the_whole_language_becomes_a_plan() -> None:
    plan = plan_of(WHOLE)
    rtt = plan.topology.base_rtt_ns()
    assert (plan.name, plan.seed, plan.second_ns) == ("whole", "paper", 100_000)
    assert (plan.begin_ns, plan.length_ns) == (BEGIN_RTTS * rtt, 400 * rtt)
    assert (plan.settle_ns, plan.look_ns) == (10 * rtt, 2 * rtt)
    assert [program.name for program in plan.programs] == ["train", "pair"]
    assert [fault.start_ns for fault in plan.faults] == sorted(fault.start_ns for fault in plan.faults)
    assert {fault.id.partition("-")[0] for fault in plan.faults} == {"flaps", "drops", "ports", "creep", "storm"}
    assert [trigger.name for trigger in plan.triggers] == ["kill"]
    assert plan.triggers[0].times == 2
    assert plan.triggers[0].faults[0].start_ns == 0
    assert len(plan.expectations) == 6


def comparable(plan: object) -> list[object]:
    return [
        getattr(plan, name)
        for name in ("topology", "seed", "programs", "faults", "expectations", "begin_ns", "length_ns", "source")
    ]


def test_the_same_file_gives_the_same_plan_and_another_seed_another() -> None:
    assert comparable(plan_of(WHOLE)) == comparable(plan_of(WHOLE))
    assert plan_of(WHOLE).faults != plan_of(WHOLE, seed="other").faults
    assert plan_of(WHOLE, seed="other").seed == "other"


def test_what_a_plan_says_it_came_from_gives_the_plan_again() -> None:
    plan = plan_of(WHOLE)
    again = resolve(parse("again", yaml.safe_dump(plan.source)))
    assert comparable(again) == comparable(plan)
    assert json.loads(json.dumps(plan.source)) == plan.source


def test_a_seed_is_the_files_or_the_fabrics() -> None:
    bare = SMALL.replace("seed: paper\n", "")
    assert plan_of(bare).seed == "mrcfabric"
    assert plan_of(bare.replace("planes: 2", "planes: 2, seed: rain")).seed == "rain"
    assert plan_of(SMALL.replace("planes: 2", "planes: 2, seed: rain")).topology.seed == "paper"
    assert plan_of(SMALL.replace("paper", "7")).seed == "7"


def test_flags_and_a_fabric_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "fabric.yaml").write_text("planes: 2\nt1_per_plane: 2\nnics_per_t0: 2\nevs_per_qp: 16\n")
    path = tmp_path / "s.yaml"
    path.write_text(
        "name: a\nfabric: {file: fabric.yaml, evs_per_qp: 32}\nworkload: [{name: w, kind: p2p, ranks: 2}]\n"
    )
    plan = load(str(path), ["fabric.t1_per_plane=4", "length=7rtt"])
    assert (plan.topology.planes, plan.topology.t1_per_plane, plan.topology.evs_per_qp) == (2, 4, 32)
    assert plan.length_ns == 7 * plan.topology.base_rtt_ns()
    with pytest.raises(ConfigError, match=r"--set fabric.planes=x: planes: 'x' will not do"):
        load(str(path), ["fabric.planes=x"])
    (tmp_path / "fabric.yaml").write_text("planes: 2\nplains: 3\n")
    with pytest.raises(ConfigError, match=r"fabric.yaml:2: no setting is called plains"):
        load(str(path))


def test_a_running_fabric_comes_before_the_files() -> None:
    plan = plan_of(SMALL, topology=RUNNING, begin_ns=10**9, programs_before=3)
    assert plan.topology is RUNNING
    assert plan.begin_ns == 10**9
    assert plan.programs[0].number == 3
    assert plan.programs[0].begin_ns == 10**9
    assert plan.seed == "paper"
    with pytest.raises(ConfigError, match=r"some.yaml:2: planes is 4 here and 2 in fabric up"):
        plan_of(SMALL.replace("planes: 2", "planes: 4"), topology=RUNNING)


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (["  - {name: pair, kind: p2p}"], "workload[1].name: pair is the name of another workload"),
        (["method: [{name: a, fault: loss, for: 1rtt}, {name: a, fault: loss, for: 1rtt}]"], "method[1].name: a is"),
        (["method: [{name: faults, fault: loss, for: 1rtt}]"], "faults means all of them"),
        (
            [
                "method:",
                "  - {name: a, fault: loss, every: 3rtt, for: 1rtt, turns: anew}",
                "  - {name: a-2, fault: loss}",
            ],
            "a repetition of a would be called a-2",
        ),
        (["method: [{name: a, fault: loss}, {name: a-3-1, fault: loss}]"], "a repetition of a would be called a-3-1"),
        (["length: 1rtt"], "length stands here twice"),
        (["look: 0"], "look: no time at all"),
        (["metod: []"], "some.yaml:7: metod: no such key here (nearest is method)"),
        (["method: 3"], "method: 3 will not do (wanted: a list of tables"),
    ],
)
def test_what_no_entry_can_know(lines: list[str], what: str) -> None:
    assert what in complaint(lines)


def test_too_many_workloads() -> None:
    with pytest.raises(ConfigError, match="a fabric has room for 64"):
        plan_of(SMALL, programs_before=64)


def test_a_fabric_that_no_core_takes() -> None:
    assert "some.yaml:2: " in complaint([], SMALL.replace("planes: 2", "planes: 2, nic: {rto_nz: 3}"))
    assert "some.yaml:2: " in complaint([], SMALL.replace("planes: 2", "planes: 99"))
    assert "is no table" in complaint(
        [], SMALL.replace("fabric: {planes", "fabric: [planes").replace("qp: 4}", "qp: 4]")
    )


def test_a_scenario_without_workload_is_one() -> None:
    assert plan_of("name: nothing").programs == ()


VALUES = st.sampled_from(
    [None, 0, -1, 1 << 59, 1.5, "", "x", "20rtt", "5us", "1%", "all", [], {}, ["a"], {"a": 1}, True, "h000", "999999s"]
)


def places(data: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    rows = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in rows:
        found += places(value, (*path, key))
    return found


@pytest.mark.slow
@given(st.integers(0, 1 << 30), VALUES)
def test_no_wrong_value_gives_anything_but_a_complaint(number: int, value: object) -> None:
    data = copy.deepcopy(yaml.safe_load(WHOLE))
    ways = places(data)
    way = ways[number % len(ways)]
    here = data
    for step in way[:-1]:
        here = here[step]
    here[way[-1]] = value
    said = ""
    try:
        plan_of(yaml.safe_dump(data))
    except ConfigError as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.slow
@given(st.integers())
def test_no_damaged_file_gives_anything_but_a_complaint(seed: int) -> None:
    chance = random.Random(seed)
    raw = bytearray(WHOLE.encode())
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(raw))
        raw[at : at + chance.randrange(4)] = bytes(chance.choices(b" {}[]:,-&*!%'\"\n0aZ~\xff", k=chance.randrange(4)))
    said = ""
    try:
        plan_of(raw.decode(errors="replace"))
    except ConfigError as error:
        said = str(error)
    assert "\n" not in said


@pytest.mark.slow
def test_a_process_that_read_a_scenario_ends_well(tmp_path: Path) -> None:
    """Whatever order its memory is given back in."""
    path = tmp_path / "s.yaml"
    path.write_text(WHOLE)
    for seed in ("5", "7", "14", "20"):
        code = "import sys; from orchestrator.scenario.resolve import load; load(sys.argv[1])"
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        )
        assert done.returncode == 0


DENY = "deny:\n  - {nics: [h000, h001], plane: 0, path: 1}\n  - {plane: 1, to: h002}\n"


async def test_denied_paths_carry_nothing() -> None:
    plan = small_plan(*DENY.splitlines())
    assert [order.node for order in plan.orders] == ["h000", "h001", "h000", "h001", "h002", "h003"]
    backend = SimBackend(plan.topology)
    recording = await RunLoop(plan, backend, Recorder(plan, backend), Ears()).run()
    assert recording.programs[0].done
    packets = recording.looks[-1].nics["h000"].port_packets
    assert packets[0] > 0
    assert packets[1] == 0
    rows = [row for row in backend.nic("h000").ev_table(plan.programs[0].qpn(1)) if row["active"]]
    assert {(row["plane"], row["path"]) for row in rows if row["state"] == "GOOD"} == {(0, 0)}


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        ("{plane: 7}", "no plane 7"),
        ("{plane: 0, path: 9}", "no path 9"),
        ("{plane: 0, nics: x*}", "the name of no NIC"),
        ("{plane: 0, to: h999}", "h999"),
        ("{plane: 0, nics: h001, to: h001}", r"deny\[0\].to: h001 has no path towards itself"),
    ],
)
def test_what_cannot_be_denied_is_refused(entry: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        small_plan(f"deny: [{entry}]")


def test_a_topology_is_no_scenario(tmp_path: Path) -> None:
    """And whoever mixes them up is told which command takes which."""
    topology = tmp_path / "topology.yaml"
    topology.write_text("name: lab\nplanes: 4\nnic: {congestion: nscc}\n")
    with pytest.raises(ConfigError, match=r"is a topology, not a scenario \(`mrcfabric up` takes it"):
        load(str(topology))
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("name: work\ndescription: some\nworkload: []\n")
    with pytest.raises(ConfigError, match=r"description belongs to a scenario \(`mrcfabric run` takes scenarios"):
        topology_file.load(str(scenario))


async def test_qps_of_a_workload_have_the_evs_of_its_profile() -> None:
    profile = "ev_profiles: [{number: 3, mode: auto, count: 8, reserve: 4}]"
    plan = plan_of(SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], profile: 3") + profile + "\n")
    backend = SimBackend(plan.topology)
    recording = await RunLoop(plan, backend, Recorder(plan, backend), Ears()).run()
    assert recording.programs[0].done
    rows = backend.nic("h000").ev_table(plan.programs[0].qpn(1))
    assert (len(rows), sum(bool(row["active"]) for row in rows)) == (8, 4)


def test_a_profile_that_nobody_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="no EV profile 3"):
        plan_of(SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], profile: 3"))
