"""The units: clean to systemd, hardened by its own reckoning, and what they start works within what they leave it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control import ControlClient
from tests.support.daemons import REALM, tables
from tests.support.packages import program
from tests.support.units import UNITS, Unit
from tests.support.wait import eventually_true

INSTANCES = {"share": "lab", "fabric": "lab", "nicd": "h000", "switchd": "p0-t0-0"}
EXPOSURE_MAX = "1.2"
"""Of 10; what is left of it is that daemons use the network, as the host has it, and lower their priority."""

MESSAGE_BYTES = 4096
DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The units, instances of the templates, as if our own interpreter's folder were /opt/mrcfabric."""
    folder = tmp_path_factory.mktemp("units")
    for path in UNITS.glob("mrcfabric*"):
        text = path.read_text().replace("/opt/mrcfabric/", f"{sys.prefix}/")
        kind = path.name.removeprefix("mrcfabric-").partition("@")[0]
        (folder / path.name).write_text(text)
        if kind in INSTANCES:
            (folder / path.name.replace("@", f"@{INSTANCES[kind]}")).write_text(text)
    return folder


def instance(folder: Path, kind: str) -> Path:
    return folder / f"mrcfabric-{kind}@{INSTANCES[kind]}.service"


def test_there_is_an_instance_of_each() -> None:
    assert {path.name for path in UNITS.glob("*.service")} == {f"mrcfabric-{kind}@.service" for kind in INSTANCES}


def test_systemd_finds_nothing_wrong_with_them(installed: Path) -> None:
    files = [*(instance(installed, kind) for kind in INSTANCES), installed / "mrcfabric.slice"]
    done = subprocess.run(
        [program("systemd-analyze"), "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_systemd_calls_them_hardened(installed: Path) -> None:
    words = ["security", "--offline=true", f"--threshold={EXPOSURE_MAX.replace('.', '')}"]
    files = [instance(installed, kind) for kind in INSTANCES]
    done = subprocess.run([program("systemd-analyze"), *words, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("Overall exposure level") == len(files)


def test_the_user_of_the_units_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    words = [program("systemd-sysusers"), f"--root={tmp_path}", UNITS / "sysusers.conf"]
    subprocess.run(words, capture_output=True, check=True)
    name, _, _, _, _, home, shell = (tmp_path / "etc/passwd").read_text().strip().split(":")
    assert {Unit(UNITS / f"mrcfabric-{kind}@.service", "x").one("User") for kind in INSTANCES} == {name}
    assert (home, shell) == ("/var/lib/mrcfabric", "/usr/sbin/nologin")


def kernel() -> tuple[int, ...]:
    """Its version; from 6.3 on it refuses memory that is written and executed without the help of systemd."""
    return tuple(map(int, os.uname().release.partition("-")[0].split(".")[:2]))


@pytest.mark.integration
@pytest.mark.slow
def test_a_unit_takes_from_its_process_what_that_does_not_need(tmp_path: Path) -> None:
    unit = Unit(UNITS / "mrcfabric-nicd@.service", "h000")
    mark = tmp_path / "begun"
    executed = "import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)"
    for what in (
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "os.setpriority(os.PRIO_PROCESS, 0, -1)",
        "os.chroot('/')",
        *([executed] if kernel() >= (6, 3) else []),
    ):
        words = [sys.executable, "-c", f"import os; open({str(mark)!r}, 'w').close(); {what}"]
        done = subprocess.run(unit.confined(words), capture_output=True, text=True, check=False)
        assert mark.exists(), done.stderr
        assert "PermissionError" in done.stderr, (what, done.stderr)
        mark.unlink()


@pytest.mark.integration
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["share", "fabric"])
def test_a_crowd_of_daemons_may_lower_its_priority_and_nobody_raise_one(kind: str) -> None:
    unit = Unit(UNITS / f"mrcfabric-{kind}@.service", "lab")
    for what, told in (
        ("from mrcfabric import crowd; crowd.stand_back(1 << 20); assert os.nice(0) == crowd.NICE", ""),
        ("os.nice(5); os.nice(-1)", "PermissionError"),
    ):
        words = [sys.executable, "-c", f"import os; {what}"]
        done = subprocess.run(unit.confined(words), capture_output=True, text=True, check=False)
        assert done.stderr.rpartition("\n")[0].rpartition("\n")[2].startswith(told), done.stderr
        assert (done.returncode == 0) == (told == ""), done.stderr


@pytest.fixture
def units(tmp_path: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """Two NICs and the switch between them, each started as its unit says; the configuration of each."""
    every = {name: table for name, table in tables().items() if name in ("h000", "h001", "p0-t0-0")}
    processes = []
    for name, table in every.items():
        if name.startswith("h"):
            table["verbs"] = str(tmp_path / f"{name}.sock")
        (tmp_path / f"{name}.yaml").write_text(json.dumps(table))
        unit = Unit(UNITS / f"mrcfabric-{'nicd' if name.startswith('h') else 'switchd'}@.service", name)
        argv = [_here(word, tmp_path) for word in unit.command({})]
        processes.append(subprocess.Popen(unit.confined(argv), stderr=subprocess.PIPE, text=True))
    yield every
    for process in processes:
        process.terminate()
    words = [process.communicate(timeout=DEADLINE_S)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], words


def _here(word: str, folder: Path) -> str:
    return word.replace("/opt/mrcfabric/", f"{sys.prefix}/").replace("/etc/mrcfabric/daemons/", f"{folder}/")


@pytest.mark.integration
@pytest.mark.slow
async def test_daemons_of_units_carry_a_message(units: dict[str, dict[str, Any]]) -> None:
    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(ControlClient(tuple(table["control"]), REALM.of(name)))
            for name, table in units.items()
        }

        async def tell(nic: str, op: str, **figures: Any) -> Any:
            answer = await clients[nic].call("command", {"op": op, "args": figures}, timeout_s=DEADLINE_S)
            return answer["result"]

        keys = {}
        for nic, peer_index in (("h000", 1), ("h001", 0)):
            keys[nic] = await tell(nic, "register_memory", va=0, length=MESSAGE_BYTES)
            await tell(nic, "create_qp", qpn=5)
            peer = {"peer_index": peer_index, "peer_qpn": 5, "psn_send": 0, "psn_receive": 0}
            await tell(nic, "connect_qp", qpn=5, **peer)
        for nic in keys:
            await tell(nic, "modify_qp", qpn=5, state="rts")
        write = {"local_region": keys["h000"]["region_id"], "local_va": 0, "remote_va": 0, "wr_id": 1}
        await tell("h000", "post_write", qpn=5, length=MESSAGE_BYTES, r_key=keys["h001"]["r_key"], **write)

        async def placed() -> bool:
            counters = await clients["h001"].call("counters")
            return bool(counters["core"]["bytes_placed"] == MESSAGE_BYTES)

        await eventually_true(placed, DEADLINE_S)
