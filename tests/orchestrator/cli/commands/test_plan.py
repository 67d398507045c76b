"""`mrcfabric plan` as typed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app

EXAMPLES = Path(__file__).parents[4] / "examples" / "topologies"
INVENTORIES = EXAMPLES.parent / "inventories"


def run(*words: str) -> str:
    return CliRunner().invoke(build_app(), words, catch_exceptions=False).stdout


def test_plan_of_the_demo_without_a_file() -> None:
    assert run("plan").startswith("fabric demo  (settings ")


def test_plan_as_json_with_tables() -> None:
    words = ("plan", str(EXAMPLES / "small.yaml"), "--t1", "3", "--fib", "p1-t0-0", "--nic", "h000", "--json")
    plan = json.loads(run(*words, "--towards", "h003"))
    assert plan["sizes"]["t1"] == 6
    assert len(plan["fib"]["entries"]) == 5
    assert plan["nic"]["towards"] == "h003"


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.stem)
def test_every_example_has_a_plan(path: Path) -> None:
    assert json.loads(run("plan", str(path), "--json"))["name"] == path.stem


def test_a_setting_of_a_core_is_shown_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("planes: 2\nswitch:\n  ecn_min: 0.1\n  ecn_mox: 3\n")
    with pytest.raises(ConfigError, match=rf"^{file}:4: .*nearest is ecn_max"):
        run("plan", str(file))


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("plan", "--planes", "9"), "planes: 9 will not do"),
        (("plan", "--towards", "h001"), "add --nic"),
        (("plan", "--fib", "p0-t2-0"), "nearest is p0-t1-0"),
        (("plan", "--set", "nic.rto=5"), "nearest is rto_ns"),
        (("plan", "/no/such/file"), "No such file"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes(words: tuple[str, ...], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        run(*words)


def test_the_state_of_a_nic_is_planned_on_demand() -> None:
    plan = json.loads(run("plan", "--state", "--qps", "12", "--peers", "3", "--json"))
    assert (plan["state"]["qps"], plan["state"]["peers"]) == (12, 3)
    assert "state" not in json.loads(run("plan", "--json"))
    with pytest.raises(ConfigError, match="add --state"):
        run("plan", "--qps", "12")


@pytest.mark.parametrize("path", sorted(INVENTORIES.iterdir()), ids=lambda path: path.stem)
def test_every_example_of_an_inventory_carries_the_demonstration_well(path: Path) -> None:
    done = CliRunner().invoke(build_app(), ("plan", "--inventory", str(path)), catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"fabric demo on {done.stdout.count('fd00:') or 3} hosts of {path}")
    assert "warning" not in done.stdout
    plan = json.loads(run("plan", "--inventory", str(path), "--json"))
    assert sum(host["nics"] + host["t0"] + host["t1"] for host in plan["placement"]["hosts"]) == plan["sizes"]["nodes"]


def test_what_does_not_fit_is_told_below_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text("hosts:\n  vm1: {data: 10.0.0.1, mtu: 1500}\n  vm2: 10.0.0.2\n")
    done = CliRunner().invoke(build_app(), ("plan", "--inventory", str(file)), catch_exceptions=False)
    assert done.exit_code == 2
    assert done.stdout.startswith("fabric demo on 2 hosts of ")
    refusal = "mrcfabric: vm1: frames to other hosts take 4,280 bytes, its mtu is 1,500 (mtu_bytes: 1024 fits)\n"
    assert done.stderr == refusal
    assert "mtu_bytes" not in run("plan", "--inventory", str(file), "--set", "mtu_bytes=1024").partition("warning")[2]


def test_switches_share_processes_as_the_flag_says() -> None:
    words = ("plan", "--inventory", str(INVENTORIES / "three-vms.yaml"), "--json")
    packed = json.loads(run(*words, "--nodes-per-process", "6"))["placement"]["hosts"]
    assert [host["processes"] for host in packed] == [6, 6, 4]
    with pytest.raises(ConfigError, match="--nodes-per-process 0: will not do"):
        run(*words, "--nodes-per-process", "0")
    for alone in (("--nodes-per-process", "6"), ("--engine", "service")):
        with pytest.raises(ConfigError, match="add --inventory FILE"):
            run("plan", *alone)
    with pytest.raises(ConfigError, match="shows hosts, not tables"):
        run(*words, "--fib", "p0-t0-0")
    with pytest.raises(ConfigError, match="--engine slurm: shows hosts, not tables"):
        run("plan", "--engine", "slurm", "--fib", "p0-t0-0")
