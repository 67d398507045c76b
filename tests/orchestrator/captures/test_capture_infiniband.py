"""A capture of a fabric of InfiniBand: a stock program reads every packet and every flow control packet."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.packet_filter import PacketFilter
from mrcfabric.wire.describe import describe
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pcapng import captured
from orchestrator.captures.capture import Outcome, Request, capture
from orchestrator.captures.sink import Sink
from orchestrator.captures.wires import links_meant, wires_of
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, SMALL
from tests.support.tshark import fields

pytestmark = pytest.mark.integration

CREDITED = replace(
    SMALL,
    planes=1,
    nics_per_t0=2,
    nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_lmc": 1, "lid_sl": 1},
    switch={"forwarding": "lft", "lossless": "credits", "vl_blocks": 130},
)
MESSAGE_BYTES = 100_000


async def test_every_packet_and_every_link_packet_is_read_by_others(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    async with Fabric.launch(CREDITED, tmp_path / "small") as fabric:
        outcome = await incast(fabric, file)
        totals = await fabric.totals()
    assert (totals["drops"], totals["retransmits"]) == (0, 0)
    with file.open("rb") as stream:
        read = list(captured(stream, str(file)))
    assert (len(read), outcome.lost) == (outcome.packets, 0)
    links = [one for one in read if isinstance(one.packet, ControlFrame)]
    assert len(read) - len(links) > 3 * MESSAGE_BYTES // 4096
    assert len(links) > 100
    for one in read:
        assert one.infiniband
        assert describe(one.packet, infiniband=True).reason is None
    asked = ("infiniband.lrh.vl", "infiniband.lrh.dlid", "infiniband_link.vl", "_ws.malformed", "_ws.short")
    rows = await asyncio.to_thread(fields, file, asked, scripts=())
    assert not any(row[name] for row in rows for name in asked[3:])
    assert Counter(row["infiniband.lrh.vl"][0] for row in rows if row["infiniband.lrh.vl"]).keys() == {"0x01"}
    assert {row["infiniband_link.vl"][0] for row in rows if row["infiniband_link.vl"]} <= {"0", "1", "0x00", "0x01"}
    assert sum(bool(row["infiniband_link.vl"]) for row in rows) == len(links)


async def test_a_capture_of_some_bytes_and_of_some_packets(tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    async with Fabric.launch(CREDITED, tmp_path / "small") as fabric:
        await incast(fabric, file, snap_bytes=40, kinds=("data",), peers=(0,))
    with file.open("rb") as stream:
        read = list(captured(stream, str(file)))
    assert read
    for one in read:
        assert len(one.packet) == 40
        description = describe(one.packet, left_out=one.cut_bytes, infiniband=True)
        assert description.reason is None
        assert "WRITE" in description.summary
        assert description.size == len(one.packet) + one.cut_bytes > 1_000


async def incast(fabric: Fabric, file: Path, snap_bytes: int = 1 << 14, **wanted: tuple[object, ...]) -> Outcome:
    """All NICs write to one, while every link is captured into `file`."""
    stop, begun = asyncio.Event(), asyncio.Event()
    wires = wires_of(CREDITED, links_meant(CREDITED, (), "both", ()))

    async def capturing() -> Outcome:
        with Sink(str(file)) as sink:
            request = Request(wires, PacketFilter(**wanted), snap_bytes=snap_bytes)
            return await capture(fabric, request, sink, stop, begun.set)

    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(capturing())
        await begun.wait()
        work = await fabric.start("incast", ranks="all", figures={"message_bytes": MESSAGE_BYTES, "messages": 1})
        done = await work.finished()
        assert sum(rank.bytes_verified for rank in done.ranks) == 3 * MESSAGE_BYTES
        stop.set()
        return await task
