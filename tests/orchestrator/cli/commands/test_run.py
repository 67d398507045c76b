"""`mrcfabric run` as the user meets it: reports, exit codes, streams, and what is left after a kill."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from tests.orchestrator.running import MRCFABRIC, fails, is_gone, run

SCENARIO = """
name: small
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1, evs_per_qp: 16, reserve_evs_per_qp: 8}
seed: one
length: 400rtt
workload:
  - {name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 40}
method:
  - {name: away, at: 10rtt, for: 20rtt, fault: switch_reboot, selector: {tier: t1}, mode: one}
  - name: cut
    when: {measure: packets_lost, at_least: 1}
    for: 10rtt
    fault: link_down
    selector: {tier: t0-t1}
    mode: one
expect:
  - {measure: qp_errors, at_most: 0}
  - {measure: completed, at_least: 1}
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


def invoke(folder: Path, *arguments: str) -> Result:
    """`mrcfabric run ARGUMENTS` in this process, in a folder."""
    with contextlib.chdir(folder):
        return CliRunner().invoke(build_app(), ["run", *arguments])


def test_in_virtual_time_the_same_seed_gives_the_same_report_byte_for_byte(scenario: Path) -> None:
    here = scenario.parent
    for folder in ("one", "two"):
        done = invoke(here, "small.yaml", "--backend", "sim", "--report", folder, "--trace")
        assert (done.exit_code, "verdict: HELD" in done.stdout) == (0, True), done.output
    for name in ("report.json", "report.html", "scenario.yaml"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes(), name
    assert invoke(here, "one/scenario.yaml", "--backend", "sim", "--report", "again", "--trace").exit_code == 0
    report, again = (json.loads((here / folder / "report.json").read_text()) for folder in ("one", "again"))
    assert report["trace_digest"] == again["trace_digest"] != ""
    assert report["faults"] == again["faults"]
    assert [fault["id"] for fault in report["faults"]] == ["away", "cut"]


def test_what_does_not_hold_is_exit_code_one(scenario: Path) -> None:
    scenario.write_text(SCENARIO + "  - {measure: goodput, relative_to: line, at_least: 0.999}\n")
    done = invoke(scenario.parent, "small.yaml", "--backend", "sim", "--junit", "junit.xml")
    assert done.exit_code == 1, done.output
    assert "FAIL" in done.stdout
    suite = ET.parse(scenario.parent / "junit.xml").getroot()[0]
    assert suite.get("failures") == "1"
    assert (scenario.parent / "out" / "small" / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["small.yaml", "--set", "lenght=3rtt"], "nearest is"),
        (["small.yaml", "--backend", "ns3"], "udp or sim"),
        (["small.yml"], "small.yml"),
        (["small.yaml", "--on", "lab", "--backend", "sim"], "takes a fabric as it is"),
        (["small.yaml", "--pack", "planes"], "no such packing"),
    ],
)
def test_bad_input_is_a_mistake_and_nothing_is_started(scenario: Path, arguments: list[str], words: str) -> None:
    done = invoke(scenario.parent, *arguments)
    assert isinstance(done.exception, ConfigError)
    assert words in str(done.exception)
    assert not (scenario.parent / "out").exists()


CHAOS = "name: wild, for: 50rtt, chaos: {every: 5rtt, at_once_max: 1, faults: [{fault: host_cut_off, for: 2rtt}]}"


@pytest.mark.parametrize("backend", ["sim", "udp"])
@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ("name: gone, at: 10rtt, for: 20rtt, fault: host_crash, selector: {hosts: vm1}", "method[2].fault"),
        ("name: slow, at: 10rtt, for: 2rtt, every: 5rtt, fault: host_slow, turns: anew", "method[2].fault"),
        (CHAOS, "method[2].chaos"),
        ("name: gone, for: 9rtt, fault: host_crash, when: {measure: packets_lost, at_least: 1}", "method[2].fault"),
    ],
)
def test_a_host_fault_without_hosts_is_refused_with_its_line(
    scenario: Path, entry: str, place: str, backend: str
) -> None:
    scenario.write_text(SCENARIO.replace("expect:", f"  - {{{entry}}}\nexpect:"))
    done = invoke(scenario.parent, "small.yaml", "--backend", backend)
    assert isinstance(done.exception, ConfigError)
    line = SCENARIO.splitlines().index("expect:") + 1
    assert str(done.exception).startswith(f"small.yaml:{line}: {place}: is about hosts, and this fabric has none")
    assert not (scenario.parent / "out").exists()
    dry = invoke(scenario.parent, "small.yaml", "--dry-run")
    assert (dry.exit_code, "hosts not checked" in dry.stdout) == (0, True)


def test_where_no_report_can_be_written_nothing_is_started(scenario: Path) -> None:
    (scenario.parent / "taken").write_text("")
    done = invoke(scenario.parent, "small.yaml", "--backend", "sim", "--report", "taken")
    assert isinstance(done.exception, ConfigError)
    assert "no report can be written there" in str(done.exception)


@pytest.mark.long
@pytest.mark.integration
def test_closed_outputs_end_no_run(scenario: Path) -> None:
    command = f"{MRCFABRIC} run small.yaml --backend sim --report out/closed"
    for closed in (">&-", "<&- >&- 2>&-", ">/dev/full", "--json >/dev/full"):
        # 4: its lines were lost, which `standard_files` tells.
        assert subprocess.run(["sh", "-c", f"exec {command} {closed}"], cwd=scenario.parent, timeout=60).returncode == 4
        report = scenario.parent / "out" / "closed" / "report.json"
        assert json.loads(report.read_text())["verdict"] == "held"
        report.unlink()


def test_the_folder_that_nobody_names_is_looked_at_before_the_run_begins(scenario: Path) -> None:
    (scenario.parent / "out").write_text("")
    done = invoke(scenario.parent, "small.yaml", "--backend", "sim", "--plain")
    assert isinstance(done.exception, ConfigError)
    assert "small: no report can be written there: Not a directory" in str(done.exception)
    assert done.stdout == ""


def test_a_second_run_says_that_it_replaces_the_report_of_the_first(scenario: Path) -> None:
    said = [invoke(scenario.parent, "small.yaml", "--backend", "sim", "--report", "kept").stderr for _ in range(2)]
    assert said == ["", "the report of an earlier run in kept is replaced; --report DIR keeps both\n"]


def test_a_folder_is_printed_in_one_line_whatever_it_is_called(scenario: Path) -> None:
    folder = "kept\x1b[31m\nhere"
    for _ in range(2):
        done = invoke(scenario.parent, "small.yaml", "--backend", "sim", "--report", folder)
        assert (done.exit_code, (scenario.parent / folder / "report.json").exists()) == (0, True)
    assert done.stdout.splitlines()[-1] == "report: kept\\x1b[31m\\nhere"
    assert done.stderr.startswith("the report of an earlier run in kept\\x1b[31m\\nhere is replaced")


@pytest.mark.parametrize("seed", ["a\nb", "\x1b[31mred", "\udcff"])
def test_a_seed_that_is_no_line_of_text_is_refused(scenario: Path, seed: str) -> None:
    for more in (["--dry-run"], ["--backend", "sim"], ["--backend", "sim", "--repeat", "2"]):
        done = invoke(scenario.parent, "small.yaml", "--seed", seed, *more)
        assert isinstance(done.exception, ConfigError)
        assert str(done.exception).startswith("--seed: ")
    assert not (scenario.parent / "out").exists()


def test_a_dry_run_prints_the_timetable_and_does_nothing(scenario: Path) -> None:
    out = invoke(scenario.parent, "small.yaml", "--dry-run", "--seed", "two").stdout
    assert "seed two" in out
    assert "switch_reboot" in out
    assert not (scenario.parent / "out").exists()


@pytest.mark.parametrize("flags", [("--pack", "crate"), ("--engine", "steam"), ("--backend", "paper")])
@pytest.mark.parametrize("way", [("--dry-run",), ("--backend", "sim")])
def test_a_wrong_flag_is_refused_also_where_it_would_change_nothing(
    scenario: Path, flags: tuple[str, str], way: tuple[str, ...]
) -> None:
    done = invoke(scenario.parent, "small.yaml", *way, *flags)
    assert isinstance(done.exception, ConfigError)
    assert done.exception.where == " ".join(flags)
    assert done.stdout == ""


def test_events_are_json_lines_and_nothing_else(scenario: Path) -> None:
    lines = invoke(scenario.parent, "small.yaml", "--backend", "sim", "--json").stdout.splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert (events[0], events[-1]) == ("begin", "end")
    assert {"look", "fault", "trigger", "finding"} <= set(events)


@pytest.mark.integration
@pytest.mark.long
def test_four_runs_in_a_row_on_daemons_are_the_run_in_virtual_time(scenario: Path) -> None:
    here = scenario.parent
    assert invoke(here, "small.yaml", "--backend", "sim", "--report", "sim", "--trace").exit_code == 0
    expected = json.loads((here / "sim" / "report.json").read_text())
    for _ in range(4):
        done = run(here, "run", "small.yaml", "--trace", "--report", "udp")
        assert done.returncode == 0, done.stderr
        report = json.loads((here / "udp" / "report.json").read_text())
        assert report["trace_digest"] == expected["trace_digest"]
        assert report["findings"] == expected["findings"]
        assert sorted(path.name for path in (here / "udp" / "fabric").iterdir()) == ["lock", "logs"]


class Running:
    """A run on daemons that would go on for long, once its condition has fired."""

    def __init__(self, folder: Path) -> None:
        endless = ["--set", "workload.0.messages=100000", "--set", "length=1000000rtt"]
        # A short name: sockets cannot lie deep, and a test lies deep already.
        arguments = [MRCFABRIC, "run", "small.yaml", "--json", "--run-dir", "f", *endless]
        self.process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.out = self.process.stdout
        self.forkserver = 0
        self.daemons: list[int] = []

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        """Its exit code, and what else it told."""
        rest = [json.loads(line) for line in self.out.read().splitlines()]
        return self.process.wait(timeout=60), rest

    def __enter__(self) -> "Running":
        try:
            while json.loads(self.out.readline())["event"] != "trigger":
                pass
            self.forkserver = children_of(self.process.pid)[0]
            self.daemons = children_of(self.forkserver)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        self.out.close()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["INT", "TERM", "KILL"])
def test_a_kill_leaves_no_fabric(scenario: Path, number: signal.Signals) -> None:
    """Interrupted runs still report what was; killed ones cannot."""
    with Running(scenario.parent) as running:
        running.process.send_signal(number)
        code, told = running.end()
    deadline = time.monotonic() + 20
    while not all(map(is_gone, [running.forkserver, *running.daemons])):
        assert time.monotonic() < deadline
    if number == signal.SIGKILL:
        assert code == -number
        return
    assert code == 128 + number
    assert (told[-1]["event"], told[-1]["verdict"]) == ("end", "interrupted")
    report = json.loads((scenario.parent / "out" / "small" / "report.json").read_text())
    assert report["ended"] == "interrupted"


@pytest.mark.integration
def test_a_daemon_that_dies_by_itself_is_exit_code_four(scenario: Path) -> None:
    with Running(scenario.parent) as running:
        titles = {Path(f"/proc/{pid}/cmdline").read_text().strip("\0"): pid for pid in running.daemons}
        os.kill(titles["nicd h001"], signal.SIGTERM)
        code, told = running.end()
    assert (code, told[-1]["verdict"]) == (4, "lost")
    report = json.loads((scenario.parent / "out" / "small" / "report.json").read_text())
    assert "h001" in report["lost"]
    assert "h001 ready" in report["lost"], "its last log lines"


@pytest.mark.integration
@pytest.mark.parametrize("flags", [(), ("--report", "a/b"), ("--run-dir", "c")])
def test_nothing_is_left_of_a_run_that_cannot_start(flags: tuple[str, ...]) -> None:
    hosts = [f"  vm{n}: {{ssh: {{address: 127.0.0.{n}, port: 1}}, data: 127.0.0.{n}}}\n" for n in (1, 2)]
    # A folder of pytest's is too long for the sockets of a fabric below it.
    with tempfile.TemporaryDirectory() as short:
        here = Path(short)
        (here / "small.yaml").write_text(SCENARIO)
        (here / "inv.yaml").write_text("hosts:\n" + "".join(hosts))
        before = set(here.rglob("*"))
        assert "nobody listens" in fails(here, "run", "small.yaml", "--inventory", "inv.yaml", *flags)
        assert set(here.rglob("*")) == before


@pytest.mark.integration
def test_a_fabric_that_cannot_start_is_exit_code_two(scenario: Path) -> None:
    """A folder that holds something else is the operator's mistake."""
    here = scenario.parent
    (here / "full").mkdir()
    (here / "full" / "thesis.txt").write_text("mine")
    assert "no fabric's" in fails(here, "run", "small.yaml", "--run-dir", "full")
