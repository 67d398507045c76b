"""`mrcfabric manifests` as typed: what it writes and says, and mistakes. What clusters make of it: tests/deploy."""

import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from orchestrator.hosts.cluster_key import write_new

EXAMPLES = Path(__file__).parents[4] / "examples"
SIZES = ("--planes", "2", "--t0", "2", "--t1", "2", "--nics-per-t0", "2")


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An inventory with its key, in the folder where we stand."""
    monkeypatch.chdir(tmp_path)
    write_new(Path("cluster.key"))
    return Path(shutil.copy(EXAMPLES / "inventories/three-vms.yaml", "hosts.yaml"))


def run(*words: str) -> str:
    words = ("manifests", "--inventory", "hosts.yaml", "--out", "k8s", *words)
    return CliRunner().invoke(build_app(), words, catch_exceptions=False).stdout


def test_flags_reach_the_pod_of_the_orchestrator(hosts: Path) -> None:
    said = run(
        *SIZES, "--set", "mtu_bytes=1024", "--nodes-per-process", "2", "--namespace", "lab", "--port-base", "12032"
    )
    assert said.splitlines()[:3] == [
        "wrote k8s: fabric demo in namespace lab",
        "  shares   2: vm2 vm3",
        "  led      by a deployment on vm1",
    ]
    pod = yaml.safe_load(Path("k8s/orchestrator.yaml").read_text())["spec"]["template"]["spec"]
    words = pod["containers"][0]["args"]
    assert words == [
        "up", "--inventory", "/etc/mrcfabric/hosts.yaml", "--engine", "service", "--nodes-per-process", "2",
        "--set", "planes=2", "--set", "t0_per_plane=2", "--set", "t1_per_plane=2", "--set", "nics_per_t0=2",
        "--set", "mtu_bytes=1024", "--port-base", "12032", "--metrics-address", "$(POD_IP)",
    ]  # fmt: skip
    assert Path("k8s/files/hosts.yaml").read_bytes() == hosts.read_bytes()


def test_a_scenario_is_a_job(hosts: Path) -> None:
    assert "by a job on vm1" in run("--run", str(EXAMPLES / "two-bad-links.yaml"))
    assert Path("k8s/files/scenario.yaml").read_bytes() == (EXAMPLES / "two-bad-links.yaml").read_bytes()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--run", "x.yaml", "--planes", "2"), "has a fabric of its own"),
        (("--run", "x.yaml", "--nodes-per-process", "2"), "goes without --run"),
        (("--set", "planez=2"), "nearest is planes"),
        (("--port-base", "31000"), "below the node ports"),
    ],
)
def test_mistakes(hosts: Path, words: tuple[str, ...], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        run(*words)
    assert not Path("k8s").exists()
