"""The key `system` of a scenario: which system wins, what is kept for another run, and mistakes."""

from pathlib import Path

import pytest
import yaml

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import load, resolve
from orchestrator.yamlfile.document import parse

MINE = "about: For tests.\nsource: Nobody.\nnic: {path_policy: oblivious, rto_ns: 500us}\n"
REST = """
seed: paper
fabric: {planes: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 16, reserve_evs_per_qp: 8, nic: {qps_max: 7}}
workload: [{name: w, kind: p2p, ranks: [h000, h003], messages: 2, message_bytes: 64KiB}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "mine.yaml").write_text(MINE)
    return tmp_path


def plan(folder: Path, head: str, *flags: str, rest: str = REST) -> Plan:
    path = folder / "scenario.yaml"
    path.write_text(f"name: s\n{head}{rest}")
    return load(str(path), flags)


def test_its_settings_lie_beneath_those_of_the_fabric(folder: Path) -> None:
    topology = plan(folder, "system: systems/mine.yaml").topology
    assert topology.system == "mine"
    assert topology.nic == {"path_policy": "oblivious", "rto_ns": 500_000, "qps_max": 7}


def test_a_system_that_ships_is_found_by_name_and_kept(folder: Path) -> None:
    found = plan(folder, "system: mrc")
    assert found.topology.system == "mrc"
    assert found.source["system"] == "mrc"
    assert "system" not in found.source["fabric"]
    again = resolve(parse("again", yaml.safe_dump(found.source)))
    assert (again.topology, again.source) == (found.topology, found.source)


def test_of_one_that_does_not_ship_the_settings_are_kept(folder: Path) -> None:
    found = plan(folder, "system: systems/mine.yaml")
    assert "system" not in found.source
    again = resolve(parse("again", yaml.safe_dump(found.source)))
    assert again.topology.nic == found.topology.nic


def test_a_flag_wins_over_the_file_and_a_flag_of_the_fabric_over_both(folder: Path) -> None:
    mine = f"{folder}/systems/mine.yaml"
    in_fabric = REST.replace("fabric: {", "fabric: {system: systems/mine.yaml, ")
    assert plan(folder, "", rest=in_fabric).topology.system == "mine"
    assert plan(folder, "system: mrc", rest=in_fabric).topology.system == "mrc"
    assert plan(folder, "system: mrc", f"system={mine}").topology.system == "mine"
    assert plan(folder, "", "system=mrc", rest=in_fabric).topology.system == "mrc"
    assert plan(folder, "system: mrc", f"fabric.system={mine}").topology.system == "mine"


@pytest.mark.parametrize(
    ("head", "flags", "where"),
    [
        ("system: mcr", (), "scenario.yaml:2: no system is called mcr (nearest is mrc; there are"),
        ("", ("system=mcr",), "--system mcr: no system is called mcr (nearest is mrc; there are"),
        ("", ("fabric.system=mcr",), "--system mcr: no system is called mcr"),
        ("system: [mrc]", (), "scenario.yaml:2: system: is a list"),
        ("system: ./gone.yaml", (), "gone.yaml: cannot be read"),
    ],
)
def test_mistakes(folder: Path, head: str, flags: tuple[str, ...], where: str) -> None:
    with pytest.raises(ConfigError) as caught:
        plan(folder, head, *flags)
    assert where in str(caught.value)


def test_a_setting_that_no_core_takes_is_told_with_the_line_of_the_system(folder: Path) -> None:
    mine = folder / "systems" / "mine.yaml"
    mine.write_text(MINE.replace("oblivious", "sideways"))
    with pytest.raises(ConfigError, match=r"mine.yaml:3: nic.path_policy: 'sideways' is not known"):
        plan(folder, "system: systems/mine.yaml")


def test_a_running_fabric_must_be_of_that_system(folder: Path) -> None:
    here = plan(folder, "").topology
    path = str(folder / "scenario.yaml")
    assert load(path, ["system=mrc"], topology=here).topology is here
    named = with_system(Topology.from_dict({**here.to_dict(), "name": "up"}), str(folder / "systems" / "mine.yaml"))
    with pytest.raises(ConfigError, match="--system mrc: system is mrc here and mine in fabric up"):
        load(path, ["system=mrc"], topology=named)
