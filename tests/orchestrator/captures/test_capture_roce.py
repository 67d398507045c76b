"""A capture of a fabric that runs RoCE over lossless switches: stock programs read every packet and every pause."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from mrcfabric.naming import port_mac
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pcapng import captured
from mrcfabric.wire.pfc import parse
from mrcfabric.wire.roce_packet import dissect
from orchestrator.captures.capture import Outcome, Request, capture
from orchestrator.captures.sink import Sink
from orchestrator.captures.wires import links_meant, wires_of
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, SMALL
from tests.support.tshark import fields

pytestmark = pytest.mark.integration

LOSSLESS = replace(
    SMALL,
    planes=1,
    nics_per_t0=2,
    nic={"transport": "rc", "cc": "none"},
    switch={"forwarding": "ecmp", "lossless": "pfc", "pfc_threshold": "static", "pfc_xoff_bytes": 20_000},
)
MESSAGE_BYTES = 200_000
"""Far more than a port and its headroom take: without pauses that are obeyed, packets would be dropped."""
ZERO = ("-o", "udp.ignore_ipv6_zero_checksum:TRUE")
COMPLAINTS = ("_ws.malformed", "_ws.short", "macc.dst_address_invalid", "eth.fcs_bad")


@pytest.fixture
async def lossless(tmp_path: Path) -> AsyncIterator[Fabric]:
    async with Fabric.launch(LOSSLESS, tmp_path / "small") as one:
        yield one


async def test_every_packet_and_every_pause_is_read_by_others(lossless: Fabric, tmp_path: Path) -> None:
    file = tmp_path / "x.pcapng"
    outcome = await incast(lossless, file)
    read = await asyncio.to_thread(records, file)
    assert (len(read), outcome.lost) == (outcome.packets, 0)
    assert (await lossless.fidelity())["valid"]
    totals = await lossless.totals()
    assert (totals["drops"], totals["retransmits"]) == (0, 0)
    packets = [one for one in read if not isinstance(one, ControlFrame)]
    assert len(packets) > 3 * MESSAGE_BYTES // 4096
    for one in packets:
        packet, reason = dissect(one)
        assert reason is None
        assert packet.icrc_good
    asked = ("frame.interface_name", "eth.src", "macc.cbfc.enbv", "macc.cbfc.pause_time.c3", "infiniband.bth.opcode")
    rows = await asyncio.to_thread(fields, file, (*asked, *COMPLAINTS), *ZERO, scripts=())
    assert not any(row[name] for row in rows for name in COMPLAINTS)
    assert sum(bool(row["infiniband.bth.opcode"]) for row in rows) == len(packets)
    macs = {
        f"{wire.name} control": port_mac(wire.sender, wire.port).hex(":")
        for wire in wires_of(LOSSLESS, links_meant(LOSSLESS, (), "both", ()))
    }
    pauses = defaultdict(list)
    for row in rows:
        if row["eth.src"]:
            (name,) = row["frame.interface_name"]
            assert row["eth.src"] == [macs[name]]
            assert int(row["macc.cbfc.enbv"][0], 0) == 1 << 3
            pauses[name].append(int(row["macc.cbfc.pause_time.c3"][0]))
    assert sum(map(len, pauses.values())) == len(read) - len(packets) > 0
    for times in pauses.values():
        assert times[0] > 0, "a pause comes first"
        assert times[-1] == 0, "nobody stays paused"


async def incast(fabric: Fabric, file: Path) -> Outcome:
    """All NICs write to one, while every link is captured into `file`."""
    stop, begun = asyncio.Event(), asyncio.Event()
    wires = wires_of(LOSSLESS, links_meant(LOSSLESS, (), "both", ()))

    async def capturing() -> Outcome:
        with Sink(str(file)) as sink:
            return await capture(fabric, Request(wires, snap_bytes=1 << 14), sink, stop, begun.set)

    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(capturing())
        await begun.wait()
        work = await fabric.start("incast", ranks="all", figures={"message_bytes": MESSAGE_BYTES, "messages": 1})
        done = await work.finished()
        assert sum(rank.bytes_verified for rank in done.ranks) == 3 * MESSAGE_BYTES
        stop.set()
        return await task


def records(file: Path) -> list[bytes]:
    with file.open("rb") as stream:
        found = [one.packet for one in captured(stream, str(file))]
    assert all(parse(one) is not None for one in found if isinstance(one, ControlFrame))
    return found
