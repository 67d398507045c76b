"""A scenario on several systems: all or nothing at the start, one report each, and what cannot run is told."""

import json
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.cli import systems_compare
from orchestrator.cli.scenario_run import CouldNotRunError
from orchestrator.cli.systems_compare import JSON_NAME, Asked, carried_out, names_of, plans_of
from orchestrator.report import files
from orchestrator.report.systems_page import PAGE_NAME
from orchestrator.runs.backends import OpenBackend
from orchestrator.scenario.plan import Plan
from tests.support.runs import Ears

SCENARIO = """
name: two-ways
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 16, reserve_evs_per_qp: 8}
seed: one
length: 200rtt
workload: [{name: perm, kind: permutation, message_bytes: 64KiB, messages: 6}]
method: [{name: cut, at: 5rtt, for: 20rtt, fault: link_down, selector: {tier: t0-t1}, mode: one}]
expect: [{measure: completed, at_least: 1}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    for policy in ("oblivious", "single"):
        about = f"about: MRC with {policy} paths.\nsource: For tests.\nnic: {{path_policy: {policy}}}\n"
        (tmp_path / f"{policy}.yaml").write_text(about)
    return tmp_path


def asked(folder: Path, *systems: str, seed: str | None = None, settings: tuple[str, ...] = ()) -> Asked:
    names = [str(folder / name) if name.endswith(".yaml") else name for name in systems]
    return Asked(folder / "s.yaml", names, settings, seed, sim=True, folder=folder / "out")


def test_variants_of_mrc_beside_each_other(folder: Path) -> None:
    heard: list[Ears] = []

    def ears() -> Ears:
        heard.append(Ears())
        return heard[-1]

    data, place = carried_out(asked(folder, "mrc", "oblivious.yaml", "single.yaml"), ears)
    assert place == folder / "out"
    assert [row["system"] for row in data["systems"]] == ["mrc", "oblivious", "single"]
    assert data["systems"][1]["about"] == "MRC with oblivious paths."
    assert [row["verdict"] for row in data["systems"]] == ["held"] * 3
    assert data["exit_code"] == 0
    assert [one.heard[-1][0] for one in heard] == ["closed"] * 3
    assert json.loads((place / JSON_NAME).read_text()) == data
    assert (place / PAGE_NAME).read_text().startswith("<!doctype html>")
    for row in data["systems"]:
        report = json.loads((place / row["system"] / "report.json").read_text())
        assert report["system"] == row["system"]
        assert report["settings_digest"] == row["settings_digest"]
        assert (place / row["report"]).exists()
        assert row["figures"]["completed"] == 1.0
        assert row["figures"]["took_ns"] > 0
    digests = {row["settings_digest"] for row in data["systems"]}
    assert len(digests) == 3
    # A QP on one path gets less of the fabric than one on all of them.
    share = {row["system"]: row["figures"]["goodput_share"] for row in data["systems"]}
    assert share["single"] < 0.8 * share["mrc"]


def test_that_an_earlier_comparison_is_replaced_is_said_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    carried_out(asked(folder, "mrc", "oblivious.yaml"), Ears)
    assert "replaced" not in capsys.readouterr().err
    carried_out(asked(folder, "mrc", "single.yaml"), Ears)
    assert capsys.readouterr().err.count("replaced") == 1


def test_a_comparison_that_cannot_be_written_replaces_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    carried_out(asked(folder, "mrc", "oblivious.yaml"), Ears)
    kept = (folder / "out" / JSON_NAME).read_text()
    real = files.write_texts

    def full(texts: dict[str, str], place: Path) -> None:
        if JSON_NAME in texts:
            raise RefusedError(f"the report cannot be written to {place}: No space left on device")
        real(texts, place)

    monkeypatch.setattr(files, "write_texts", full)
    with pytest.raises(CouldNotRunError):
        carried_out(asked(folder, "mrc", "single.yaml"), Ears)
    assert (folder / "out" / JSON_NAME).read_text() == kept
    assert "replaced" not in capsys.readouterr().err


def test_the_work_the_seed_and_the_faults_are_the_same_on_all(folder: Path) -> None:
    plans = plans_of(asked(folder, "mrc", "single.yaml", seed="two", settings=("workload.perm.messages=3",)))
    one, other = plans
    assert (one.programs, one.faults, one.seed) == (other.programs, other.faults, "two")
    assert one.programs[0].figures["messages"] == 3
    assert one.topology.nic != other.topology.nic


def test_a_mistake_in_any_system_is_found_before_the_first_run(folder: Path) -> None:
    (folder / "bad.yaml").write_text("about: x\nsource: y\nnic: {path_policy: sideways}\n")
    with pytest.raises(ConfigError, match=r"bad\.yaml:3: nic\.path_policy"):
        carried_out(asked(folder, "mrc", "bad.yaml"), Ears)
    assert not (folder / "out").exists()


def test_a_system_that_cannot_run_does_not_keep_the_others_from_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = systems_compare._backend

    def backend(asked: Asked, plan: Plan, place: Path) -> OpenBackend:
        if plan.topology.system == "oblivious":
            raise_at_entry: OpenBackend = refuse
            return raise_at_entry
        return real(asked, plan, place)

    def refuse() -> None:  # type: ignore[misc]
        raise RefusedError("h000: no such command")

    monkeypatch.setattr(systems_compare, "_backend", backend)
    data, _ = carried_out(asked(folder, "oblivious.yaml", "mrc"), Ears)
    assert [row["verdict"] for row in data["systems"]] == ["not run", "held"]
    assert data["systems"][0]["reasons"] == ["h000: no such command"]
    assert data["exit_code"] == 4


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mrc", "a comparison needs two"),
        ("mrc,,a/b", "empty place"),
        ("mrc, mrc", "twice"),
        ("x/m.yaml,y/m.yaml", "m "),
    ],
)
def test_lists_that_are_no_comparison(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        names_of(text)


def test_names_and_paths_may_be_mixed() -> None:
    assert names_of("mrc, ./own.yaml") == ["mrc", "./own.yaml"]


@pytest.mark.integration
def test_real_daemons(folder: Path) -> None:
    here = asked(folder, "mrc", "oblivious.yaml", settings=("workload.perm.messages=2", "fabric.planes=1"))
    data, place = carried_out(Asked(here.file, here.systems, here.settings, None, False, here.folder), Ears)
    assert data["backend"] == "udp"
    assert [row["figures"]["completed"] for row in data["systems"]] == [1.0, 1.0]
    assert [row["figures"]["bytes_wrong"] for row in data["systems"]] == [0, 0]
    assert not [path for path in (place / "mrc" / "fabric").iterdir() if path.name not in ("lock", "logs")]
