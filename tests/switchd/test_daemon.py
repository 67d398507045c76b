"""What a switch's daemon answers beside what all daemons do."""

import asyncio

import msgpack
import pytest

from mrcfabric import daemon_config
from mrcfabric.control import ControlClient
from mrcfabric.control_message import PAGE_BYTES
from mrcfabric.errors import RefusedError
from switchd.daemon import build, run_switchd
from tests.support.daemons import HOST, REALM, TINY, daemons, tables

NODE = "p0-t0-0"


@pytest.mark.integration
async def test_impairments_are_shown_by_port() -> None:
    async with daemons({NODE: build}) as bench:
        await bench.command(NODE, "set_impairment", port=1, impairment={"loss_ppm": 10})
        assert await bench.call(NODE, "impairments") == {"1": {"loss_ppm": 10}}
        await bench.command(NODE, "clear_impairments")
        assert await bench.call(NODE, "impairments") == {}


@pytest.mark.integration
async def test_trimming_and_marking_are_set_through_the_command_table() -> None:
    async with daemons({NODE: build}) as bench:
        assert {"set_trim", "set_ecn"} <= set(await bench.call(NODE, "commands"))
        await bench.command(NODE, "set_trim", on=False, port=1)
        await bench.command(NODE, "set_ecn", on=True)
        rows = await bench.call(NODE, "ports")
        assert [(row["towards"], row["trim"], row["ecn"]) for row in rows] == [
            ("nic", True, True), ("nic", False, True), ("t1", True, True),
        ]  # fmt: skip
        await bench.command(NODE, "set_trim", on=True, port=1, dscp=12)
        (row,) = await bench.call(NODE, "ports", port=1)
        assert (row["trim"], row["trim_dscp"]) == (True, 12)
        for wrong in ({"on": True, "port": 3}, {"on": 1}, {"on": True, "dscp": 46}, {"port": 1}):
            with pytest.raises(RefusedError):
                await bench.command(NODE, "set_trim", **wrong)
        with pytest.raises(RefusedError, match="no port 3"):
            await bench.call(NODE, "ports", port=3)


@pytest.mark.integration
async def test_the_table_is_shown_with_its_counters() -> None:
    async with daemons({NODE: build}) as bench:
        rows = await bench.call(NODE, "usids")
        table = daemon_config.from_table(tables()[NODE]).topology.fib(NODE)
        assert {row["usid"]: row["port"] for row in rows} == table
        assert {(row["kind"], row["packets"], row["bytes"]) for row in rows} == {("uN", 0, 0)}


def test_a_nic_is_no_switch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_switchd([tables()["h000"]]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "h000" in error


def test_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_switchd([]) == 2
    assert capsys.readouterr().err == "switchd: configuration: names no node\n"


def test_daemons_of_one_process_keep_one_time(capsys: pytest.CaptureFixture[str]) -> None:
    both = [tables()["p0-t0-0"], tables()["p0-t1-0"]]
    both[1]["clock"] = {"dilation": 5}
    assert run_switchd(both, title="p0") == 2
    assert "p0: clock: the daemons of one process must keep the same time" in capsys.readouterr().err


@pytest.mark.integration
async def test_a_switch_of_512_ports_answers_in_pages() -> None:
    topology = {**TINY, "t1_per_plane": 256, "nics_per_t0": 256}
    links = [{"port": port, "local": [HOST, 1024 + port], "peer": [HOST, 2048 + port]} for port in range(512)]
    table = tables()[NODE] | {"topology": topology, "links": links}
    daemon = build(daemon_config.from_table(table), asyncio.Event())
    await daemon.open()
    serving = asyncio.create_task(daemon.serve())
    try:
        async with ControlClient(daemon.config.control, REALM.of(NODE)) as client:
            rows = await client.call("ports")
            assert [row["port"] for row in rows] == list(range(512))
            assert len(msgpack.packb(rows)) > 2 * PAGE_BYTES
            assert len(await client.call("usids")) == 512
            assert [row["port"] for row in await client.call("ports", {"port": 511})] == [511]
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        daemon.close()
