"""Captures of a real fabric: every packet once per link, in order, through faults, crashes and the fabric's end."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.packet_filter import PacketFilter
from orchestrator.captures.capture import Outcome, Request, capture
from orchestrator.captures.sink import Sink
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

    async def ended(self, *, stop: bool = True) -> Outcome:
        if stop:
            self.stop.set()
        async with asyncio.timeout(DEADLINE_S):
            return await self.task


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
    rows = fields(
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


async def test_a_capture_of_one_qp_and_kind_through_the_door_of_the_agent(served: Fabric, tmp_path: Path) -> None:
    write = await connect(served)
    wanted = PacketFilter(qps=((0, write["qpn"]),), kinds=("sack", "ack"))
    async with Fabric.attach(run_dir=served.folder.path) as attached:
        one = Capturing(attached, tmp_path / "x.pcapng", ("of=h000",), wanted=wanted, clock="wall")
        await one.begun()
        await write_once(served, write, MESSAGE_BYTES)
        outcome = await one.ended()
    rows = fields(one.file, (INFO, "frame.interface_name", "frame.time_epoch", "frame.comment", "mrc.qp"))
    assert outcome.packets == len(rows) > 5
    assert {row["frame.interface_name"][0] for row in rows} <= {"p0-t0-0>h000", "p1-t0-0>h000"}
    assert {int(row["mrc.qp"][0], 16) for row in rows} == {write["qpn"]}
    assert {row[INFO][0].split(" to ")[0] for row in rows} == {"Reliability SACK", "Acknowledge"}
    assert float(rows[0]["frame.time_epoch"][0]) > 1.7e9
    assert rows[0]["frame.comment"][0].startswith("fabric ")


async def test_a_link_that_is_cut_is_captured_as_it_is(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    fault = await broken(fabric, "link_down", "p0-t0-0~p0-t1-1")
    one = Capturing(fabric, tmp_path / "x.pcapng", ("tier=t0-t1", "plane=0"))
    await one.begun()
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    dark = await one.ended()
    crossed = Counter(row["frame.interface_name"][0] for row in fields(one.file, ("frame.interface_name",)))
    assert crossed["p0-t0-0>p0-t1-1"] == crossed["p0-t1-1>p0-t0-0"] == 0
    assert crossed["p0-t0-0>p0-t1-0"] > 0
    assert dark.again == ()
    await healed(fabric, fault)


async def test_a_capture_ends_at_its_bound(fabric: Fabric, tmp_path: Path) -> None:
    write = await connect(fabric)
    bounds: list[tuple[dict[str, int], str]] = [
        ({"packets_max": 7}, "as many packets"),
        ({"size_bytes_max": 8000}, "the file is full"),
        ({"for_ns": 1_000_000}, "the time is over"),
    ]
    wr_ids = itertools.count(1)
    for bound, why in bounds:
        await idle_totals(fabric)
        one = Capturing(fabric, tmp_path / "x.pcapng", ("of=h000",), **bound)
        await one.begun()
        while not one.task.done():
            await write_once(fabric, write, MESSAGE_BYTES, next(wr_ids))
        outcome = one.task.result()
        assert why in outcome.why
        rows = fields(one.file, ("frame.time_epoch", "frame.number"))
        assert len(rows) == outcome.packets > 0
        assert outcome.packets <= bound.get("packets_max", 1 << 30)
        assert outcome.size_bytes == one.file.stat().st_size <= bound.get("size_bytes_max", 1 << 30)
        if "for_ns" in bound:
            assert float(rows[-1]["frame.time_epoch"][0]) - float(rows[0]["frame.time_epoch"][0]) <= 1e-3


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
        if any(
            row["frame.interface_name"] == ["p0-t1-0>p0-t0-1"] for row in fields(one.file, ("frame.interface_name",))
        ):
            break
    outcome = await one.ended()
    assert outcome.again == ("p0-t1-0",)
    assert one.file.stat().st_size > before


async def test_the_end_of_the_fabric_ends_the_file_in_good_order(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        write = await connect(fabric)
        one = Capturing(fabric, tmp_path / "x.pcapng", ("of=h000",))
        await one.begun()
        await write_once(fabric, write, 4096)
        outcome = await one.ended()
        assert outcome.packets > 0
    rows = fields(one.file, ("frame.number",))
    assert len(rows) == outcome.packets


async def test_a_bound_that_has_no_room_for_the_head_is_a_mistake(fabric: Fabric, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too few for the head"):
        await Capturing(fabric, tmp_path / "x.pcapng", size_bytes_max=100).ended(stop=False)
