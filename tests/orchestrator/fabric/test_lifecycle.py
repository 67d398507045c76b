"""Deaths and returns in a running fabric, at exact instants and at any."""

import asyncio
import os
import signal
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.fabric import Fabric, lifecycle
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.faults.table import Stamped
from orchestrator.live.live_view import LiveView
from orchestrator.process.launcher import Child
from tests.orchestrator.running import (
    DEADLINE_S,
    MESSAGE_BYTES,
    SMALL,
    T0,
    T1,
    broken,
    carrier,
    connect,
    healed,
    idle_totals,
    totals_when_placed,
)
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


async def waits_for_its_life(fabric: Fabric, incarnation: int) -> None:
    """Return when the switch that has died has a process for its next life."""
    member = fabric.daemons.members[T1]
    slot = fabric.layout.slot(T1)
    await eventually(
        lambda: member.incarnation == incarnation and fabric.alive(T1) and fabric.time.is_alive(slot), DEADLINE_S
    )


async def test_messages_survive_a_switch_that_dies_and_returns_at_exact_instants(fabric: Fabric) -> None:
    write = await connect(fabric)
    # The first order wakes the fabric: the others must be with their daemons long before its time gets there.
    crash_ns = fabric.soon_ns() + 1_000_000
    await fabric.inject(once("switch_reboot", T1, at_ns=crash_ns, until_ns=crash_ns + 100_000, fault_id="reboot"))
    posts = [Stamped(crash_ns - 5000, "h000", "post_write", {**write, "wr_id": number}) for number in range(8)]
    await fabric.schedule(posts)
    kinds = ["fault", "died", "returned"]
    await eventually(lambda: [note["kind"] for note in fabric.journal.after(1)] == kinds, DEADLINE_S)
    totals = await idle_totals(fabric)
    assert totals["bytes_placed"] == 8 * MESSAGE_BYTES
    assert totals["qp_errors"] == 0
    assert totals["retransmits"] > 0
    _, died, returned = fabric.journal.after(1)
    assert (died["at_ns"], died["node"], died["planned"]) == (crash_ns, T1, True)
    assert (returned["at_ns"], returned["incarnation"]) == (crash_ns + 100_000, 1)
    fidelity = await fabric.fidelity()
    assert fidelity["valid"]
    assert fidelity["late_commands"] == 0
    assert fabric.unexpected_deaths() == []
    assert fabric.faults() == []


async def test_what_is_broken_and_healed_in_a_sleeping_fabric_is_so_when_it_sleeps_again(fabric: Fabric) -> None:
    link = f"p0-t0-0~{T1}"
    # Nobody need be told of a second cause, and those who are told of the first are ahead of the others.
    causes = [("link_down", link), ("link_down", link), ("loss", link), ("control_cut", "h000")]
    live_view, live = LiveView(fabric), []
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    for number, (kind, target) in enumerate(causes):
        fault = once(kind, target, at_ns=fabric.soon_ns(), fault_id=f"f{number}")
        await fabric.inject(fault)
        live.append(fault.id)
        await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
        assert fabric.now_ns() >= fault.start_ns
        shown = (await live_view.look()).faults
        assert [one.id for one in shown if one.in_force] == live == [one.id for one in fabric.active_faults()]
    while live:
        await fabric.heal(live.pop())
        await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
        shown = (await live_view.look()).faults
        assert [one.id for one in shown] == live == [one.id for one in fabric.faults()]


async def test_a_fault_that_is_healed_before_its_end_lets_the_fabric_sleep_at_once(fabric: Fabric) -> None:
    lossy = once("loss", "p1-t0-0~p1-t1-0", at_ns=fabric.soon_ns(), until_ns=10**15, share_ppm=10_000)
    await fabric.inject(lossy)
    await eventually(lambda: fabric.now_ns() >= lossy.start_ns, DEADLINE_S)
    assert fabric.time.state == "run"
    await healed(fabric, lossy.id)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert fabric.faults() == []


async def test_a_cut_cable_loses_packets_and_is_routed_round(fabric: Fabric) -> None:
    write = await connect(fabric)
    await broken(fabric, "link_down", f"p0-t0-0~{T1}")
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    totals = await totals_when_placed(fabric, MESSAGE_BYTES)
    assert totals["bytes_placed"] == MESSAGE_BYTES
    assert totals["drops"] > 0
    assert totals["qp_errors"] == 0


async def test_a_dead_t0_takes_the_carrier_of_its_nics_with_it_until_it_is_healed(fabric: Fabric) -> None:
    fault = await broken(fabric, "t0_down", T0)
    await eventually(lambda: not fabric.alive(T0), DEADLINE_S)
    with pytest.raises(RefusedError, match=r"p1-t0-0 is down \(SIGKILL\)"):
        await fabric.call(T0, "status")

    async def lost() -> bool:
        return await carrier(fabric, "h000", 1) == 0

    # The fabric may fall asleep before the NIC hears of it, and wakes again then.
    await eventually_true(lost, DEADLINE_S)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    await healed(fabric, fault)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert await carrier(fabric, "h000", 1) == 1
    assert (await fabric.call(T0, "status"))["incarnation"] == 1
    assert fabric.unexpected_deaths() == []


async def test_a_restarted_switch_knows_the_faults_in_force(fabric: Fabric) -> None:
    write = await connect(fabric)
    uplink = next(end for end in SMALL.ports("p0-t0-0") if end.peer == T1)
    await broken(fabric, "link_down", uplink.link)
    await healed(fabric, await broken(fabric, "t0_down", "p0-t0-0"))
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    counters = await fabric.call("p0-t0-0", "counters")
    assert counters["core"]["ports"][uplink.port]["drops"]["link_down"] > 0


async def test_a_switch_that_reboots_again_and_again_does_so_to_the_nanosecond(fabric: Fabric) -> None:
    start_ns = fabric.soon_ns() + 100_000
    windows = tuple(Window(start_ns + 50_000 * turn, start_ns + 50_000 * turn + 20_000, {}) for turn in range(3))
    await fabric.inject(Fault("reboots", "switch_reboot", (T1,), windows))
    wanted = [pair for one in windows for pair in (("died", one.start_ns), ("returned", one.end_ns))]
    # A life may be over before its process has answered anybody.
    await eventually(lambda: [(note["kind"], note["at_ns"]) for note in fabric.journal.after(2)] == wanted, DEADLINE_S)
    assert fabric.unexpected_deaths() == []
    assert (await fabric.fidelity())["late_commands"] == 0


async def test_a_return_that_is_moved_forward_ends_the_process_that_waited_for_it(fabric: Fabric) -> None:
    at_ns = fabric.soon_ns()
    await fabric.inject(once("switch_reboot", T1, at_ns=at_ns, until_ns=at_ns + 10**12, fault_id="long"))
    await waits_for_its_life(fabric, 1)
    assert [note["kind"] for note in fabric.journal.after(2)] == ["died"]
    rest = await fabric.heal("long")
    assert rest is not None
    assert rest.end_ns < at_ns + 10**12
    await eventually(lambda: fabric.now_ns() > rest.end_ns, DEADLINE_S)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert (await fabric.call(T1, "status"))["incarnation"] == 2
    # The life that was called off is not told: nobody ever lived it.
    returned = [note for note in fabric.journal.after(0) if note["kind"] == "returned"]
    assert [(note["at_ns"], note["incarnation"]) for note in returned] == [(rest.end_ns, 2)]
    assert fabric.unexpected_deaths() == []


async def test_a_return_may_be_moved_while_its_process_becomes_ready(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process is ready at once, and the agent hears of it when the return has been moved.
    monkeypatch.setattr(lifecycle, "READY_POLL_S", 1.0)
    at_ns = fabric.soon_ns()
    await fabric.inject(once("switch_reboot", T1, at_ns=at_ns, until_ns=at_ns + 10**12, fault_id="long"))
    await waits_for_its_life(fabric, 1)
    await fabric.heal("long")
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert (await fabric.call(T1, "status"))["incarnation"] == 2
    assert fabric.unexpected_deaths() == []


async def test_who_is_cancelled_while_a_process_is_replaced_leaves_no_half(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, ending = fabric.daemons.end, asyncio.Event()

    async def slowly(child: Child) -> None:
        ending.set()
        await asyncio.sleep(0.2)
        await end(child)

    at_ns = fabric.soon_ns()
    await fabric.inject(once("switch_reboot", T1, at_ns=at_ns, until_ns=at_ns + 10**12, fault_id="long"))
    await waits_for_its_life(fabric, 1)
    monkeypatch.setattr(fabric.daemons, "end", slowly)
    healing = asyncio.ensure_future(fabric.heal("long"))
    await ending.wait()
    healing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await healing
    await waits_for_its_life(fabric, 2)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert fabric.now_ns() < at_ns + 10**12
    assert (await fabric.call(T1, "status"))["incarnation"] == 2
    assert fabric.unexpected_deaths() == []


async def test_a_node_returns_though_time_passes_its_return_before_its_process_is_there(fabric: Fabric) -> None:
    died_ns = fabric.soon_ns()
    await fabric.limit(died_ns + 1000)
    await fabric.inject(once("switch_reboot", T1, at_ns=died_ns, until_ns=died_ns + 10**12, fault_id="long"))
    await fabric.inject(once("loss", f"p0-t0-0~{T1}", at_ns=died_ns + 2000, fault_id="loss"))
    await waits_for_its_life(fabric, 1)
    assert [note["kind"] for note in fabric.journal.after(1)] == ["fault", "fault", "died"]
    # Both concern the switch, whose process must be replaced, and time goes on meanwhile.
    healing = [asyncio.ensure_future(fabric.heal(one, died_ns + 5000)) for one in ("loss", "long")]
    await eventually(lambda: [note["kind"] for note in fabric.journal.after(4)][:2] == ["healed"] * 2, DEADLINE_S)
    await fabric.limit(None)
    await asyncio.gather(*healing)
    assert (await fabric.call(T1, "status"))["incarnation"] == 2
    assert fabric.unexpected_deaths() == []


async def test_a_process_that_is_given_up_is_not_alive_later(fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    spawn, started = fabric.cluster.share(0).spawn, list[Child]()

    async def stopped(*args: Any) -> list[Child]:
        started.extend(await spawn(*args))
        os.kill(started[-1].pid, signal.SIGSTOP)
        return started[-1:]

    monkeypatch.setattr(fabric.cluster.share(0), "spawn", stopped)
    monkeypatch.setattr(fabric.daemons, "waited_enough", lambda _node, _patience: bool(started))
    await fabric.add_fault("switch_reboot", T1, for_ns=10**12)
    await eventually(fabric.unexpected_deaths, DEADLINE_S)
    assert not started[0].alive, "it would be ready some day, and forward packets"
    assert not fabric.time.is_alive(fabric.layout.slot(T1))
    monkeypatch.undo()
    # Its return is long ahead, and so is the death that is listed: once healed, the return is to take place.
    reboot, death = fabric.faults()
    assert death.start_ns == reboot.end_ns
    await fabric.heal(death.id)
    await waits_for_its_life(fabric, 2)
    await fabric.heal(reboot.id)
    kinds = ["fault", "died", "lost", "healed", "healed", "returned"]
    await eventually(lambda: [note["kind"] for note in fabric.journal.after(1)] == kinds, DEADLINE_S)
    assert fabric.faults() == []


async def test_a_death_that_is_called_off_does_not_happen(fabric: Fabric) -> None:
    at_ns = fabric.soon_ns() + 10_000_000
    await fabric.inject(once("switch_crash", T1, at_ns=at_ns, fault_id="never"))
    assert await fabric.heal("never") is None
    await broken(fabric, "loss", f"p0-t0-0~{T1}")
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert fabric.alive(T1)
    assert fabric.now_ns() < at_ns


async def test_a_death_nobody_asked_for_is_told(fabric: Fabric) -> None:
    child = fabric.daemons.members["h001"].child
    assert child is not None
    # Somebody has used the name that the death would have had.
    await fabric.inject(once("trimming_off", T1, at_ns=fabric.soon_ns(), fault_id="death-1"))
    os.kill(child.pid, signal.SIGSEGV)
    await eventually(lambda: not fabric.alive("h001"), DEADLINE_S)
    assert [death.split(":")[0] for death in fabric.unexpected_deaths()] == ["h001"]
    _, death = fabric.faults()
    assert (death.id, death.kind, death.targets) == ("death-2", "nic_crash", ("h001",))
    assert death.title.startswith("h001 died: SIGSEGV")
    # The others go on.
    assert (await fabric.call("h000", "status"))["node"] == "h000"
    assert "h001" not in await fabric.counters()
    await fabric.heal(death.id)
    await eventually(lambda: fabric.alive("h001"), DEADLINE_S)
    assert (await fabric.call("h001", "status"))["incarnation"] == 1


async def test_a_daemon_that_is_asked_to_stop_does_so_in_good_order(fabric: Fabric) -> None:
    child = fabric.daemons.members["h001"].child
    assert child is not None
    os.kill(child.pid, signal.SIGTERM)
    assert await child.ended == 0
    assert fabric.unexpected_deaths() == ["h001: exit code 0"]


async def test_a_death_for_want_of_memory_is_told_with_the_remedy(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = lifecycle.memory_kills()
    child = fabric.daemons.members["h001"].child
    assert child is not None
    monkeypatch.setattr(lifecycle, "memory_kills", lambda: before + 1)
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: not fabric.alive("h001"), DEADLINE_S)
    [death] = fabric.unexpected_deaths()
    assert death.startswith("h001: SIGKILL; the kernel has killed processes for want of memory (free memory, ")
