"""`mrcfabric nic state` and `mrcfabric nic sram`."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.cli.commands.nic import render_all, render_one
from orchestrator.cli.main import build_app
from orchestrator.fabric import Fabric
from tests.nicd.core import fabric as virtual
from tests.orchestrator.running import DEADLINE_S, ask, connect
from tests.support.wait import eventually


def test_reports_of_a_core_can_be_read() -> None:
    pair = Topology(
        name="pair", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
    )
    fabric = virtual.Fabric(pair)
    assert render_one("h000", fabric.core("h000").state_report()).startswith("h000: 0 QPs to 0 NICs\n")
    fabric.permutation(1, 4_096)
    fabric.simulator.run(10)
    reports = {name: fabric.core(name).state_report() for name in pair.nic_names()}
    one = render_one("h000", reports["h000"])
    assert one.startswith("h000: 2 QPs to 1 NICs\non-chip memory unlimited")
    for piece in ("qp_context", "inflight", "destinations", "memory_keys", "total"):
        assert f"\n{piece} " in one
    assert "(with the host)" in one
    assert render_all(reports).count("\n") == pair.nics


def test_a_nic_with_rc_says_nothing_of_destinations() -> None:
    pair = Topology(
        name="pair", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, nic={"transport": "rc"},
        switch={"forwarding": "ecmp"},
    )  # fmt: skip
    fabric = virtual.Fabric(pair)
    assert render_one("h000", fabric.core("h000").state_report()).startswith("h000: 0 QPs to 0 NICs\n")
    fabric.permutation(1, 4_096)
    fabric.simulator.run(10)
    reports = {name: fabric.core(name).state_report() for name in pair.nic_names()}
    one = render_one("h000", reports["h000"])
    assert one.startswith("h000: 2 QPs to 1 NICs\non-chip memory unlimited, a slot of 512 bytes per QP")
    assert "\nqp_context " in one
    assert "destinations" not in one
    assert render_all(reports).splitlines()[1].split()[:4] == ["h000", "2", "0", "1"]


def test_goodput_over_the_size_of_the_memory() -> None:
    def run(*words: str) -> str:
        return CliRunner().invoke(build_app(), ("nic", "sram", *words), catch_exceptions=False).stdout

    words = ("--qps", "8", "--set", "nic.sram_fetches=1", "--set", "nic.sram_miss_ns=2us")
    rows = json.loads(run(*words, "--json"))
    assert [row["capacity"] for row in rows] == [8, 8, 6, 4, 2, 1]
    assert rows[0]["goodput_bps"] > 2 * rows[-1]["goodput_bps"]
    assert run(*words).startswith("sram bytes ")
    with pytest.raises(ConfigError, match="2 to"):
        run("--qps", "1")
    with pytest.raises(ConfigError, match="sram_miss_ns"):
        run("--set", "nic.sram_miss_ns=0")


@pytest.mark.integration
async def test_the_state_of_a_running_nic(served: Fabric) -> None:
    await connect(served)
    folder = served.folder.path

    async def command(*words: str) -> str:
        return await asyncio.to_thread(ask, folder, "nic", "state", *words, "--run-dir", str(folder))

    assert "h001: 1 QPs to 1 NICs" in await command("h001")
    reports = json.loads(await command("--json"))
    assert reports["h000"]["total"]["now"] > 0
    await served.add_fault("nic_crash", "h001")
    await eventually(lambda: not served.alive("h001"), DEADLINE_S)
    assert (await command()).splitlines()[-1] == "h001 is down (SIGKILL)"
    reports = json.loads(await command("--json"))
    assert reports["h000"]["total"]["now"] > 0
    assert reports["h001"] == {"error": "h001 is down (SIGKILL)"}
    assert (await command()).startswith("nic    QPs")
