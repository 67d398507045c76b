"""The bed of real daemons: time stands where it was told to, and a death that nobody asked for ends it."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mrcfabric.errors import RefusedError
from nicd.programs.program import Program
from orchestrator.api.readings import Death
from orchestrator.fabric import Fabric
from orchestrator.runs.bed import BedLostError
from orchestrator.runs.udp_bed import UdpBed, obituary
from tests.support.runs import BEGIN_NS, RTT_NS, TOPOLOGY, pair, reboot

pytestmark = pytest.mark.integration


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    async with Fabric.launch(TOPOLOGY, tmp_path / "run", limit_ns=0) as one:
        yield one


async def test_time_stands_where_it_was_told_to(fabric: Fabric) -> None:
    bed = UdpBed(fabric, 0)
    await bed.load([pair(), pair("more", 1)])
    assert bed.now_ns == 2
    await bed.run_until(BEGIN_NS + 12_345)
    assert (bed.now_ns, bed.idle) == (BEGIN_NS + 12_345, False)
    reading = await fabric.clock()
    assert (reading.now_ns, reading.front_ns, reading.standing) == (BEGIN_NS + 12_345, BEGIN_NS + 12_345, True)
    await bed.run_until(BEGIN_NS + 400 * RTT_NS)
    assert (bed.now_ns, bed.idle) == (BEGIN_NS + 400 * RTT_NS, True), "nothing is left to do"
    assert (await bed.ask("h001", "progress"))["pair"]["state"] == "done"
    assert (await bed.fidelity())["valid"]


async def test_a_fault_is_never_late_while_time_stands(fabric: Fabric) -> None:
    bed = UdpBed(fabric, 0)
    await bed.load([pair()])
    await bed.run_until(BEGIN_NS + 8 * RTT_NS - 1)
    await bed.inject(reboot(8, 30))
    assert [fault.kind for fault in bed.faults()] == ["switch_reboot"]
    await bed.run_until(BEGIN_NS + 38 * RTT_NS)
    answer = (await bed.counters(["p0-t1-1"]))["p0-t1-1"]
    assert answer["process"]["incarnation"] == 1
    assert bed.faults() == []
    assert (await bed.fidelity())["late_commands"] == 0


async def test_a_program_that_a_nic_refuses_is_refused(fabric: Fabric) -> None:
    with pytest.raises(RefusedError, match=r"h00[01]: program p begins at 1"):
        await UdpBed(fabric, 0).load([Program("p", "p2p", 0, (0, 1), 1, "seed")])


async def test_a_death_that_nobody_asked_for_is_told_with_the_last_words(fabric: Fabric) -> None:
    bed = UdpBed(fabric, 0)
    await bed.load([pair(messages=512)])
    await bed.run_until(BEGIN_NS + 5 * RTT_NS)
    child = fabric.roster.member("p1-t0-0").child
    assert child is not None
    os.kill(child.pid, signal.SIGTERM)
    with pytest.raises(BedLostError, match=r"p1-t0-0 at \d+ ns: exit code 0\n  p1-t0-0 ready"):
        await go_on(bed)


async def go_on(bed: UdpBed) -> None:
    for rtts in range(6, 400):
        await bed.run_until(BEGIN_NS + rtts * RTT_NS)


async def test_the_end_of_all_processes_is_told(fabric: Fabric) -> None:
    bed = UdpBed(fabric, 0, broken=fabric.broken)
    await bed.load([pair(messages=512)])
    os.kill(fabric.state()["forkserver_pid"], signal.SIGKILL)
    with pytest.raises(BedLostError, match="the fork server has ended"):
        await go_on(bed)


def test_an_obituary_is_one_line_and_the_last_lines() -> None:
    assert obituary(Death("h001", 12, "SIGKILL", ())) == "h001 at 12 ns: SIGKILL"
    assert obituary(Death("h001", 12, "exit code 1", ("a", "b"))) == "h001 at 12 ns: exit code 1\n  a\n  b"
