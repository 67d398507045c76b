"""The backend of real daemons: time stands where it was told to, and a death that nobody asked for ends it."""

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from nicd.programs.program import Program
from orchestrator.fabric import Fabric
from orchestrator.fabric.readings import ClockReading
from orchestrator.runs.backend import BackendLostError
from orchestrator.runs.udp_backend import UdpBackend
from tests.support.runs import BEGIN_NS, RTT_NS, TOPOLOGY, pair, reboot

pytestmark = pytest.mark.integration


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    async with Fabric.launch(TOPOLOGY, tmp_path / "run", limit_ns=0) as one:
        yield one


async def test_time_stands_where_it_was_told_to(fabric: Fabric) -> None:
    backend = UdpBackend(fabric, 0)
    await backend.load([pair(), pair("more", 1)])
    assert backend.now_ns == 2
    await backend.run_until(BEGIN_NS + 12_345)
    assert (backend.now_ns, backend.idle) == (BEGIN_NS + 12_345, False)
    reading = await fabric.clock()
    assert (reading.now_ns, reading.front_ns, reading.standing) == (BEGIN_NS + 12_345, BEGIN_NS + 12_345, True)
    await backend.run_until(BEGIN_NS + 400 * RTT_NS)
    assert (backend.now_ns, backend.idle) == (BEGIN_NS + 400 * RTT_NS, True), "nothing is left to do"
    assert (await backend.ask("h001", "progress"))["pair"]["state"] == "done"
    assert (await backend.fidelity())["valid"]


async def test_a_fault_is_never_late_while_time_stands(fabric: Fabric) -> None:
    backend = UdpBackend(fabric, 0)
    await backend.load([pair()])
    await backend.run_until(BEGIN_NS + 8 * RTT_NS - 1)
    await backend.inject(reboot(8, 30))
    assert [fault.kind for fault in backend.faults()] == ["switch_reboot"]
    await backend.run_until(BEGIN_NS + 38 * RTT_NS)
    answer = (await backend.counters(["p0-t1-1"]))["p0-t1-1"]
    assert answer["process"]["incarnation"] == 1
    assert backend.faults() == []
    assert (await backend.fidelity())["late_commands"] == 0


class _Silent(Fabric):
    """A fabric that leaves some questions unanswered, and before the last of them its hosts hear each other again;
    nothing of it runs."""

    def __init__(self, silences: int) -> None:
        self.topology = TOPOLOGY
        self.silences = silences

    async def counters(self, nodes: Sequence[str] | None = None, **_others: Any) -> dict[str, dict[str, Any]]:
        self.silences -= 1
        if self.silences >= 0:
            raise NoAnswerError("counters: no answer")
        return {node: {"process": {"incarnation": 0}} for node in nodes or ()}

    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        return next(iter((await self.counters([node])).values()))

    async def clock(self) -> ClockReading:
        return ClockReading(0, 0, 0, 0, 0, False, False, "run", {}, whole=self.silences <= 0)


async def test_hosts_that_do_not_hear_each_other_for_a_while_end_no_run() -> None:
    for silences in (2, 5):
        assert await UdpBackend(_Silent(silences), 0).counters(["h000"]) == {"h000": {"process": {"incarnation": 0}}}
        assert await UdpBackend(_Silent(silences), 0).ask("h000", "progress") == {"process": {"incarnation": 0}}
    with pytest.raises(BackendLostError, match="no answer"):
        await UdpBackend(_Silent(1), 0).counters(["h000"])


async def test_a_program_that_a_nic_refuses_is_refused(fabric: Fabric) -> None:
    with pytest.raises(RefusedError, match=r"h00[01]: program p begins at 1"):
        await UdpBackend(fabric, 0).load([Program("p", "p2p", 0, (0, 1), 1, "seed")])


async def test_a_death_that_nobody_asked_for_is_told_with_the_last_words(fabric: Fabric) -> None:
    backend = UdpBackend(fabric, 0)
    await backend.load([pair(messages=512)])
    await backend.run_until(BEGIN_NS + 5 * RTT_NS)
    child = fabric.daemons.member("p1-t0-0").child
    assert child is not None
    os.kill(child.pid, signal.SIGTERM)
    with pytest.raises(BackendLostError, match=r"p1-t0-0 at \d+ ns: exit code 0\n  p1-t0-0 ready"):
        await go_on(backend)


async def go_on(backend: UdpBackend) -> None:
    for rtts in range(6, 400):
        await backend.run_until(BEGIN_NS + rtts * RTT_NS)


async def test_the_end_of_all_processes_is_told(fabric: Fabric) -> None:
    backend = UdpBackend(fabric, 0, broken=fabric.broken)
    await backend.load([pair(messages=512)])
    os.kill(fabric.state()["forkserver_pid"], signal.SIGKILL)
    with pytest.raises(BackendLostError, match="the fork server has ended"):
        await go_on(backend)
