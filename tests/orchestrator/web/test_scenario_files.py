"""Which scenarios a page may choose from."""

import os
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.web.scenario_files import BUILT_IN, FILE_BYTES_MAX, FILES_MAX, ScenarioFiles
from tests.orchestrator.running import SMALL

FITS = "name: mine\ndescription: For this test.\n"
OTHER = "name: other\nfabric: {planes: 4}\n"


@pytest.mark.parametrize("topology", [SMALL, Topology.demo(), Topology(planes=1, t0_per_plane=2, t1_per_plane=1)])
def test_the_built_in_ones_fit_fabrics_of_all_kinds(topology: Topology) -> None:
    entries = ScenarioFiles(topology).entries()
    assert len(entries) == len(list(BUILT_IN.glob("*.yaml"))) >= 3
    for entry in entries:
        assert entry["fits"], entry
        assert entry["description"]
        assert ScenarioFiles(topology).find(entry["id"])[1] == entry["name"]


def test_a_folder_adds_its_own_with_the_reason_why_one_does_not_fit(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    for name, text in (("a.yaml", FITS), ("b.yaml", OTHER), ("c.yaml", "- no"), ("d.txt", FITS)):
        (folder / name).write_text(text)
    scenarios = ScenarioFiles(SMALL, [folder])
    entries = {entry["id"]: entry for entry in scenarios.entries() if entry["id"].startswith("ours/")}
    assert {name: entry["fits"] for name, entry in entries.items()} == {
        "ours/a.yaml": True, "ours/b.yaml": False, "ours/c.yaml": False,
    }  # fmt: skip
    assert "planes is 4 here and 2" in entries["ours/b.yaml"]["why"]
    assert scenarios.find("ours/a.yaml") == (folder / "a.yaml", "mine")
    with pytest.raises(ConfigError, match="does not fit"):
        scenarios.find("ours/b.yaml")


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(OTHER)
    scenarios = ScenarioFiles(SMALL, [tmp_path])
    assert not scenarios.entries()[-1]["fits"]
    file.write_text(FITS)
    os.utime(file, ns=(1, 1))
    assert scenarios.entries()[-1]["fits"]
    file.unlink()
    assert len(scenarios.entries()) == len(list(BUILT_IN.glob("*.yaml")))


@pytest.mark.parametrize("ident", ["", "../secret", "/etc/passwd", "cut-an-uplink", "ours/../cut-an-uplink.yaml"])
def test_an_id_is_never_a_path(ident: str) -> None:
    with pytest.raises(ConfigError, match="not on offer"):
        ScenarioFiles(SMALL).find(ident)


def test_neither_many_files_nor_a_big_one_are_read(tmp_path: Path) -> None:
    (tmp_path / "0.yaml").write_text("#" * (FILE_BYTES_MAX + 1))
    for number in range(1, 4 * FILES_MAX):
        (tmp_path / f"{number:03}.yaml").write_text("[")
    entries = ScenarioFiles(SMALL, [tmp_path]).entries()
    assert len(entries) == FILES_MAX
    assert "too long" in next(entry["why"] for entry in entries if entry["id"].endswith("/0.yaml"))
