"""`mrcfabric validate` as typed."""

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from mrcfabric import bundles
from orchestrator.cli.main import build_app
from tests.support.inventories import WHOLE as INVENTORY
from tests.support.scenarios import WHOLE

EXAMPLES = Path(__file__).parents[4] / "examples"


def run(*words: str) -> Result:
    return CliRunner().invoke(build_app(), ("validate", *words), catch_exceptions=False)


@pytest.mark.parametrize("path", sorted((EXAMPLES / "topologies").iterdir()), ids=lambda path: path.stem)
def test_every_example_of_a_topology_is_valid(path: Path) -> None:
    assert run(str(path)).stdout.startswith(f"{path}: good: {path.stem}, ")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "whole.yaml"
    path.write_text(WHOLE)
    return path


def test_a_scenario_says_what_it_holds(whole: Path) -> None:
    done = run(str(whole))
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{whole}: good: scenario whole, 8 NICs, 2 workloads, ")
    assert done.stdout.endswith(" faults, 1 condition, 6 expectations\n")


def test_every_file_is_checked_and_every_mistake_told(whole: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\nlength: 5\n")
    worse = tmp_path / "worse.yaml"
    worse.write_text("planes: 2\nswitch:\n  ecn_min: 0.1\n  ecn_mox: 3\n")
    done = run(str(bad), str(whole), str(worse), str(tmp_path / "none.yaml"))
    assert done.exit_code == 2
    assert done.stdout.startswith(f"{whole}: good")
    first, second, third = done.stderr.splitlines()
    assert first.startswith(f"mrcfabric: {bad}:2: length: 5 will not do")
    assert second.startswith(f"mrcfabric: {worse}:4: ")
    assert "nearest is ecn_max" in second
    assert "none.yaml: cannot be read: No such file" in third


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("fabric: {planes: !eight 8}", ":2: planes: the tag !eight means nothing here"),
        ("fabric: {planes: !!python/name:os.system ''}", "means nothing here"),
        ("fabric: {rate_bps: 2001-09-09}", "'2001-09-09' will not do"),
        ("workload: 3", ":2: workload: 3 will not do (wanted: a list of tables (at most 64))"),
    ],
)
def test_a_value_of_a_strange_kind_is_a_mistake_in_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "strange.yaml"
    file.write_text(f"name: strange\n{text}\nlength: 10rtt\n")
    done = run(str(file))
    assert done.exit_code == 2
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


def test_flags_come_before_the_file(whole: Path) -> None:
    assert "32 NICs" in run(str(whole), "--set", "fabric.nics_per_t0=16").stdout
    assert run(str(whole), "--set", "method.flaps.period=none").exit_code == 2
    assert run(str(EXAMPLES / "topologies/small.yaml"), "--set", "planes=4").stdout.count("4 planes") == 1


def test_an_inventory_is_known_by_its_keys(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(INVENTORY)
    assert run(str(file)).stdout == (
        f"{file}: good: inventory, 3 hosts, 1 of them tell their cores, IPv4, nics cores, switches spread\n"
    )
    file.write_text("hosts:\n  vm1: {data: fd00::1, cores: 4}\n")
    assert run(str(file)).stdout.endswith("inventory, 1 host, 4 cores, IPv6, nics spread, switches by_plane\n")
    done = run(str(file), "--set", "planes=2")
    assert (done.exit_code, done.stderr) == (2, f"mrcfabric: --set planes=2: says nothing about the inventory {file}\n")
    file.write_text("hosts:\n  vm1: vm1.example\n")
    done = run(str(file))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"mrcfabric: {file}:2: hosts.vm1: vm1.example is no address")


CLUSTER = EXAMPLES / "cluster"
HOSTS = str(CLUSTER / "hosts.yaml")


@pytest.mark.parametrize("name", ["plane-lost", "rank-lost", "restart-and-partition"])
def test_hosts_of_a_scenario_are_checked_where_there_is_an_inventory(name: str) -> None:
    file = str(CLUSTER / f"{name}.yaml")
    assert run(file).stdout.endswith(", hosts not checked: that needs --inventory FILE\n")
    assert run(file, "--inventory", HOSTS).stdout.endswith(" expectations\n")


def test_a_host_that_there_is_not_stands_with_its_line() -> None:
    file = str(CLUSTER / "plane-lost.yaml")
    done = run(file, "--inventory", HOSTS, "--set", "method.lost.selector.hosts=vm9")
    assert done.exit_code == 2
    assert done.stderr.endswith("host vm9: carries no node of this fabric, or is none of its hosts "
                                "(there are vm1, vm2, vm3)\n")  # fmt: skip
    assert run(file, "--set", "method.lost.selector.hosts=vm9").exit_code == 0
    done = run(file, "--inventory", HOSTS, "--set", "method.lost.selector.hosts=vm1")
    assert "host vm1: is the one that leads (no host_crash while it does)" in done.stderr


def test_a_topology_is_placed_where_there_is_an_inventory() -> None:
    small = str(EXAMPLES / "topologies/small.yaml")
    assert run(small, "--inventory", HOSTS).exit_code == 0
    assert run(small, "--inventory", HOSTS, "--set", "nics_per_t0=1").exit_code == 2, "a rule means a NIC that is not"


@pytest.mark.parametrize("name", bundles.names())
def test_every_system_that_ships_is_valid(name: str) -> None:
    done = run(str(bundles.SHIPPED / f"{name}.yaml"))
    assert f": good: system {name}, " in done.stdout, done.output


def test_a_system_is_tried_on_the_demonstration(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text("about: For tests.\nsource: Nobody.\nnic: {transport: rc}\n")
    done = run(str(mine))
    assert done.exit_code == 2
    assert f"{mine}:3: nic.transport: plain packets of nic.transport rc have no uSIDs" in done.stderr
    mine.write_text("about: For tests.\nsource: Nobody.\nnic: {path_policy: single}\n")
    assert run(str(mine)).stdout == f"{mine}: good: system mine, 1 setting: For tests.\n"


def test_a_file_is_named_in_one_line_whatever_it_is_called(whole: Path) -> None:
    strange = whole.rename(whole.parent / "a\x1b[31m\nb.yaml")
    said = run(str(strange)).stdout
    assert said.startswith(f"{whole.parent}/a\\x1b[31m\\nb.yaml: good: scenario whole")
    assert said.count("\n") == 1
