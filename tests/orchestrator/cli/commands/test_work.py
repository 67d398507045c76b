"""The commands that put a fabric to work: their arguments and mistakes."""

import json
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.apps import report
from orchestrator.apps.perf import Perf
from orchestrator.apps.verdict import Verdict
from orchestrator.cli.commands.work import size_of
from orchestrator.cli.main import main
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.process.run_folder import RunFolder
from orchestrator.report import files


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("4096", 4096), ("64K", 65536), ("64kb", 65536), ("2MiB", 2 << 20), (" 1g ", 1 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5M", "1T", "0x10", "ten", "\u0661"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ConfigError, match="is no size"):
        size_of(text)


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> int:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["mrcfabric", *words])
    return main()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("demo", "--tensor-mib", "0"), "--tensor-mib"),
        (("perf", "ring", "--pack", "box"), "no such packing"),
        (("demo", "--set", "t1_per_plane=1"), "too small for the demonstration"),
        (("demo", "--inventory", "no-hosts.yaml"), "no-hosts.yaml: cannot be read"),
        (("perf", "ring", "--lease", "20s"), "add --inventory FILE"),
        (("demo", "--engine", "service"), "add --inventory FILE"),
        (("perf", "ring", "--nodes-per-process", "2"), "add --inventory FILE"),
        (("send", "missing", "--from", "h000", "--to", "h001", "--engine", "slurm"), "no allocation"),
        (
            ("send", "missing", "--from", "h000", "--to", "h001", "--name", "x", "--inventory", "y"),
            "runs as it was started",
        ),
        (
            ("send", "missing", "--from", "h000", "--to", "h001", "--name", "x", "--pack", "plane"),
            "runs as it was started",
        ),
        (("send", "missing", "--from", "h000", "--to", "h001", "--inventory", "no-hosts.yaml"), "no-hosts.yaml"),
        (("perf", "ring", "nothing.yaml"), "nothing.yaml"),
        (("perf", "ring", "a.yaml", "--topology", "b.yaml"), "--topology b.yaml: a.yaml is given already"),
        (("perf", "star"), "one of pair, ring, alltoall"),
        (("perf", "pair", "--from", "h99"), "h99"),
        (("perf", "ring", "--size", "many"), "is no size"),
        (("perf", "ring", "--from", "h000"), "--from: ring has senders of its own (perf pair)"),
        (
            ("perf", "alltoall", "--to", "h001", "--both-ways"),
            "--to, --both-ways: alltoall has senders",
        ),
        (("send", "missing", "--from", "h000", "--to", "h001"), "missing: No such file"),
        (("send", "missing", "--from", "h000", "--to", "h001", "--name", "other"), "no fabric runs there"),
    ],
)
def test_a_mistake_is_one_line_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    text: str,
) -> None:
    assert run(monkeypatch, tmp_path, *words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("mrcfabric: ")
    assert captured.err.count("\n") == 1
    assert text in captured.err
    assert not list(tmp_path.iterdir())


@pytest.mark.integration
@pytest.mark.slow
def test_perf_prints_its_report_and_leaves_it_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("planes=2", "t0_per_plane=2", "t1_per_plane=2", "nics_per_t0=1", "evs_per_qp=16", "reserve_evs_per_qp=4")
    words = [word for key in small for word in ("--set", key)]
    assert run(monkeypatch, tmp_path, "perf", "pair", "--size", "10K", "-n", "3", "--json", *words) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "pass"
    assert data["totals"]["bytes_verified"] == 3 * 10240
    assert json.loads((tmp_path / "out" / "perf" / "report.json").read_text()) == data
    assert run(monkeypatch, tmp_path, "perf", "pair", "--size", "10K", "-n", "1", *words) == 0
    folder = Path("out") / "perf"
    said = f"the report of an earlier run in {folder} is replaced; --run-dir DIR keeps both\n"
    assert said in capsys.readouterr().err


def test_a_measurement_that_cannot_take_place_or_be_written_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def no_log(_perf: Perf, _folder: Path) -> dict[str, Any]:
        raise ProcessFailedError("fork server: spawn: OSError: No space left on device: 'h000.log'")

    monkeypatch.setattr(Perf, "run", no_log)
    assert run(monkeypatch, tmp_path, "perf", "pair") == 4
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "mrcfabric: fork server: spawn: OSError: No space left on device: 'h000.log'\n")

    async def done(perf: Perf, _folder: Path) -> dict[str, Any]:
        verdict = Verdict({"valid": True, "frames_in": 0, "late_share": 0.0, "host_drops": 0})
        return report.build("perf", perf.topology, verdict, {}, wall_s=1.0, extra={"rounds": []})

    def full(_texts: object, folder: Path) -> None:
        raise RefusedError(f"the report cannot be written to {folder}: No space left on device")

    monkeypatch.setattr(Perf, "run", done)
    monkeypatch.setattr(files, "write_texts", full)
    earlier = tmp_path / "out" / "perf" / files.JSON_NAME
    earlier.parent.mkdir(parents=True)
    earlier.write_text("{}")  # stays, so nobody says that it is replaced
    assert run(monkeypatch, tmp_path, "perf", "pair", "--json") == 4
    said = capsys.readouterr()
    assert json.loads(said.out)["verdict"] == "pass"
    assert said.err == f"mrcfabric: the report cannot be written to {Path('out') / 'perf'}: No space left on device\n"


def test_a_folder_in_use_is_refused_before_anything_is_printed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = RunFolder.claim(tmp_path / "used")
    try:
        assert run(monkeypatch, tmp_path, "perf", "ring", "--run-dir", str(folder.path)) == 2
    finally:
        folder.release()
    said = capfd.readouterr()
    assert said.out == ""
    assert "a fabric is already running there" in said.err
    assert "--run-dir)" in said.err
