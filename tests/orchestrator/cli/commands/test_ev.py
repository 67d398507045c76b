"""`mrcfabric ev`: EVs and paths barred and allowed, and EV events."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.commands.ev import _evs
from orchestrator.fabric import Fabric
from tests.orchestrator.running import SMALL_FLAGS, T1, ask, connect, fails, run

pytestmark = pytest.mark.integration


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, *arguments, "--run-dir", str(folder))


async def test_evs_are_listed_barred_and_allowed(served: Fabric) -> None:
    assert "h000: no EVs" in await command(served, "ev", "list", "h000")
    await connect(served)
    listed = await command(served, "ev", "list", "h000")
    assert listed.splitlines()[-1] == "20 EVs: 20 good"
    rows = json.loads(await command(served, "ev", "list", "h000", "--qpn", "5", "--json"))
    assert {row["plane"] for row in rows} == {0, 1}
    assert {row["qpn"] for row in rows} == {5}
    assert json.loads(await command(served, "ev", "list", "h000", "h001", "--json")) == rows
    ev = f"0x{rows[0]['ev']:08x}"
    assert f"deny: h000 QP 5 EV {ev} at" in await command(served, "ev", "deny", "h000", "5", ev)
    denied = json.loads(await command(served, "ev", "list", "h000", "--state", "denied", "--json"))
    assert [row["ev"] for row in denied] == [rows[0]["ev"]]
    await command(served, "ev", "allow", "h000", "5", ev)
    assert await command(served, "ev", "list", "h000", "--state", "denied") == "h000: no EVs in that state\n"


class CountingClient:
    """Answers as an agent whose NIC has many QPs, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def call(self, _nic: str, op: str, args: dict[str, Any]) -> list[dict[str, Any]]:
        self.asked.append(op)
        return [{"qpn": qpn, "ev": 1} for qpn in args["qpns"]]


@pytest.mark.parametrize(("qps", "questions"), [(0, 0), (1, 1), (256, 1), (257, 2)])
def test_a_nic_is_asked_once_for_the_evs_of_many_qps(qps: int, questions: int) -> None:
    client = CountingClient()
    rows = _evs(client, "h000", list(range(qps)))  # type: ignore[arg-type]
    assert [row["qpn"] for row in rows] == list(range(qps))
    assert client.asked == ["ev_tables"] * questions


async def test_paths_are_denied_and_allowed_for_all_qps(served: Fabric) -> None:
    await connect(served)
    said = await command(served, "ev", "deny-path", "h000", "0", "--path", "1", "--peer", "h001")
    assert "deny: h000 plane 0 path 1 towards h001: 5 EVs changed, 1 entries" in said
    denied = json.loads(await command(served, "ev", "list", "h000", "--state", "denied", "--json"))
    assert {(row["plane"], row["path"]) for row in denied} == {(0, 1)}
    assert await command(served, "ev", "denied", "h000") == "plane 0  path 1  peer 1\n"
    assert "5 EVs changed, 0 entries" in await command(served, "ev", "allow-path", "h000", "0")
    assert "no path is denied" in await command(served, "ev", "denied", "h000")
    assert json.loads(await command(served, "ev", "denied", "h000", "--json")) == []
    assert len((await command(served, "ev", "events", "h000", "--json")).splitlines()) == 5


async def test_the_last_path_is_denied_only_for_who_says_so(served: Fabric) -> None:
    folder = served.folder.path
    at = ("--run-dir", str(folder))
    await command(served, "ev", "deny-path", "h000", "0")
    told = await asyncio.to_thread(fails, folder, "ev", "deny-path", "h000", "1", *at, code=1)
    assert "h000 would have no path left to h001, and its QPs to them would fail; --cut-off" in told
    assert await command(served, "ev", "denied", "h000") == "plane 0  path all  peer all\n"
    assert "2 entries" in await command(served, "ev", "deny-path", "h000", "1", "--cut-off")
    assert "3 entries" in await command(served, "ev", "deny-path", "h000", "1", "--path", "0"), "nothing more is lost"


async def test_the_last_ev_of_a_qp_is_denied_only_for_who_says_so(served: Fabric) -> None:
    await connect(served)
    folder = served.folder.path
    rows = json.loads(await command(served, "ev", "list", "h000", "--qpn", "5", "--json"))
    for row in rows[1:]:
        await served.command("h000", "deny_ev", {"qpn": 5, "ev": row["ev"]})
    last = ("ev", "deny", "h000", "5", f"0x{rows[0]['ev']:08x}")
    told = await asyncio.to_thread(fails, folder, *last, "--run-dir", str(folder), code=1)
    assert "QP 5 of h000 has no other EV that is not denied, and would fail; --cut-off" in told
    assert "deny: h000 QP 5" in await command(served, *last, "--cut-off")


async def test_evs_are_probed(served: Fabric) -> None:
    await connect(served)
    answer = json.loads(await command(served, "ev", "probe", "h000", "5", "--json"))
    assert answer["done"]
    assert {row["outcome"] for row in answer["rows"]} == {"answered"}
    ev = f"0x{answer['rows'][0]['ev']:08x}"
    one = await command(served, "ev", "probe", "h000", "5", "--ev", ev)
    assert one.startswith(f"{ev}  port 1  answered")
    assert one.count("\n") == 1


async def test_mistakes_and_refusals_are_one_line(served: Fabric) -> None:
    folder = served.folder.path
    at = ("--run-dir", str(folder))
    assert "is no entropy value" in await asyncio.to_thread(fails, folder, "ev", "deny", "h000", "5", "path", *at)
    assert "is no entropy value" in await asyncio.to_thread(fails, folder, "ev", "probe", "h000", "5", "--ev", "x", *at)
    assert "64 bits" in await asyncio.to_thread(fails, folder, "ev", "list", "h000", "--qpn", str(1 << 64), *at)
    assert "QP 5" in await asyncio.to_thread(fails, folder, "ev", "deny", "h000", "5", "0x1", *at, code=1)
    assert "nearest is h001" in await asyncio.to_thread(fails, folder, "ev", "list", "h009", *at)
    assert "no QP towards h001" in await asyncio.to_thread(fails, folder, "ev", "list", "h000", "h001", *at)
    assert "no such state" in await asyncio.to_thread(fails, folder, "ev", "list", "h000", "--state", "well", *at)
    for word in ("deny-path", "allow-path"):
        told = await asyncio.to_thread(fails, folder, "ev", word, "h000", "0", "--peer", "h000", *at)
        assert "--peer h000: h000 has no path towards itself" in told
    assert "no path is denied" in await command(served, "ev", "denied", "h000")
    for words in (("list", T1), ("deny", T1, "5", "0x1")):
        assert "where a NIC is wanted" in await asyncio.to_thread(fails, folder, "ev", *words, *at)


RC = ("--set", "nic.transport=rc", "--set", "switch.forwarding=ecmp")


def test_a_fabric_without_evs_says_so_in_one_line(tmp_path: Path) -> None:
    ask(tmp_path, "up", *SMALL_FLAGS, *RC, "--detach")
    try:
        ask(tmp_path, "work", "start", "p2p", "h000", "h001")
        for words in (("list", "h000"), ("events", "h000"), ("profile", "list", "h000"), ("deny", "h000", "5", "1")):
            assert "only MRC has EVs" in fails(tmp_path, "ev", *words)
        assert "only MRC NICs probe links" in fails(tmp_path, "mapper", "--once")
        followed = ask(tmp_path, "trace", "--share", "1%", "--count", "1")
        assert ": source port " in followed
        assert " by hash 0x" in followed
        assert "EVs" not in ask(tmp_path, "top", "-n", "1")
        assert "a slot of 512 bytes per QP" in ask(tmp_path, "nic", "state", "h000")
        ask(tmp_path, "work", "stop", "--all")
        assert "[IBTA 10.3.1]" in ask(tmp_path, "events")
    finally:
        run(tmp_path, "down")
