"""The folder of manifests: the same bytes each time, nobody else's files touched, keys for their owner alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mrcfabric.errors import ConfigError
from orchestrator.hosts.cluster_key import write_new
from orchestrator.hosts.placement.inventory import Service
from orchestrator.kubernetes import folder
from orchestrator.kubernetes.workloads import Leading, Workloads
from tests.orchestrator.kubernetes.test_workloads import KEPT, three, workloads

FILES = {"hosts.yaml": b"hosts: {}\n", "topology.yaml": b"planes: 2\n"}


def with_keys(where: Path, does: Leading = KEPT) -> Workloads:
    """Workloads whose key lies in a folder."""
    hosts = [replace(host, service=Service(key=str(where / "cluster.key"))) for host in three()]
    found = workloads([*hosts], does=does, path=str(where / "hosts.yaml"))
    if not (where / "cluster.key").exists():
        write_new(where / "cluster.key")
    return found


def write(where: Path, does: Leading = KEPT, files: dict[str, bytes] = FILES) -> dict[str, bytes]:
    """Write the folder `out` and return what is in it."""
    found = with_keys(where, does)
    folder.write(where / "out", folder.files_of(found, files, "mrcfabric:1", "lab"), found)
    return {
        path.relative_to(where / "out").as_posix(): path.read_bytes()
        for path in (where / "out").rglob("*")
        if path.is_file()
    }


def test_the_same_gives_the_same_and_replaces_itself(tmp_path: Path) -> None:
    first = write(tmp_path)
    assert write(tmp_path) == first
    assert (tmp_path / "out/secret/cluster.key").read_bytes() == (tmp_path / "cluster.key").read_bytes()
    top = yaml.safe_load(first["kustomization.yaml"])
    assert top["images"] == [{"name": "mrcfabric", "newName": "mrcfabric", "newTag": "1"}]
    assert top["namespace"] == "lab"
    names = {*top["resources"], *top["configMapGenerator"][0]["files"], "secret/cluster.key"}
    rest = {"kustomization.yaml", ".gitignore", "podmonitor/kustomization.yaml", "podmonitor/podmonitor.yaml"}
    assert first.keys() == names | rest


def test_what_is_no_longer_needed_is_removed(tmp_path: Path) -> None:
    write(tmp_path)
    again = write(tmp_path, Leading("run", "scenario.yaml", ()), {"hosts.yaml": b"", "scenario.yaml": b""})
    assert not {name for name in again if name.startswith(("podmonitor/", "files/topology"))}
    assert "files/scenario.yaml" in again


def test_keys_are_for_their_owner_and_none_stays_that_is_no_longer_used(tmp_path: Path) -> None:
    write(tmp_path)
    key = tmp_path / "out/secret/cluster.key"
    key.chmod(0o644)
    key.with_name("former.key").write_text("what opened the services")
    write(tmp_path)
    assert [path.name for path in key.parent.iterdir()] == ["cluster.key"]
    assert key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("other", ["notes.txt", "podmonitor/rules.yaml", ".git/config"])
def test_other_files_are_left_alone(tmp_path: Path, other: str) -> None:
    write(tmp_path)
    (tmp_path / "out" / other).parent.mkdir(exist_ok=True)
    (tmp_path / "out" / other).write_text("mine")
    before = (tmp_path / "out/shares.yaml").stat().st_mtime_ns
    with pytest.raises(ConfigError, match="which is not ours"):
        write(tmp_path)
    assert (tmp_path / "out/shares.yaml").stat().st_mtime_ns == before


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/kustomization.yaml").write_text("resources: []\n")
    with pytest.raises(ConfigError, match="no manifests of ours"):
        write(tmp_path)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["kustomization.yaml"]


def test_a_missing_key_is_told_before_anything_is_written(tmp_path: Path) -> None:
    found = with_keys(tmp_path)
    (tmp_path / "cluster.key").unlink()
    with pytest.raises(ConfigError, match="cannot be read"):
        folder.write(tmp_path / "out", folder.files_of(found, FILES, "mrcfabric:1", "lab"), found)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("mrcfabric", {"newName": "mrcfabric", "newTag": "latest"}),
        (
            "registry.example:5000/lab/mrcfabric:0.1.0",
            {"newName": "registry.example:5000/lab/mrcfabric", "newTag": "0.1.0"},
        ),
        ("r.example/m:1@sha256:" + "a" * 64, {"newName": "r.example/m", "digest": "sha256:" + "a" * 64}),
    ],
)
def test_images(tmp_path: Path, image: str, expected: dict[str, str]) -> None:
    top = yaml.safe_load(folder.files_of(with_keys(tmp_path), FILES, image, "lab")["kustomization.yaml"])
    assert top["images"] == [{"name": "mrcfabric"} | expected]


@pytest.mark.parametrize(
    ("image", "namespace", "files", "what"),
    [
        ("Not An Image", "lab", FILES, "is no name of an image"),
        ("mrcfabric:1", "Lab", FILES, "is no name of a namespace"),
        ("mrcfabric:1", "lab", {"hosts.yaml": bytes(folder.FILE_BYTES_MAX + 1)}, "go into a ConfigMap"),
    ],
)
def test_mistakes(tmp_path: Path, image: str, namespace: str, files: dict[str, bytes], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        folder.files_of(with_keys(tmp_path), files, image, namespace)
