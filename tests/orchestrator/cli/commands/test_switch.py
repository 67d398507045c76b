"""`mrcfabric switch`: a running switch looked at and set, by name."""

import asyncio
import json
from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from orchestrator.cli.commands.switch import render_port, render_routes, render_switch, render_usids
from orchestrator.fabric import Fabric
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.routing.summary import route_rows, session_rows
from switchd.core.routing.trouble import State
from switchd.core.switch import Switch
from switchd.rows import port_rows, usid_rows
from tests.orchestrator.running import SMALL, T0, ask, connect, fails, idle_totals
from tests.support.speakers import FIRST_ASN, S, clos


async def command(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, "switch", *arguments, "--run-dir", str(folder))


@pytest.mark.integration
async def test_a_port_is_set_and_shown(served: Fabric) -> None:
    said = await command(served, "set", T0, "--port", "1", "--trim", "off", "--ecn", "on")
    assert [line.partition(" at ")[0] for line in said.splitlines()] == [
        f"{T0} port 1: trim off", f"{T0} port 1: ecn on",
    ]  # fmt: skip
    rows = json.loads(await command(served, "show", T0, "--json"))
    assert [(row["trim"], row["ecn"]) for row in rows] == [(True, False), (False, True), (True, True)]
    assert "trim off; ecn" in await command(served, "show", T0, "--port", "1")
    assert "all ports: trim on" in await command(served, "set", T0, "--trim", "on", "--trim-dscp", "12")
    assert {row["trim_dscp"] for row in json.loads(await command(served, "show", T0, "--json"))} == {12}


@pytest.mark.integration
async def test_the_table_counts_what_went_through(served: Fabric) -> None:
    await served.command("h000", "post_write", {"wr_id": 1, **await connect(served)})
    await idle_totals(served)
    rows = json.loads(await command(served, "show", T0, "--usids", "--json"))
    counters = await served.counters([T0])
    assert sum(row["packets"] for row in rows) == counters[T0]["core"]["received"] > 0
    assert f"{T0}: {counters[T0]['core']['received']} packets received, dropped: nothing" in await command(
        served, "show", T0
    )


@pytest.mark.integration
async def test_mistakes_are_one_line(served: Fabric) -> None:
    folder = served.folder.path
    at = ("--run-dir", str(folder))
    for words, complaint, code in (
        (("set", T0), "nothing is to be set", 2),
        (("set", T0, "--trim", "off", "--trim-dscp", "12"), "give --trim on too", 2),
        (("set", T0, "--trim", "on", "--trim-dscp", "46"), "does not say trimmed", 1),
        (("set", T0, "--ecn", "on", "--port", "9"), f"--port 9: {T0} has no such port (0 to 2)", 2),
        (("show", T0, "--port", "9"), f"--port 9: {T0} has no such port (0 to 2)", 2),
        (("show", "h000"), "is a NIC", 2),
    ):
        assert complaint in await asyncio.to_thread(fails, folder, "switch", *words, *at, code=code)


def test_what_is_printed() -> None:
    switch = Switch(switch_config(SMALL, T0))
    switch.drops["hop_limit"] = 3
    lines = render_switch(T0, switch.counters(), port_rows(switch)).splitlines()
    assert lines[0] == f"{T0}: 0 packets received, dropped: 3 hop_limit"
    assert [line.split()[:4] for line in lines[2:]] == [
        ["0", "nic", "16", "off"], ["1", "t1", "12", "on"], ["2", "t1", "12", "on"],
    ]  # fmt: skip
    port = render_port(port_rows(switch)[0])
    assert "trim to 256 bytes as DSCP 16; ecn off; control share 50 %" in port
    assert "lost on the link: 0 link_down, 0 loss" in port
    table = render_usids(usid_rows(switch)).splitlines()
    assert table[0].split() == ["uSID", "kind", "port", "packets", "bytes"]
    assert len(table) == 1 + len(SMALL.fib(T0))


def test_a_port_of_a_lossless_switch_shows_its_classes() -> None:
    topology = replace(Topology.demo(), switch={"forwarding": "ecmp", "lossless": "pfc"})
    text = render_port(port_rows(build_switch(switch_config(topology, "p0-t0-0")))[0])
    assert "lossless classes 3\n" in text
    assert "control share" not in text
    words = [line.split() for line in text.splitlines()]
    assert ["class", "3"] in words
    assert ["xoff", "sent", "0"] in words
    assert ["headroom", "max", "33612"] in words


def test_sessions_and_routes_are_printed() -> None:
    graph = clos(3, 2, bfd=True)
    graph.run(5 * S)
    graph.cut("t0-0", "t1-0")
    graph.trouble("t0-1", State(stuck=True))
    graph.run(6 * S)
    router = graph.routers["t0-1"]
    found = {"sessions": session_rows(router), "routes": route_rows(router)}
    sessions, routes = (part.splitlines() for part in render_routes(found).split("\n\n"))
    assert sessions[1].split()[:4] == ["0", "t1-0", str(FIRST_ASN), "Established"]
    assert sessions[1].split()[-1] == "up"
    own, stuck, good = (str(graph.prefixes[name][0]) for name in ("t0-1", "t0-0", "t0-2"))
    rows = {line.split()[0]: line.split()[1:] for line in routes[1:]}
    assert rows[own] == ["own", "0", "yes"]
    assert rows[stuck] == ["1", str(FIRST_ASN), str(graph.asns["t0-0"]), "1", "0,1"]
    assert rows[good][0::4] == ["0,1", "yes"]
