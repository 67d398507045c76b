"""Captures of a real fabric: every packet once per link, in order, through faults, crashes and the fabric's end."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from struct import unpack_from
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.units import serialization_ns
from mrcfabric.wire import pcapng
from orchestrator.captures import capture as capturing
from orchestrator.captures.capture import Outcome, Request, capture
from orchestrator.captures.sink import Sink
from orchestrator.captures.taps import RECORDS_LEAST, FabricTaps
from orchestrator.captures.wires import links_meant, wires_of
from orchestrator.fabric import Fabric
from tests.orchestrator.running import (
    DEADLINE_S,
    MESSAGE_BYTES,
    SMALL,
    broken,
    connect,
    healed,
    idle_totals,
    totals_when_placed,
)
from tests.support.tshark import INFO, fields
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


class Capturing:
    """A capture that goes on beside the test."""

    def __init__(self, fabric: Any, file: Path, words: Sequence[str] = (), **request: Any) -> None:
        self.file = file
        self.stop = asyncio.Event()
        wires = wires_of(SMALL, links_meant(SMALL, words, "both", ()))
        self.task = asyncio.create_task(self._run(fabric, Request(wires, **request)))

    async def _run(self, fabric: Any, request: Request) -> Outcome:
        with Sink(str(self.file)) as sink:
            return await capture(fabric, request, sink, self.stop)

    async def begun(self) -> None:
        """The head of the file is written when all taps are set."""
        await eventually(lambda: self.task.done() or (self.file.exists() and self.file.stat().st_size), DEADLINE_S)

    async def looked(self) -> None:
        """A look's time has passed, or the capture has ended: what happens meanwhile would only be work for both."""
        await asyncio.wait([self.task], timeout=capturing.ASLEEP_WALL_S)

    async def ended(self, *, stop: bool = True) -> Outcome:
        if stop:
            self.stop.set()
        async with asyncio.timeout(DEADLINE_S):
            return await self.task


async def rows_of(file: Path, names: Sequence[str], *arguments: str) -> list[dict[str, list[str]]]:
    """`fields` in a thread: who keeps this loop waiting keeps the fabric from falling asleep, and it computes on."""
    return await asyncio.to_thread(fields, file, names, *arguments)


async def write_once(fabric: Fabric, write: dict[str, Any], length: int, wr_id: int = 1) -> None:
    """Post a write and wait until its completion."""
    await fabric.command("h000", "post_write", {**write, "length": length, "wr_id": wr_id})
    await eventually_true(lambda: _quiet(fabric), DEADLINE_S)


async def _quiet(fabric: Fabric) -> bool:
    return (await fabric.clock()).idle


async def test_every_packet_is_there_once_for_each_link_that_it_crossed(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    one = Capturing(fabric, tmp_path / "x.pcapng", snap_bytes=65_536)
    await one.begun()
    await write_once(fabric, write, 20 * 4096)
    outcome = await one.ended()
    rows = await rows_of(
        one.file, ("frame.interface_name", "frame.time_epoch", "mrc.psn", "mrc.opcode", "mrc.icrc_good",
        "ipv6.dst_host"), "-Nn", "-omrc.icrc:TRUE",
    )  # fmt: skip
    assert (outcome.packets, outcome.lost, outcome.again, outcome.why) == (len(rows), 0, (), "it was stopped")
    assert outcome.size_bytes == one.file.stat().st_size
    stamps = [float(row["frame.time_epoch"][0]) for row in rows]
    assert stamps == sorted(stamps)
    assert all(row["mrc.icrc_good"] == ["1"] for row in rows)
    data = [row for row in rows if 0xC6 <= int(row["mrc.opcode"][0], 16) <= 0xCB]
    crossings = Counter(row["mrc.psn"][0] for row in data)
    assert set(crossings.values()) == {4}
    assert len(crossings) == 20
    ways = {row["frame.interface_name"][0] for row in data}
    assert {"h000>p0-t0-0", "h000>p1-t0-0", "p0-t0-1>h001", "p1-t0-1>h001"} <= ways
    assert all(row["ipv6.dst_host"][1] == "h001" for row in data)
    assert {row["ipv6.dst_host"][0] for row in data if row["frame.interface_name"] == ["h000>p0-t0-0"]} <= {
        f"p0-t0-0>p0-t1-{t1}>p0-t0-1>h001" for t1 in range(2)
    }


async def test_both_clocks_are_right(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    names = ("frame.interface_name", "frame.time_epoch", "frame.len", "frame.comment", "mrc.psn", "mrc.opcode")
    found = {}
    began_s = time.time()
    for clock in ("fabric", "wall"):
        one = Capturing(fabric, tmp_path / f"{clock}.pcapng", clock=clock)
        await one.begun()
        await write_once(fabric, write, 40 * 4096, len(found) + 1)
        await one.ended()
        found[clock] = await rows_of(one.file, names)
    ended_s = time.time()
    latest: dict[str, int] = {}
    crossings: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in found["fabric"]:
        way, size = row["frame.interface_name"][0], int(row["frame.len"][0])
        at_ns = round(Decimal(row["frame.time_epoch"][0]) * 10**9)
        taken_ns = serialization_ns(size + OVERHEAD_BYTES, SMALL.rate_bps)
        assert at_ns - latest.get(way, 0) >= taken_ns, "no packet starts before the one in front of it has left"
        latest[way] = at_ns
        crossings.setdefault((row["mrc.psn"][0], row["mrc.opcode"][0]), []).append((at_ns, taken_ns))
        assert began_s <= wall_s(row["frame.comment"][0]) <= ended_s
    for passed in crossings.values():
        for (before_ns, _), (after_ns, taken_ns) in itertools.pairwise(passed):
            assert len(passed) > 4 or after_ns - before_ns >= SMALL.link_delay_ns + taken_ns
    assert sum(len(passed) == 4 for passed in crossings.values()) >= 40
    stamps = [float(row["frame.time_epoch"][0]) for row in found["wall"]]
    fabric_ns = [int(row["frame.comment"][0].split()[1]) for row in found["wall"]]
    assert (stamps, fabric_ns) == (sorted(stamps), sorted(fabric_ns))
    assert began_s <= stamps[0] <= stamps[-1] <= ended_s
    assert fabric_ns[0] > max(latest.values())


def wall_s(comment: str) -> float:
    return datetime.fromisoformat(comment.removeprefix("wall ")).timestamp()


async def test_a_capture_of_one_qp_and_kind_through_the_door_of_the_agent(served: Fabric, tmp_path: Path) -> None:
    write = await connect(served)
    wanted = PacketFilter(qps=((0, write["qpn"]),), kinds=("sack", "ack"))
    async with Fabric.attach(run_dir=served.folder.path) as attached:
        one = Capturing(attached, tmp_path / "x.pcapng", ("of=h000",), wanted=wanted, clock="wall")
        await one.begun()
        await write_once(served, write, MESSAGE_BYTES)
        outcome = await one.ended()
    rows = await rows_of(one.file, (INFO, "frame.interface_name", "frame.time_epoch", "frame.comment", "mrc.qp"))
    assert outcome.packets == len(rows) > 5
    assert {row["frame.interface_name"][0] for row in rows} <= {"p0-t0-0>h000", "p1-t0-0>h000"}
    assert {int(row["mrc.qp"][0], 16) for row in rows} == {write["qpn"]}
    assert {row[INFO][0].split(" to ")[0] for row in rows} == {"Reliability SACK", "Acknowledge"}
    assert float(rows[0]["frame.time_epoch"][0]) > 1.7e9
    assert rows[0]["frame.comment"][0].startswith("fabric ")


@pytest.mark.long
async def test_a_link_that_is_cut_is_captured_as_it_is(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    fault = await broken(fabric, "link_down", "p0-t0-0~p0-t1-1")
    one = Capturing(fabric, tmp_path / "x.pcapng", ("tier=t0-t1", "plane=0"))
    await one.begun()
    await fabric.command("h000", "post_write", {**write, "length": MESSAGE_BYTES // 4, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES // 4)
    dark = await one.ended()
    await healed(fabric, fault)
    rows = await rows_of(one.file, ("frame.interface_name",))
    crossed = Counter(row["frame.interface_name"][0] for row in rows)
    assert crossed["p0-t0-0>p0-t1-1"] == crossed["p0-t1-1>p0-t0-0"] == 0
    assert crossed["p0-t0-0>p0-t1-0"] > 0
    assert dark.again == ()


ALL = 1 << 30
"""More answers than there are."""


class Lossy:
    """A fabric between which and us the answers of one node are lost, so many times from some moment on."""

    def __init__(self, fabric: Fabric, node: str) -> None:
        self._fabric = fabric
        self._node = node
        self.to_lose = 0

    async def call(self, node: str, op: str, *rest: Any) -> Any:
        if node == self._node and op == "tapped" and self.to_lose:
            self.to_lose -= 1
            raise NoAnswerError(op)
        return await self._fabric.call(node, op, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fabric, name)


async def test_who_does_not_answer_at_the_end_is_asked_again_and_then_named(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    captured = []
    for wr_id, to_lose in enumerate((0, capturing.LAST_LOOKS - 1, ALL), 1):
        await idle_totals(fabric)
        lossy = Lossy(fabric, "h000")
        one = Capturing(lossy, tmp_path / f"{wr_id}.pcapng", ("h000>*",), wanted=PacketFilter(kinds=("data",)))
        await one.begun()
        lossy.to_lose = ALL
        await write_once(fabric, write, MESSAGE_BYTES // 8, wr_id)
        one.stop.set()
        lossy.to_lose = to_lose
        outcome = await one.ended()
        captured.append(outcome.packets)
        assert outcome.silent == (("h000",) if to_lose == ALL else ())
    assert captured == [MESSAGE_BYTES // 8 // SMALL.mtu_bytes] * 2 + [0]


async def test_a_capture_ends_at_its_bound(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    bounds: list[tuple[dict[str, int], str]] = [
        ({"packets_max": 7}, "as many packets"),
        ({"size_bytes_max": 8000}, "the file is full"),
        ({"for_ns": 200_000}, "the time is over"),
    ]
    wr_ids = itertools.count(1)
    for bound, why in bounds:
        await idle_totals(fabric)
        one = Capturing(fabric, tmp_path / "x.pcapng", ("of=h000",), **bound)
        await one.begun()
        while not one.task.done():
            await write_once(fabric, write, MESSAGE_BYTES, next(wr_ids))
            await one.looked()
        outcome = one.task.result()
        assert why in outcome.why
        rows = await rows_of(one.file, ("frame.time_epoch", "frame.number"))
        assert len(rows) == outcome.packets > 0
        assert outcome.packets <= bound.get("packets_max", 1 << 30)
        assert outcome.size_bytes == one.file.stat().st_size <= bound.get("size_bytes_max", 1 << 30)
        if "for_ns" in bound:
            assert float(rows[-1]["frame.time_epoch"][0]) - float(rows[0]["frame.time_epoch"][0]) <= 2e-4


async def test_a_node_that_dies_and_returns_is_listened_to_again(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    one = Capturing(fabric, tmp_path / "x.pcapng", ("of=p0-t1-0",))
    await one.begun()
    fault = await broken(fabric, "switch_crash", "p0-t1-0")
    await eventually(lambda: not fabric.alive("p0-t1-0"), DEADLINE_S)
    await healed(fabric, fault)
    await eventually(lambda: fabric.alive("p0-t1-0"), DEADLINE_S)
    before = one.file.stat().st_size
    for wr_id in range(1, 60):
        await write_once(fabric, write, MESSAGE_BYTES // 8, wr_id)
        await one.looked()
        seen = await rows_of(one.file, ("frame.interface_name",))
        if any(row["frame.interface_name"] == ["p0-t1-0>p0-t0-1"] for row in seen):
            break
    outcome = await one.ended()
    assert outcome.again == ("p0-t1-0",)
    assert one.file.stat().st_size > before


async def test_what_comes_too_fast_is_missing_and_counted_with_its_interface(
    fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturing, "FabricTaps", partial(FabricTaps, records_max=1))
    monkeypatch.setattr(capturing, "LOOK_WALL_S", DEADLINE_S)
    write = await connect(fabric)
    one = Capturing(fabric, tmp_path / "x.pcapng")
    await one.begun()
    before = await sent_by_ports(fabric)
    await write_once(fabric, write, MESSAGE_BYTES)
    outcome = await one.ended()
    after = await sent_by_ports(fabric)
    names, counted = interface_statistics(one.file)
    assert {name: received for name, (received, _) in zip(names, counted, strict=True)} == {
        name: after[name] - before[name] for name in names
    }
    assert sum(dropped for _, dropped in counted) == outcome.lost > 100
    assert sum(received - dropped for received, dropped in counted) == outcome.packets > RECORDS_LEAST
    assert {name[:5] for name, (_, dropped) in zip(names, counted, strict=True) if dropped} >= {"h000>", "p0-t0"}


async def sent_by_ports(fabric: Fabric) -> dict[str, int]:
    """Packets that each direction of a link has carried."""
    counters = await fabric.counters()
    ports = {
        (node, int(port)): counted["packets"]
        for node, found in counters.items()
        for port, counted in found["core"]["ports"].items()
    }
    return {f"{node}>{end.peer}": ports[node, end.port] for node in counters for end in SMALL.ports(node)}


def interface_statistics(file: Path) -> tuple[list[str], list[tuple[int, int]]]:
    """Names of the interfaces, and (received, dropped) of each."""
    data, place = file.read_bytes(), 0
    names, counted = [], []
    while place < len(data):
        kind, length = unpack_from("<II", data, place)
        if kind == pcapng.INTERFACE:
            size = unpack_from("<H", data, place + 18)[0]
            names.append(data[place + 20 : place + 20 + size].decode())
        elif kind == pcapng.INTERFACE_STATISTICS:
            # Four options of eight bytes each: begin, end, received, dropped.
            counted.append(unpack_from("<24x4xQ4xQ", data, place + 20))
        place += length
    return names, counted


async def test_the_end_of_the_fabric_ends_the_file_in_good_order(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        write = await connect(fabric)
        one = Capturing(fabric, tmp_path / "x.pcapng", ("of=h000",))
        await one.begun()
        await write_once(fabric, write, 4096)
        outcome = await one.ended()
        assert outcome.packets > 0
    rows = await rows_of(one.file, ("frame.number",))
    assert len(rows) == outcome.packets


async def test_a_bound_that_has_no_room_for_the_head_is_a_mistake(fabric: Fabric, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too few for the head"):
        await Capturing(fabric, tmp_path / "x.pcapng", size_bytes_max=100).ended(stop=False)
