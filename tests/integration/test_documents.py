"""What the documents show to be run is run, as a stranger would, and does what they say.

Every block of README.md and docs/*.md falls in one of the kinds below or is marked as not run, with the reason
(`tests.support.document_blocks`); nothing is left out in silence.
"""

import ast
import asyncio
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
import yaml

from mrcfabric.topology import Topology
from mrcfabric.topology_file import load
from orchestrator.fabric import Fabric
from orchestrator.hosts.placement.inventory_file import parsed
from orchestrator.process import run_folder
from tests.orchestrator.running import MRCFABRIC, run
from tests.support.document_blocks import ROOT, Block, blocks
from tests.support.wait import eventually_blocking

ALL = list(blocks())
KINDS = {"commands", "scenario", "topology", "hosts", "prometheus", "python", "json"}
COMMAND_WALL_S = 240.0
COMMAND_USUAL_S = 3
SESSION_WALL_S = 600
SHOWN = {"mapper": rb"NIC-T0: (\d+) links, \1 good\nT0-T1: (\d+) links, \2 good"}
"""What tells of a command without an end that it has come as far as it is shown for; of all others it is any output.
The mapper that has not heard of every link yet, and is interrupted, ends as one that has found a bad link."""
SHOWN_BYTES_MAX = 1 << 20
LIGHT = ("--set", "dilation=20000")
"""The pace of fabrics beside commands: at that of a reader, their daemons leave no command a core."""
WAITS_FOR_FABRIC_TIME = "mapper --once"
"""A block with this command would take minutes so: its fabric has the pace of a reader."""
NICE = 10
"""The priority of daemons at that pace: commands go first."""
kind_of = functools.cache(Block.kind)
"""A block may have to be read as YAML for it."""


def of_kind(kind: str) -> list[Any]:
    """The blocks of a kind that are run."""
    return [pytest.param(block, id=block.name) for block in ALL if kind_of(block) == kind and not block.why_not()]


def test_every_block_is_run_or_says_why_not() -> None:
    strange = [block.name for block in ALL if not block.why_not() and kind_of(block) not in KINDS]
    assert not strange, "no test knows how to run it: mark it, or teach one"
    bare = [block.name for block in ALL for kind, said in block.marks if kind == "not run" and len(said.split()) < 3]
    assert not bare, "say why"
    idle = [f"{block.name}: {one}" for block in ALL for one in block.idle_marks()]
    assert not idle, "a mark for a command that is not there"


def test_no_example_is_lost() -> None:
    """A fence that was misspelled would not be tried."""
    for document in {block.document for block in ALL}:
        fences = len(re.findall(r"^ *```[a-z]*$", document.read_text(), re.MULTILINE)) // 2
        assert fences == sum(bool(block.language) for block in ALL if block.document == document), document.name


@functools.cache
def played(block: Block) -> subprocess.CompletedProcess[str]:
    """A scenario in virtual time."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "shown.yaml").write_text(block.text)
        return run(Path(folder), "run", "shown.yaml", "--backend", "sim", "--plain")


@pytest.mark.parametrize("block", of_kind("scenario"))
def test_scenarios_hold(block: Block) -> None:
    done = played(block)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: HELD" in done.stdout
    faults = [entry["name"] for entry in yaml.safe_load(block.text).get("method", ())]
    seen = [name for name in faults if re.search(rf"fault begins: {name}\b", done.stdout)]
    assert set(faults) - set(seen) <= set(_CONDITIONS_OF_FAILURE), "an entry of the timetable that shows nothing"


_CONDITIONS_OF_FAILURE = ("worse",)
"""Entries that wait for what must not happen."""


def test_a_fault_on_a_condition_waits_for_the_work() -> None:
    block = next(one for one in ALL if one.text.startswith("name: on-condition"))
    done = played(block)
    begins = re.findall(r"^ *([\d.]+) RTT  fault begins: ([\w-]+)", done.stdout, re.MULTILINE)
    order = [name for _, name in begins]
    assert order[0] == "first", done.stdout
    assert "while-down" in order
    assert "late" in order


@pytest.mark.parametrize("block", of_kind("topology"))
def test_topologies_are_read(block: Block, tmp_path: Path) -> None:
    (tmp_path / "shown.yaml").write_text(block.text)
    assert load(tmp_path / "shown.yaml", []).name == yaml.safe_load(block.text)["name"]


@pytest.mark.parametrize("block", of_kind("hosts"))
def test_inventories_are_read(block: Block) -> None:
    assert {host.name for host in parsed("shown.yaml", block.text).hosts} == set(yaml.safe_load(block.text)["hosts"])


@pytest.mark.parametrize("block", of_kind("prometheus"))
def test_what_prometheus_reads_is_yaml(block: Block) -> None:
    assert yaml.safe_load(block.text)["scrape_configs"]


@pytest.mark.parametrize("block", of_kind("json"))
def test_lines_of_json_are_json(block: Block) -> None:
    assert all("event" in json.loads(line) for line in block.text.splitlines())


@pytest.mark.integration
@pytest.mark.long(20)
async def test_the_python_of_one_page_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, *rest = [block for block in ALL if block.kind() == "python" and block.document.name == "PYTHON.md"]
    (tmp_path / "script.py").write_text(script.text)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(sys.executable, "script.py", cwd=tmp_path, env=env)
    assert await asyncio.wait_for(process.wait(), COMMAND_WALL_S) == 0
    monkeypatch.chdir(tmp_path)
    async with Fabric.launch(Topology.demo(), tmp_path / "run") as fabric:
        names: dict[str, Any] = {"fabric": fabric}
        for block in rest:
            code = compile(block.text, block.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            awaited = eval(code, names)
            if awaited is not None:
                await asyncio.wait_for(awaited, COMMAND_WALL_S)


def _sessions() -> list[Any]:
    tried = ((block, sum(not block.why_not(command) for command in block.commands())) for block in ALL)
    return [
        pytest.param(block, id=block.name, marks=pytest.mark.long(COMMAND_USUAL_S * commands))
        for block, commands in tried
        if block.kind() == "commands" and commands
    ]


@pytest.fixture
def folder_of_sources() -> Iterator[Path]:
    """A folder as that of the sources, as far as commands name its files, with a name as short as sockets need it."""
    with tempfile.TemporaryDirectory(prefix="folder_of_sources") as name:
        folder = Path(name)
        for source in ("README.md", "examples", "deploy"):
            (folder / source).symlink_to(ROOT / source)
        yield folder
        for lock in (folder / "out").glob("*/lock"):
            run(folder, "down", "--run-dir", str(lock.parent))


@pytest.mark.integration
@pytest.mark.timeout(SESSION_WALL_S)
@pytest.mark.parametrize("block", _sessions())
def test_commands_do_what_they_are_shown_for(block: Block, folder_of_sources: Path) -> None:
    """Every line of a block, one after the other; where none of them starts a fabric, one runs that has work."""
    commands = [command for command in block.commands() if not block.why_not(command)]
    if not any(command.startswith("mrcfabric up") for command in commands):
        assert run(folder_of_sources, "up", "--detach", "--pack", "cores", *LIGHT).returncode == 0
        assert run(folder_of_sources, "work", "start", "permutation", "--id", "aside").returncode == 0
    if not any(WAITS_FOR_FABRIC_TIME in command for command in commands):
        commands = [re.sub(r"^mrcfabric up\b", " ".join(("mrcfabric up", *LIGHT)), command) for command in commands]
    for command in commands:
        _carry_out(command, folder_of_sources, endless=block.endless(command))
        if command.startswith("mrcfabric up"):
            _let_commands_go_first(folder_of_sources)


def _carry_out(command: str, folder: Path, *, endless: bool) -> None:
    env = {**os.environ, "PATH": f"{Path(MRCFABRIC).parent}:{os.defpath}", "COLUMNS": "100"}
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            ["/bin/sh", "-c", command if "|" in command else f"exec {command}"],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        try:
            if endless:
                wanted = next((words for part, words in SHOWN.items() if part in command), b"")
                eventually_blocking(
                    lambda: _shown(wanted, output, errors) or process.poll() is not None, COMMAND_WALL_S
                )
                assert process.poll() is None, f"{command}: ended by itself: {process.returncode}"
                process.send_signal(signal.SIGINT)
            process.wait(COMMAND_WALL_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            said, complained = (file.seek(0) or file.read() for file in (output, errors))
    assert process.returncode in ((0, 130) if endless else (0,)), f"{command}: {said}{complained}"
    assert "Traceback" not in complained, f"{command}: {complained}"


def _let_commands_go_first(folder: Path) -> None:
    """Lower the priority of the daemons of all fabrics there, and of what will start more of them."""
    for lock in (folder / "out").glob("*/lock"):
        state = run_folder.read_state(lock.parent)
        assert state is not None
        for pid in (state["forkserver_pid"], *(node["pid"] for node in state["nodes"].values())):
            os.setpriority(os.PRIO_PROCESS, pid, NICE)


def _shown(wanted: bytes, *outputs: IO[str]) -> bool:
    """Whether a command that still writes has shown this by now, an expression; b"": anything."""
    found = [os.pread(output.fileno(), SHOWN_BYTES_MAX, 0) for output in outputs]
    return any(one and re.search(wanted, one) for one in found)
