"""The ops that every daemon has, asked of one switch on real sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from switchd.daemon import build
from tests.support.daemons import Bench, daemons
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

NODE = "p0-t0-0"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with daemons({NODE: build}) as bench:
        yield bench


async def test_status(bench: Bench) -> None:
    first = await bench.call(NODE, "status")
    assert (first["node"], first["kind"], first["fabric"], first["incarnation"]) == (NODE, "switch", "tiny", 0)
    assert first["alone"]
    drive = bench.daemons[NODE].drive
    await eventually(lambda: drive.now_ns > first["now_ns"], deadline_s=20)
    assert (await bench.call(NODE, "status"))["now_ns"] > first["now_ns"]


async def test_counters(bench: Bench) -> None:
    counters = await bench.call(NODE, "counters")
    assert counters["core"]["received"] == 0
    assert counters["fidelity"]["host_drops"] == 0
    assert counters["control"]["requests"] == 1
    assert counters["process"]["cpu_ns"] > 0
    assert (await bench.call(NODE, "counters", parts=["fidelity", "none"])).keys() == {"fidelity"}
    with pytest.raises(RefusedError, match="list of names"):
        await bench.call(NODE, "counters", parts="core")


async def test_commands_are_answered_when_done(bench: Bench) -> None:
    assert "set_impairment" in await bench.call(NODE, "commands")
    at_ns = bench.daemons[NODE].drive.now_ns + 5_000
    args = {"port": 2, "impairment": {"up": False}}
    answer = await bench.call(NODE, "command", op="set_impairment", args=args, at_ns=at_ns)
    assert answer["at_ns"] == at_ns
    assert bench.daemons[NODE].core.now_ns >= at_ns


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "command needs op"),
        ({"op": "set_impairment", "args": 5}, "command needs op"),
        ({"op": "reboot"}, "no command is called reboot"),
        ({"op": "set_impairment", "args": {"port": 0, "impairment": {"up": 2}}}, "is not a truth value"),
        ({"op": "set_impairment", "args": {"port": 99, "impairment": {}}}, "99"),
        ({"op": "clear_impairments", "at_ns": -4}, "at_ns: -4 will not do"),
    ],
)
async def test_commands_refused(bench: Bench, args: dict[str, object], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        await bench.clients[NODE].call("command", args)


async def test_a_late_command_is_carried_out_and_counted(bench: Bench) -> None:
    await eventually(lambda: bench.daemons[NODE].drive.now_ns > 1_000, deadline_s=20)
    answer = await bench.call(NODE, "command", op="clear_impairments", at_ns=1)
    assert answer["at_ns"] > 1
    assert (await bench.call(NODE, "counters"))["fidelity"]["late_commands"] == 1


async def test_answers_to_commands_are_no_events(bench: Bench) -> None:
    await bench.command(NODE, "clear_impairments")
    assert (await bench.call(NODE, "events"))["events"] == []
    with pytest.raises(RefusedError, match="limit: 'x'"):
        await bench.call(NODE, "events", limit="x")


async def test_no_trace_without_asking(bench: Bench) -> None:
    with pytest.raises(RefusedError, match="set trace: true"):
        await bench.call(NODE, "trace")


async def test_a_trace(bench: Bench) -> None:
    async with daemons({NODE: build}, {"trace": True}) as traced:
        await traced.command(NODE, "clear_impairments")
        trace = await traced.call(NODE, "trace")
        assert trace["events"][0] == 1
        assert len(trace["digest"]) == 32


async def test_stop_answers_first(bench: Bench) -> None:
    assert await bench.call(NODE, "stop") is None
    assert bench.stop.is_set()


async def test_control_is_cut_for_as_long_as_was_said(bench: Bench) -> None:
    daemon = bench.daemons[NODE]
    start_ns = daemon.drive.now_ns + 20_000
    end_ns = start_ns + 20_000
    later = asyncio.create_task(bench.call(NODE, "command", op="clear_impairments", at_ns=start_ns + 10_000))
    assert await bench.call(NODE, "cut_control", windows=[[start_ns, end_ns]]) == {"windows": [[start_ns, end_ns]]}
    await eventually(lambda: daemon.drive.now_ns >= start_ns, deadline_s=20)
    # Asked again and again until it is heard.
    assert (await bench.call(NODE, "status"))["now_ns"] >= end_ns
    assert (await later)["at_ns"] == start_ns + 10_000
    assert (await bench.call(NODE, "counters"))["control"]["drops"]["cut_off"] > 0
    with pytest.raises(RefusedError, match="windows: wanted a list"):
        await bench.call(NODE, "cut_control")


async def test_scripted_commands_come_at_their_instants() -> None:
    down = {"port": 1, "impairment": {"up": False}}
    healed = {"port": 1, "impairment": {}}
    start_ns = 5_000_000_000
    commands = [
        {"at_ns": start_ns, "op": "set_impairment", "args": {"port": 0, "impairment": {"up": False}}},
        {"at_ns": start_ns + 10, "op": "set_impairment", "args": healed},
        {"at_ns": start_ns + 5, "op": "set_impairment", "args": down},
        {"at_ns": start_ns + 20, "op": "set_impairment", "args": {"port": 2, "impairment": {"loss_ppm": 5}}},
    ]
    async with daemons({NODE: build}, {"commands": commands, "start_ns": start_ns}) as bench:
        await eventually(lambda: bench.daemons[NODE].drive.now_ns > start_ns + 20, deadline_s=20)
        faults = await bench.call(NODE, "impairments")
        assert {port for port, fault in faults.items() if not fault.get("up", True)} == set()
        assert faults["2"]["loss_ppm"] == 5


async def test_a_wrong_script_is_the_operators_mistake() -> None:
    with pytest.raises(ConfigError, match=r"p0-t0-0: commands\[0\]: no command is called set_altitude"):
        async with daemons({NODE: build}, {"commands": [{"at_ns": 5, "op": "set_altitude"}]}):
            raise AssertionError("it must not start")


async def test_the_daemon_of_a_crowd_does_not_crash_alone() -> None:
    async with daemons({NODE: build}) as bench:
        daemon = bench.daemons[NODE]
        daemon.alone = False
        with pytest.raises(RefusedError, match="carries other nodes too"):
            await bench.call(NODE, "crash", at_ns=1)
        assert not (await bench.call(NODE, "status"))["alone"]


async def test_many_questions_at_once(bench: Bench) -> None:
    answers = await asyncio.gather(*(bench.call(NODE, "status") for _ in range(100)))
    assert {answer["node"] for answer in answers} == {NODE}
