"""What real daemons send under load and faults is read by tshark as `mrcfabric.wire.describe` reads it."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.topology import Topology
from mrcfabric.wire.describe import describe
from mrcfabric.wire.pcapng import captured
from nicd.programs.program import Program
from orchestrator.captures.capture import Request, capture
from orchestrator.captures.sink import Sink
from orchestrator.captures.wires import links_meant, wires_of
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from tests.deploy.wireshark.test_mrc import NAMES, OWN, assert_all_agree
from tests.support.packages import program
from tests.support.tshark import fields

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.long]

STORM = Topology(
    name="storm", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4,
    switch={"data_last_hop": 0.3},
)  # fmt: skip
PACKETS = 2000
KINDS = {"WRITE First", "WRITE Middle", "WRITE Last with Immediate", "trimmed", "Acknowledge", "Reliability SACK",
         "Reliability NACK", "Reliability Probe Request", "Endpoint Request", "Endpoint Response"}  # fmt: skip
DEADLINE_S = 150.0


async def loaded(fabric: Fabric, held_ns: int, over_ns: int) -> None:
    """Everybody writes to one NIC, whose packets are trimmed, while links fail in several ways; fabric time, which
    stands at that instant or goes on to it, goes on after it again, and stands when all is over."""
    figures = {"message_bytes": 1 << 14, "for_ns": 10**9}
    program = Program("incast", "incast", 0, (0, 1, 2, 3), held_ns + 30_000, "storm", figures)
    await fabric.load(program, held_ns + 1)
    begin_ns = held_ns + 45_000
    broken: list[tuple[str, str, dict[str, Any]]] = [
        ("loss", "p0-t0-0~p0-t1-0", {"share_ppm": 50_000}),
        ("link_down", "p1-t0-1~p1-t1-1", {}),
        ("duplication", "h003~p1-t0-1", {"share_ppm": 20_000}),
        ("corruption", "p0-t0-1~p0-t1-1", {"share_ppm": 20_000}),
    ]
    faults = [once(kind, target, at_ns=begin_ns, **settings) for kind, target, settings in broken]
    faults.append(once("link_down", "h001~p0-t0-0", at_ns=begin_ns, until_ns=begin_ns + 30_000))
    await asyncio.gather(*map(fabric.inject, faults))
    await fabric.limit(over_ns)


def kind_of(summary: str) -> str:
    return "trimmed" if summary.startswith("trimmed") else summary.split(" to QP")[0]


async def test_thousands_of_real_packets_of_every_kind_agree(tmp_path: Path) -> None:
    program("tshark")
    async with Fabric.launch(STORM, tmp_path / "run") as fabric:
        wires = wires_of(STORM, links_meant(STORM, (), "both", ()))
        with Sink(str(tmp_path / "x.pcapng")) as sink:
            front_ns, held_ns = (await fabric.clock()).front_ns, await fabric.limit(fabric.soon_ns())
            assert held_ns is not None
            for_ns = held_ns - front_ns + 250_000
            request = Request(wires, snap_bytes=1 << 16, for_ns=for_ns)
            begun = asyncio.Event()
            capturing = asyncio.create_task(capture(fabric, request, sink, asyncio.Event(), begun=begun.set))
            async with asyncio.timeout(DEADLINE_S):
                await begun.wait()
                # The capture begins at `held_ns` at the latest. What daemons did after its end would only make it slow.
                await loaded(fabric, held_ns, held_ns + for_ns + fabric.topology.base_rtt_ns())
                await capturing
    with (tmp_path / "x.pcapng").open("rb") as file:
        packets = [one.packet for one in captured(file, "x")]
    rows = fields(tmp_path / "x.pcapng", [*NAMES, *OWN], "-o", "mrc.icrc:TRUE", "-o", "mrc.roce:FALSE")
    kinds = Counter(kind_of(describe(packet).summary) for packet in packets)
    print(kinds, len(packets))
    assert assert_all_agree(rows, packets) > PACKETS
    assert set(kinds) >= KINDS
