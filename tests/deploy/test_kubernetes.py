"""The manifests in deploy/kubernetes: fresh, built by the real kubectl, valid for clusters of several releases, and of
one mind with the placement that they come from."""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from mrcfabric.topology_file import read
from orchestrator.cli.commands import manifests
from orchestrator.hosts.build import placed, sites_of
from orchestrator.hosts.cluster_key import write_new
from orchestrator.hosts.placement.budget import budget
from orchestrator.hosts.placement.layout import Layout
from orchestrator.kubernetes.folder import SECRET
from orchestrator.kubernetes.pods import FILES_DIR, RUN_DIR
from tests.checks.source import ROOT
from tests.support.command_lines import understood

KUBECTL = Path(sysconfig.get_path("scripts")) / "kubectl"
EXAMPLE = ROOT / "deploy/kubernetes/example"
SCHEMA = ROOT / "tests/vectors/kubernetes/podmonitor.schema.json"
INVENTORY = ROOT / "examples/inventories/three-vms.yaml"
TOPOLOGY = ROOT / "examples/topologies/small.yaml"
SCENARIO = ROOT / "examples/two-bad-links.yaml"
RELEASES = ("1.29", "1.33", "1.37")
"""Of Kubernetes; the policies of failed jobs are as they are since the first."""
IMAGE = "registry.example/mrcfabric:0.1.0"


def made(folder: Path, **options: Any) -> Path:
    """Manifests for three machines, with a key made for them."""
    folder.mkdir()
    inventory = Path(shutil.copy(INVENTORY, folder / "hosts.yaml"))
    write_new(folder / "cluster.key")
    manifests.manifests(inventory=inventory, out=folder / "out", image=IMAGE, **options)
    return folder / "out"


def built(folder: Path) -> list[dict[str, Any]]:
    """What `kubectl apply -k` would send."""
    words = [KUBECTL, "kustomize", folder]
    found = subprocess.run(words, stdout=subprocess.PIPE, check=True, timeout=60, text=True).stdout
    return list(yaml.safe_load_all(found))


def pod_of(objects: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The pod that a workload starts."""
    (found,) = (one for one in objects if one["kind"] in ("Deployment", "Job") and one["metadata"]["name"] == name)
    template: dict[str, Any] = found["spec"]["template"]
    return template


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("standing") / "made", file=TOPOLOGY)


@pytest.fixture(scope="module")
def objects(standing: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """All of a standing fabric, its PodMonitor with it, as an overlay beside it would have them."""
    over = tmp_path_factory.mktemp("over")
    shutil.copytree(standing, over / "fabric")
    (over / "top").mkdir()
    (over / "top/kustomization.yaml").write_text("resources: [../fabric]\ncomponents: [../fabric/podmonitor]\n")
    return built(over / "top")


@pytest.fixture(scope="module")
def layout() -> Layout:
    placement = placed(read(TOPOLOGY, []).topology, INVENTORY)
    return Layout(placement.topology, "none", sites_of(placement), port_base=10_048)


def test_the_example_is_what_the_command_writes(standing: Path) -> None:
    """Make it anew: mrcfabric manifests examples/topologies/small.yaml --inventory COPY --out DIR --image IMAGE."""
    fresh = {path.relative_to(standing): path.read_bytes() for path in standing.rglob("*") if path.is_file()}
    fresh = {path: content for path, content in fresh.items() if path.parts[0] != SECRET}
    kept = {path.relative_to(EXAMPLE): path.read_bytes() for path in EXAMPLE.rglob("*") if path.is_file()}
    assert kept == fresh


@pytest.mark.parametrize("release", RELEASES)
def test_clusters_take_it(objects: list[dict[str, Any]], release: str) -> None:
    kinds = []
    for one in objects:
        kinds.append(one["kind"])
        assert one["metadata"]["namespace" if one["kind"] != "Namespace" else "name"] == "mrcfabric"
        if one["kind"] != "PodMonitor":
            assert kubernetes_validate.validate(one, release, strict=True) == release
    expected = ["ConfigMap", "Deployment", "Deployment", "Deployment", "Namespace", "PodMonitor", "Secret"]
    assert sorted(kinds) == [*expected, "ServiceAccount"]


def test_a_run_is_a_job_that_clusters_take(tmp_path: Path) -> None:
    found = built(made(tmp_path / "made", run=SCENARIO, settings=["seed=7"]))
    for one in found:
        for release in RELEASES:
            kubernetes_validate.validate(one, release, strict=True)
    (job,) = (one for one in found if one["kind"] == "Job")
    assert job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [1, 3]
    container = pod_of(found, "orchestrator")["spec"]["containers"][0]
    name, words = understood(container["args"])
    assert (name, str(words["file"]), words["engine"]) == ("run", f"{FILES_DIR}/scenario.yaml", "service")
    assert [*words["settings"]] == ["seed=7"]
    assert "ports" not in container


def test_every_host_has_the_pod_that_its_part_needs(objects: list[dict[str, Any]], layout: Layout) -> None:
    placement = placed(layout.topology, INVENTORY)
    memory = {one.host.name: one.memory_bytes for one in budget(placement).hosts}
    for site in layout.sites.sites[1:]:
        pod = pod_of(objects, f"share-{site.name}")["spec"]
        (container,) = pod["containers"]
        name, words = understood(container["args"])
        assert name == "share"
        assert words["listen"] == f"{site.control}:4790"
        assert container["ports"] == [{"name": "share", "containerPort": 4790}]
        assert container["readinessProbe"]["tcpSocket"] == {"host": site.control, "port": "share"}
        assert (str(words["key"]), str(words["run_dir"])) == (f"{FILES_DIR}/cluster.key", RUN_DIR)
        assert pod["nodeSelector"] == {"kubernetes.io/hostname": site.name}
        asked = container["resources"]["requests"]
        assert asked["cpu"] == "16"
        assert 0 <= int(asked["memory"].removesuffix("Mi")) * 2**20 - memory[site.name] < 2**20


def test_the_orchestrator_leads_what_the_plan_shows(objects: list[dict[str, Any]], layout: Layout) -> None:
    template = pod_of(objects, "orchestrator")
    (container,) = template["spec"]["containers"]
    name, words = understood(container["args"])
    assert (name, words["engine"], words["port_base"]) == ("up", "service", layout.port_base)
    sources = template["spec"]["volumes"][1]["projected"]["sources"]
    files = {item["path"] for source in sources for kind in source.values() for item in kind["items"]}
    named = {Path(words["file"]).name, Path(words["inventory"]).name}
    assert files == named | {"cluster.key"}
    (config,) = (one for one in objects if one["kind"] == "ConfigMap")
    assert config["data"] == {"hosts.yaml": INVENTORY.read_text(), "topology.yaml": TOPOLOGY.read_text()}
    assert container["ports"] == [{"name": "metrics", "containerPort": layout.http_port}]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == str(layout.http_port)
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "vm1"}


def test_no_pod_may_do_more_than_it_needs(objects: list[dict[str, Any]]) -> None:
    for name in ("orchestrator", "share-vm2", "share-vm3"):
        pod = pod_of(objects, name)["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["image"] == IMAGE
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        writable = {one["mountPath"] for one in container["volumeMounts"] if not one.get("readOnly")}
        assert writable == {container["workingDir"]} == {RUN_DIR}


def test_the_key_stands_in_the_secret_alone(standing: Path, objects: list[dict[str, Any]]) -> None:
    key = (standing / SECRET / "cluster.key").read_text().strip()
    assert key not in json.dumps([one for one in objects if one["kind"] != "Secret"])
    assert not [path for path in standing.rglob("*.yaml") if key in path.read_text()]
    assert (standing / SECRET / "cluster.key").stat().st_mode & 0o077 == 0
    assert (standing / SECRET).stat().st_mode & 0o077 == 0
    assert (standing / ".gitignore").read_text() == f"/{SECRET}/\n"


def test_the_operator_takes_the_monitor_of_every_target(objects: list[dict[str, Any]], layout: Layout) -> None:
    (monitor,) = (one for one in objects if one["kind"] == "PodMonitor")
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(monitor)
    own = pod_of(objects, "orchestrator")["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= own.items()
    paths = [one["path"] for one in monitor["spec"]["podMetricsEndpoints"]]
    assert paths == [*(f"/metrics/{node}" for node in layout.ports), "/metrics"]
