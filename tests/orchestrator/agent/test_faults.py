"""The agent's doors to faults: ids, times to live, owners, and leases that end however their owner ends."""

import os
import signal
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client.lease import lease
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import Fault, once
from orchestrator.process import answer_wait
from tests.orchestrator.agent.test_agent import ask, client_of
from tests.orchestrator.running import DEADLINE_S, T1
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
LINK = f"p0-t0-0~{T1}"


def owned(fabric: Fabric, owner: str = "run", kind: str = "link_down", target: str = LINK) -> Fault:
    return once(kind, target, at_ns=fabric.soon_ns(), fault_id=f"{owner}-{kind}", owner=owner)


async def add(fabric: Fabric, **body: Any) -> Any:
    return await ask(client_of(fabric).post, "/faults/add", **body)


async def test_ids_are_given_and_what_is_left_to_chance_follows_from_them(served: Fabric) -> None:
    drawn = [await add(served, kind="loss", selector={"tier": "t0-t1", "mode": "one"}) for _ in range(3)]
    assert [one["id"] for one in drawn] == ["f1", "f2", "f3"]
    again = await add(served, kind="loss", selector={"tier": "t0-t1", "mode": "one"}, seed="f2", id="mine")
    assert again["targets"] == drawn[1]["targets"]
    with pytest.raises(RefusedError, match="there is a fault mine already"):
        await add(served, kind="loss", selector={}, id="mine")
    client = client_of(served)
    left = await ask(client.post, "/faults/heal", all=True)
    assert set(left) == {"f1", "f2", "f3", "mine"}
    await eventually(lambda: served.faults() == [], DEADLINE_S)


async def test_of_several_faults_none_is_healed_when_one_is_unknown(served: Fabric) -> None:
    for name in ("a", "b"):
        await add(served, kind="link_down", selector={"links": LINK}, id=name)
    with pytest.raises(RefusedError, match=r"^there is no fault nope, or it is over; none is healed$"):
        await ask(client_of(served).post, "/faults/heal", ids=["a", "nope", "b"])
    assert [one.id for one in served.faults()] == ["a", "b"]
    assert set(await ask(client_of(served).post, "/faults/heal", ids=["a", "b", "a"])) == {"a", "b"}


async def test_a_fault_lives_as_long_as_it_is_told_to(served: Fabric) -> None:
    await add(served, kind="switch_crash", selector={"nodes": T1}, ttl_s=5.0)
    await eventually(lambda: not served.alive(T1), DEADLINE_S)
    await eventually(lambda: served.faults() == [] and served.alive(T1), DEADLINE_S)
    assert served.unexpected_deaths() == []
    with pytest.raises(ConfigError, match="seconds of wall time"):
        await add(served, kind="loss", selector={}, ttl_s=0)


async def test_the_time_to_live_of_a_fault_that_is_over_ends_no_later_one_of_the_same_name(served: Fabric) -> None:
    await add(served, kind="link_down", selector={"links": LINK}, id="mine", for_ns=1_000, ttl_s=0.5)
    await eventually(lambda: served.faults() == [], DEADLINE_S)
    await add(served, kind="loss", selector={"links": LINK}, id="other", ttl_s=0.6)
    await add(served, kind="link_down", selector={"links": LINK}, id="mine")
    await eventually(lambda: [one.id for one in served.faults()] == ["mine"], DEADLINE_S)


async def test_a_fault_that_is_to_end_far_off_keeps_its_time_to_live(served: Fabric) -> None:
    await add(served, kind="link_down", selector={"links": LINK}, id="mine", ttl_s=1.0)
    client = client_of(served)
    await ask(client.post, "/faults/heal", ids=["mine"], at_ns=served.now_ns() + 10**15)
    assert [row["ttl_s"] is not None for row in await ask(client.post, "/faults/list")] == [True]
    await eventually(lambda: served.faults() == [], DEADLINE_S)


async def test_a_name_can_be_used_again_as_soon_as_its_fault_is_cleared(served: Fabric) -> None:
    client = client_of(served)
    for turn in range(20):
        await add(served, kind="delay", selector={"links": LINK}, figures={"delay_ns": 5_000}, id="slow")
        healed = await ask(client.post, "/faults/heal", ids=["slow"])
        assert set(healed) == {"slow"}, turn
        if turn % 4 == 3:  # also once the list is empty, whether or not fabric time goes on then
            await eventually(lambda: served.faults() == [], DEADLINE_S)
    await add(served, kind="delay", selector={"links": LINK}, figures={"delay_ns": 5_000}, id="slow", ttl_s=3600)
    [row] = await ask(client.post, "/faults/list")
    assert (row["id"], row["ttl_s"] > 3000) == ("slow", True), "the time to live is that of the last one"


async def test_a_fault_may_come_again_and_again(served: Fabric) -> None:
    added = await add(served, kind="flap", selector={"links": LINK}, for_ns=2_000, every_ns=5_000, times=3)
    first_ns = added["windows"][0][0]
    assert [window[:2] for window in added["windows"]] == [
        [first_ns + turn * 5_000, first_ns + turn * 5_000 + 2_000] for turn in range(3)
    ]
    for body, complaint in (
        ({"every_ns": 5_000}, "needs for, every and times"),
        ({"for_ns": 9_000, "every_ns": 5_000, "times": 2}, "before the 9000 ns that it lasts are over"),
        ({"for_ns": 1, "every_ns": 5_000, "times": 5_000}, "5000 is too often"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            await add(served, kind="flap", selector={"links": LINK}, **body)


async def test_a_daemon_that_does_not_answer_keeps_no_fault_from_being_healed(
    served: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_wait, "BOUND_WALL_S", 0.1)
    monkeypatch.setattr(answer_wait, "SHARE_WALL_S", 0.0)
    port, others = {"nic_ports": "h001:1"}, ("p0-t0-0~p0-t1-1", LINK)
    stopped = served.daemons.members["h001"].child
    assert stopped is not None
    os.kill(stopped.pid, signal.SIGSTOP)
    try:
        with pytest.raises(RefusedError, match="h001 has not answered"):
            await add(served, kind="nic_port_down", selector=port, ttl_s=0.2)
        await eventually(lambda: served.journal.after(0)[-1]["kind"] == "healed", DEADLINE_S)
        assert served.journal.after(0)[-1]["why"] == "its time to live was over"
        with pytest.raises(RefusedError, match="h001 has not answered"):
            await add(served, kind="nic_port_down", selector=port)
        for link in others:
            await add(served, kind="link_down", selector={"links": link})
        taken = {fault.id for fault in served.faults()}
        with pytest.raises(RefusedError, match="h001 has not answered"):
            await ask(client_of(served).post, "/faults/heal", all=True)
        assert taken <= {note["id"] for note in served.journal.after(0) if note["kind"] == "healed"}
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    await eventually(lambda: served.faults() == [], DEADLINE_S)


async def test_only_who_holds_a_lease_may_own(served: Fabric) -> None:
    client, path = client_of(served), str(served.folder.agent_socket)
    with pytest.raises(RefusedError, match="run holds no lease"):
        await ask(client.post, "/faults/inject", fault=owned(served).record())
    async with lease(path, "run"):
        with pytest.raises(RefusedError, match="run has a lease already"):
            async with lease(path, "run"):
                pass
        await ask(client.post, "/faults/inject", fault=owned(served).record())
        await ask(client.post, "/faults/inject", fault=owned(served, kind="switch_crash", target=T1).record())
        await add(served, kind="trimming_off", selector={"nodes": "p0-t0-0"})
        assert [fault["ttl_s"] is None for fault in await ask(client.post, "/faults/list")] == [True, True, False]
        await served.limit(served.now_ns() + 10**9, "run")
    await eventually(lambda: [fault.id for fault in served.faults()] == ["f1"], DEADLINE_S)
    await eventually(lambda: served.alive(T1), DEADLINE_S)
    await eventually(lambda: served.limit_owner is None, DEADLINE_S)
