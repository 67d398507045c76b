"""What befalls a running fabric: faults, deaths and returns, at exact instants and at any."""

import os
import signal

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator import mishaps, timekeeper
from orchestrator.fabric import Fabric
from orchestrator.faults.table import Stamped
from tests.orchestrator.running import (
    DEADLINE_S,
    MESSAGE_BYTES,
    SMALL,
    T0,
    T1,
    carrier,
    connect,
    idle_totals,
    totals_when_placed,
)
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_messages_survive_a_switch_that_dies_and_returns_at_exact_instants(fabric: Fabric) -> None:
    write = await connect(fabric)
    # The first order wakes the fabric: the others must be with their daemons long before its time gets there.
    crash_ns = fabric.soon_ns() + 1_000_000
    assert await fabric.crash(T1, at_ns=crash_ns, restart_at_ns=crash_ns + 100_000) == crash_ns
    posts = [Stamped(crash_ns - 5000, "h000", "post_write", {**write, "wr_id": number}) for number in range(8)]
    await fabric.schedule(posts)
    await eventually(lambda: [note["kind"] for note in fabric.journal.after(1)] == ["died", "returned"], DEADLINE_S)
    totals = await idle_totals(fabric)
    assert totals["bytes_placed"] == 8 * MESSAGE_BYTES
    assert totals["qp_errors"] == 0
    assert totals["retransmits"] > 0
    died, returned = fabric.journal.after(1)
    assert (died["at_ns"], died["node"], died["planned"]) == (crash_ns, T1, True)
    assert (returned["at_ns"], returned["incarnation"]) == (crash_ns + 100_000, 1)
    fidelity = await fabric.fidelity()
    assert fidelity["valid"]
    assert fidelity["late_commands"] == 0
    assert fabric.unexpected_deaths() == []


async def test_a_port_goes_down_and_comes_back(fabric: Fabric) -> None:
    at_ns = await fabric.nic_port("h001", 1, up=False)
    assert at_ns <= fabric.time.page.fabric_front()
    assert [await carrier(fabric, "h001", plane) for plane in (0, 1)] == [1, 0]
    assert [fault["name"] for fault in fabric.faults()] == ["h001~p1-t0-1"]
    await fabric.nic_port("h001", 1, up=True)
    assert await carrier(fabric, "h001", 1) == 1
    assert fabric.faults() == []


async def test_a_cut_cable_loses_packets_and_is_routed_round(fabric: Fabric) -> None:
    write = await connect(fabric)
    await fabric.link(f"p0-t0-0~{T1}", up=False)
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    totals = await totals_when_placed(fabric, MESSAGE_BYTES)
    assert totals["bytes_placed"] == MESSAGE_BYTES
    assert totals["drops"] > 0
    assert totals["qp_errors"] == 0


async def test_a_killed_t0_takes_the_carrier_of_its_nics_with_it_until_it_returns(fabric: Fabric) -> None:
    await fabric.kill(T0)
    assert not fabric.alive(T0)
    with pytest.raises(RefusedError, match=r"p1-t0-0 is down \(SIGKILL\)"):
        await fabric.call(T0, "status")
    with pytest.raises(RefusedError, match="is down"):
        await fabric.crash(T0)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert await carrier(fabric, "h000", 1) == 0
    await fabric.restart(T0)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert await carrier(fabric, "h000", 1) == 1
    assert (await fabric.call(T0, "status"))["incarnation"] == 1
    with pytest.raises(RefusedError, match="is running"):
        await fabric.restart(T0)
    assert fabric.unexpected_deaths() == []


async def test_a_restarted_switch_knows_the_faults_in_force(fabric: Fabric) -> None:
    write = await connect(fabric)
    uplink = next(end for end in SMALL.ports("p0-t0-0") if end.peer == T1)
    await fabric.link(uplink.link, up=False)
    await fabric.kill("p0-t0-0")
    await fabric.restart("p0-t0-0")
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    counters = await fabric.call("p0-t0-0", "counters")
    assert counters["core"]["ports"][uplink.port]["drops"]["link_down"] > 0


async def test_a_death_nobody_asked_for_is_told(fabric: Fabric) -> None:
    child = fabric.roster.members["h001"].child
    assert child is not None
    os.kill(child.pid, signal.SIGSEGV)
    await eventually(lambda: not fabric.alive("h001"), DEADLINE_S)
    assert [death.split(":")[0] for death in fabric.unexpected_deaths()] == ["h001"]
    # The others go on.
    assert (await fabric.call("h000", "status"))["node"] == "h000"
    assert "h001" not in await fabric.counters()


async def test_a_daemon_that_is_asked_to_stop_does_so_in_good_order(fabric: Fabric) -> None:
    child = fabric.roster.members["h001"].child
    assert child is not None
    os.kill(child.pid, signal.SIGTERM)
    assert await child.ended == 0
    assert fabric.unexpected_deaths() == ["h001: exit code 0"]


async def test_instants_that_cannot_be_met_are_refused(fabric: Fabric) -> None:
    now_ns = fabric.soon_ns()
    await fabric.link(f"p0-t0-0~{T1}", up=False, at_ns=now_ns)
    await eventually(lambda: fabric.time.page.fabric_front() >= now_ns, DEADLINE_S)
    with pytest.raises(RefusedError, match="has passed"):
        await fabric.link(f"p0-t0-0~{T1}", up=True, at_ns=now_ns)
    soon_ns = fabric.soon_ns()
    with pytest.raises(ConfigError, match="frames on their way need that long"):
        await fabric.crash(T1, at_ns=soon_ns, restart_at_ns=soon_ns + 100)
    await fabric.crash(T1, at_ns=soon_ns)
    await eventually(lambda: not fabric.alive(T1), DEADLINE_S)
    with pytest.raises(RefusedError, match="too near"):
        await fabric.restart(T1, at_ns=soon_ns + 1)


async def test_a_stopped_daemon_is_named_and_then_ended_so_that_the_others_go_on(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timekeeper, "STALL_WALL_S", 0.5)
    monkeypatch.setattr(mishaps, "FENCE_WALL_S", 1.0)
    write = await connect(fabric)
    child = fabric.roster.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    assert [note["kind"] for note in fabric.journal.after(1)] == ["stalled", "fenced", "died"]
    assert {note["node"] for note in fabric.journal.after(1)} == {T1}
    assert fabric.unexpected_deaths() == [f"{T1}: SIGKILL"]
