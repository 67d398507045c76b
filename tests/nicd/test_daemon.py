"""Two NICs and their switch as daemons on real sockets: data moves, and the tables show it."""

from pathlib import Path
from typing import Any

import pytest

import nicd.daemon
import switchd.daemon
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.metrics import text
from nicd.verbs import AsyncDevice
from tests.orchestrator.running import DEADLINE_S
from tests.support.daemons import Bench, daemons, tables
from tests.support.wait import eventually_true

pytestmark = pytest.mark.integration

LENGTH = 50_000
VA = 0x1000
QPN = 10
NODES = {"h000": nicd.daemon.build, "h001": nicd.daemon.build, "p0-t0-0": switchd.daemon.build}


async def regions_and_qps(bench: Bench) -> dict[str, dict[str, Any]]:
    regions = {}
    for node, peer in (("h000", 1), ("h001", 0)):
        regions[node] = await bench.command(node, "register_memory", va=VA, length=LENGTH)
        await bench.command(node, "create_qp", qpn=QPN)
        await bench.command(node, "connect_qp", qpn=QPN, peer_index=peer, peer_qpn=QPN, psn_send=5, psn_receive=5)
    for node in regions:
        await bench.command(node, "modify_qp", qpn=QPN, state="rts")
    return regions


async def placed(bench: Bench, size: int) -> dict[str, Any]:
    """The receiver's counters once `size` bytes are there."""
    while True:
        counters: dict[str, Any] = await bench.call("h001", "counters")
        if counters["core"]["bytes_placed"] >= size:
            return counters


async def test_a_write_by_commands() -> None:
    async with daemons(NODES) as bench:
        regions = await regions_and_qps(bench)
        await bench.command(
            "h000", "post_write", qpn=QPN, wr_id=1, local_region=regions["h000"]["region_id"], local_va=VA,
            length=LENGTH, remote_va=VA, r_key=regions["h001"]["r_key"],
        )  # fmt: skip
        counters = await placed(bench, LENGTH)
        assert counters["core"]["bytes_placed"] == LENGTH
        bins = await bench.call("h001", "bins", since=0)
        assert sum(sum(planes) for _start_ns, planes in bins) == LENGTH
        (row,) = await bench.call("h000", "qp_table")
        assert (row["qpn"], row["state"]) == (QPN, "rts")
        # Its congestion window, as NSCC keeps it.
        assert 0 < row["cwnd_bytes"] <= row["cwnd_bytes_max"]
        assert 0 <= row["average_delay_ns"] < row["base_rtt_ns"]
        windows = (await bench.call("h000", "counters"))["core"]["windows"]
        assert windows["count"] == 1
        evs = await bench.call("h000", "ev_table", qpn=QPN)
        assert len(evs) == 20
        assert await bench.call("h000", "ev_tables", qpns=[QPN, 77, QPN]) == [{"qpn": QPN, **row} for row in evs]
        for qpns in (None, QPN, ["x"]):
            with pytest.raises(RefusedError, match="ev_tables needs qpns"):
                await bench.call("h000", "ev_tables", qpns=qpns)
        changes = await bench.call("h000", "events")
        assert [event["target"] for event in changes["events"]] == ["init", "rtr", "rts"]


async def test_a_controller_bars_a_plane_of_all_qps() -> None:
    async with daemons(NODES) as bench:
        await regions_and_qps(bench)
        answer = await bench.command("h000", "deny_paths", plane=0)
        assert (answer["entries"], answer["evs"]) == (1, 20)
        (way,) = await bench.call("h000", "reverse_paths")
        assert (way["peer_index"], way["plane"], way["usable"]) == (1, 0, False)
        assert await bench.call("h000", "denied_paths") == [{"plane": 0, "path": None, "peer_index": None}]
        assert {row["state"] for row in await bench.call("h000", "ev_table", qpn=QPN)} == {"DENIED"}
        await bench.command("h000", "allow_paths", plane=0)
        assert {row["state"] for row in await bench.call("h000", "ev_table", qpn=QPN)} == {"GOOD"}
        batch = (await bench.command("h000", "probe_evs", qpn=QPN))["batch"]
        while not (answer := await bench.call("h000", "ev_probes", batch=batch))["done"]:
            pass
        assert {row["outcome"] for row in answer["rows"]} == {"answered"}
        with pytest.raises(RefusedError, match="no batch 9"):
            await bench.call("h000", "ev_probes", batch=9)
        with pytest.raises(RefusedError, match="no plane 9"):
            await bench.command("h000", "deny_paths", plane=9)


async def test_a_controller_makes_a_profile_and_hears_of_its_evs() -> None:
    async with daemons({"h000": nicd.daemon.build}) as bench:
        await bench.command("h000", "create_ev_profile", profile=4)
        evs = ["0x00000000", "0x00004000", "0x00008000"]
        await bench.command("h000", "modify_ev_profile", profile=4, mode="explicit", evs=evs, state="offline")
        await bench.command("h000", "modify_ev_profile", profile=4, state="online")
        await bench.command("h000", "create_qp", qpn=QPN, profile=4)
        await bench.command("h000", "connect_qp", qpn=QPN, peer_index=1, peer_qpn=QPN, psn_send=5, psn_receive=5)
        assert [row["ev"] for row in await bench.call("h000", "ev_table", qpn=QPN)] == [0, 0x4000, 0x8000]
        await bench.command("h000", "deny_profile_ev", profile=4, ev=0x4000)
        rows = await bench.call("h000", "ev_profile", profile=4)
        assert [row["state"] for row in rows] == ["GOOD", "DENIED", "GOOD"]
        await bench.command("h000", "allow_profile_ev", profile=4, ev=0x4000)
        (event,) = await bench.call("h000", "ev_events")
        assert (event["ev"], event["state"], event["drop_count"]) == (0x4000, "GOOD", 0)
        await bench.command("h000", "replace_ev", profile=4, ev=0x4000, value="0x0000c000")
        profiles = await bench.call("h000", "ev_profiles")
        assert [(row["profile"], row["users"]) for row in profiles] == [(0, 0), (4, 1)]
        with pytest.raises(RefusedError, match="1 QPs are tied to it"):
            await bench.command("h000", "modify_ev_profile", profile=4, state="offline")
        with pytest.raises(RefusedError, match="ev_profile needs profile"):
            await bench.call("h000", "ev_profile")


async def test_limits_are_agreed_by_commands() -> None:
    async with daemons(NODES) as bench:
        offer = await bench.command("h000", "create_qp", qpn=QPN, mpr=9, max_wimm=40, dynamic_mpr=True, incast=3)
        assert (offer["mpr"], offer["max_wimm"], offer["dynamic_mpr"], offer["trim_nack"]) == (9, 40, True, True)
        agreed = await bench.command(
            "h000", "connect_qp", qpn=QPN, peer_index=1, peer_qpn=QPN, psn_send=5, psn_receive=5,
            peer_mpr=16, peer_max_wimm=64, peer_dynamic_mpr=True, peer_trim_nack=False,
        )  # fmt: skip
        expected = {"receive_mpr": 9, "send_mpr": 16, "receive_wimm": 40, "send_wimm": 64, "dynamic_mpr": 1,
                    "trim_nack": 0}  # fmt: skip
        (row,) = await bench.call("h000", "qp_table")
        for name, value in expected.items():
            assert (agreed[name], row[name]) == (value, value)
        await bench.command("h000", "modify_qp", qpn=QPN, state="rts", timeout_exponent=9, retry_linear=1)
        with pytest.raises(RefusedError, match="an MPR of 0"):
            await bench.command("h000", "create_qp", mpr=0)


async def test_questions_that_make_no_sense() -> None:
    async with daemons({"h000": nicd.daemon.build}) as bench:
        with pytest.raises(RefusedError, match="ev_table needs qpn"):
            await bench.call("h000", "ev_table")
        with pytest.raises(RefusedError, match="h000 has no QP 77"):
            await bench.call("h000", "ev_table", qpn=77)
        with pytest.raises(RefusedError, match="since: -1"):
            await bench.call("h000", "bins", since=-1)
        with pytest.raises(RefusedError, match="no argument memory"):
            await bench.command("h000", "register_memory", va=1, length=2, memory=b"")


async def test_a_nic_probes_the_links_around_it() -> None:
    async with daemons(NODES) as bench:
        await bench.command("h000", "probe_links", period_ns=20_000, rounds=5)

        async def over() -> bool:
            table = await bench.call("h000", "link_table")
            return table["rounds_left"] == 0 and not table["waiting"]

        await eventually_true(over, DEADLINE_S)
        table = await bench.call("h000", "link_table")
        rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
        assert [(row["plane"], row["sent"], row["back"]) for row in rows if row["t1"] is None] == [(0, 5, 5)]
        with pytest.raises(RefusedError, match="a period of 5 ns"):
            await bench.command("h000", "probe_links", period_ns=5)


async def test_applications_are_served_beside_commands(tmp_path: Path) -> None:
    path = tmp_path / "h000.sock"
    async with daemons({"h000": nicd.daemon.build}, {"verbs": str(path)}) as bench:
        async with await AsyncDevice.open(str(path)) as device:
            qp = await device.create_qp()
            (row,) = await bench.call("h000", "qp_table")
            assert row["qpn"] == qp.local.qpn
            counters = await bench.call("h000", "counters")
            assert counters["verbs"]["clients"] == 1
        assert b"mrc_nic_applications" in text(bench.daemons["h000"].families(await bench.call("h000", "counters")))
    assert not path.exists()


async def test_a_verbs_socket_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="verbs socket"):
        async with daemons({"h000": nicd.daemon.build}, {"verbs": str(tmp_path / "absent" / "h000.sock")}):
            raise AssertionError("it must not start")


def test_a_switch_is_no_nic(capsys: pytest.CaptureFixture[str]) -> None:
    assert nicd.daemon.run_nicd(tables()["p0-t0-0"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "p0-t0-0" in error


async def test_state_in_bytes_is_told() -> None:
    async with daemons(NODES) as bench:
        await regions_and_qps(bench)
        report = await bench.call("h000", "state")
        (row,) = report["qps"]
        assert (row["qpn"], row["peer_index"], row["resident"]) == (QPN, 1, True)
        assert 0 < row["now"]["on_chip"] <= row["peak"]["on_chip"] < row["reserved"]["on_chip"]
        assert report["nic"]["now"]["memory_keys"] > 0
        counters = await bench.call("h000", "counters")
        assert counters["core"]["contexts"]["capacity"] == 0
