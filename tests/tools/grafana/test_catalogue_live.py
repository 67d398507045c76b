"""Every expression of every board has an answer: a real Prometheus scrapes a real fabric with work and faults."""

import asyncio
import math
import re
import socket
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mrcfabric.topology_file import read
from orchestrator.agent.agent import Agent
from orchestrator.fabric import Fabric
from orchestrator.prometheus.prometheus_server import prometheus_beside
from orchestrator.prometheus.rule import Pace
from tests.orchestrator.running import SMALL, broken
from tests.support.boards import annotated, expanded, expressions
from tests.support.packages import program
from tools.grafana import systems
from tools.grafana.catalogue import BOARDS

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PACE = Pace(1000)
ANSWERED_WALL_S = 45.0
POLL_S = 0.5
"""Half a scrape."""
PERIOD_NS = 50_000
DILATION = 5000.0
"""Slow enough to leave the processor to those who scrape and ask, fast enough for faults to show within seconds."""
CHOSEN = {"__rate_interval": PACE.window, "fabric": "small", "plane": ".+", "node": ".+"}
"""What Grafana would put in for one fabric, and `All` planes and nodes."""
ROCE = read(None, [
    "name=small", "system=roce-pfc-only", "planes=1", "t0_per_plane=2", "t1_per_plane=2", "nics_per_t0=2",
    "switch.pfc_threshold=static", "switch.pfc_xoff_bytes=40000", f"dilation={DILATION}",
]).topology  # fmt: skip
"""With a bound that three senders reach at once: to fill the system's buffer takes longer than the test waits."""
IB = read(None, [
    "name=small", "system=ib", "planes=1", "t0_per_plane=2", "t1_per_plane=2", "nics_per_t0=2", "switch.vl_blocks=130",
    f"dilation={DILATION}",
]).topology  # fmt: skip
UET = read(None, [
    "name=small", "system=uet-rccc", "planes=1", "t0_per_plane=2", "t1_per_plane=2", "nics_per_t0=2",
    f"dilation={DILATION}",
]).topology  # fmt: skip
ROUTED = read(None, [
    "name=small", "system=roce-no-pfc", "planes=1", "t0_per_plane=2", "t1_per_plane=2", "nics_per_t0=2",
    "link_delay_ns=4ms", "rate_bps=100M", "switch.routing=bgp", "switch.bfd=true", "dilation=1",
]).topology  # fmt: skip
"""Long links: the seconds that routing cores count are few steps of the fabric."""
FAULTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("rate_limit", "h001~p0-t0-1", {"rate_bps": 40_000_000_000}),
    ("corruption", "h000~p1-t0-0", {"share_ppm": 20_000}),
    ("loss", "h000~p0-t0-0", {"share_ppm": 20_000}),
    ("loss", "p1-t0-0~p1-t1-0", {"share_ppm": 50_000}),
    ("switch_freeze", "p1-t1-1", {}),
    ("link_down", "p0-t0-0~p0-t1-0", {}),
)
"""Queues, losses and silence, then an end to carriers and nodes."""
LAST = (("switch_crash", "p1-t1-0"), ("nic_port_down", "h000:1"))
FIRST_SEEN = (
    "rate(mrc_nic_drops_total[$__rate_interval]) > 0",
    "rate(mrc_switch_drops_total[$__rate_interval]) > 0",
    'mrc_nic_evs{state="assumed_bad"} > 0',
)
"""What the others have to show before carriers and nodes go: that it grows from scrape to scrape, as boards ask for it,
and not only that it happened."""


@pytest.fixture
async def fabric(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Fabric]:
    topology = getattr(request, "param", replace(SMALL, dilation=DILATION))
    async with Fabric.launch(topology, tmp_path / "small") as one:
        yield one


UET_METRICS = re.compile(r"mrc_nic_uet_")
IB_METRICS = re.compile(
    r"mrc_(nic_vl|nic_path|nic_paths|nic_subnet|switch_vl|switch_lft|switch_flow_control|switch_subnet"
    r"|switch_routing_notices|switch_avoided)_"
)
ROUTING_METRICS = re.compile(r"mrc_switch_routing_(?!notices_)")
ROCE_METRICS = re.compile(
    r"mrc_(nic_rc|nic_uet|nic_port_paused|switch_pfc|switch_buffer|switch_ecmp)_"
    rf"|{IB_METRICS.pattern}|{ROUTING_METRICS.pattern}"
)
"""No fabric of MRC has series of these."""


def asked_for() -> set[str]:
    """Every expression of every board that a fabric of MRC answers, and the series behind its variables."""
    found = {one for board in BOARDS for one in (*expressions(board), *annotated(board))}
    for board in BOARDS:
        queries = (one["query"]["query"] for one in board.json()["templating"]["list"] if one["type"] == "query")
        found |= {match[1] for query in queries if (match := re.fullmatch(r"label_values\((.+), [a-z]+\)", query))}
    return {one for one in found if not ROCE_METRICS.search(one)}


def systems_asked(own: re.Pattern[str] | None) -> set[str]:
    """Every expression of the board of systems with such metrics; None: all but those of UET and of InfiniBand."""
    found = set(expressions(systems.BOARD))
    if own is not None:
        return {one for one in found if own.search(one)}
    others = UET_METRICS, IB_METRICS, ROUTING_METRICS
    return {one for one in found if not any(other.search(one) for other in others)}


async def answered(
    session: aiohttp.ClientSession, url: str, expression: str, since_s: float, above: float = -math.inf
) -> bool:
    """Whether it has had a finite value, greater than another one, at any moment since then, Unix time."""
    query = {"query": expanded(expression, **CHOSEN), "start": since_s, "end": time.time(), "step": 1}
    async with session.get(f"{url}/api/v1/query_range", params=query) as answer:
        body = await answer.json()
    assert body["status"] == "success", (expression, body)
    return any(above < float(value) < math.inf for series in body["data"]["result"] for _, value in series["values"])


async def until_answered(session: aiohttp.ClientSession, url: str, wanted: Collection[str], since_s: float) -> None:
    """Wait until each expression has had a value since then."""
    left, end = set(wanted), time.monotonic() + ANSWERED_WALL_S
    while left and time.monotonic() < end:
        left = {one for one in left if not await answered(session, url, one, since_s)}
        await asyncio.sleep(POLL_S)
    assert not sorted(left)


async def test_no_expression_stays_without_an_answer(served: Fabric, agent: Agent) -> None:
    program("prometheus")
    since_s = time.time()
    async with prometheus_beside(served, PACE) as beside, aiohttp.ClientSession() as session:
        await served.start("training", figures={"steps": 10_000, "bucket_bytes": 1 << 14, "compute_ns": 1000})
        await served.start("p2p", figures={"message_bytes": 1 << 18, "for_ns": 1 << 40})
        await agent.links.watch(PERIOD_NS)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"who are you?", served.layout.control_address("h000"))
        for kind, target, figures in FAULTS:
            await broken(served, kind, target, **figures)
        await until_answered(session, beside.url, FIRST_SEEN, since_s)
        for kind, target in LAST:
            await broken(served, kind, target)
        await until_answered(session, beside.url, asked_for(), since_s)
        for expression in {one for board in BOARDS for one in annotated(board) if "ALERTS" not in one}:
            assert await answered(session, beside.url, expression, since_s, above=0), "Grafana shows nothing that is 0"


@pytest.mark.long
@pytest.mark.parametrize("fabric", [ROCE], indirect=True)
async def test_the_board_of_systems_is_answered_by_a_fabric_that_pauses(served: Fabric, agent: Agent) -> None:
    program("prometheus")
    since_s = time.time()
    async with prometheus_beside(served, PACE) as beside, aiohttp.ClientSession() as session:
        await served.start("incast", figures={"message_bytes": 1 << 18, "for_ns": 1 << 40})
        await broken(served, "loss", "h001~p0-t0-0", share_ppm=1_000)
        await until_answered(session, beside.url, systems_asked(None), since_s)


@pytest.mark.long
@pytest.mark.parametrize("fabric", [UET], indirect=True)
async def test_the_board_of_systems_is_answered_by_a_fabric_of_uet(served: Fabric, agent: Agent) -> None:
    program("prometheus")
    since_s = time.time()
    async with prometheus_beside(served, PACE) as beside, aiohttp.ClientSession() as session:
        await served.start("incast", figures={"message_bytes": 1 << 18, "for_ns": 1 << 40})
        await broken(served, "loss", "h001~p0-t0-0", share_ppm=1_000)
        await until_answered(session, beside.url, systems_asked(UET_METRICS), since_s)


@pytest.mark.long
@pytest.mark.parametrize("fabric", [IB], indirect=True)
async def test_the_board_of_systems_is_answered_by_a_fabric_of_infiniband(served: Fabric, agent: Agent) -> None:
    program("prometheus")
    since_s = time.time()
    async with prometheus_beside(served, PACE) as beside, aiohttp.ClientSession() as session:
        await served.start("incast", figures={"message_bytes": 1 << 18, "for_ns": 1 << 40})
        wanted = {one for one in systems_asked(IB_METRICS) if "manager" not in one}
        await until_answered(session, beside.url, wanted, since_s)


@pytest.mark.long
@pytest.mark.parametrize("fabric", [ROUTED], indirect=True)
async def test_the_board_of_systems_is_answered_by_a_fabric_that_routes(served: Fabric, agent: Agent) -> None:
    program("prometheus")
    since_s = time.time()
    async with prometheus_beside(served, PACE) as beside, aiohttp.ClientSession() as session:
        await served.start("incast", figures={"message_bytes": 1 << 14, "for_ns": 1 << 40})
        await broken(served, "link_down", "p0-t0-0~p0-t1-0")
        await until_answered(session, beside.url, systems_asked(ROUTING_METRICS), since_s)
