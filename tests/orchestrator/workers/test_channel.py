"""The channel between the orchestrator and a worker."""

import asyncio

import pytest

from orchestrator.workers.channel import ChannelClosedError, GroupChannel, WorkerChannel, channel_pair

pytestmark = pytest.mark.integration


async def test_messages_go_both_ways() -> None:
    mine, theirs = channel_pair()
    group, worker = GroupChannel(mine), WorkerChannel(theirs)
    assert worker.receive(wait=False) is None
    group.send("grant", steps=3)
    assert worker.receive() == {"kind": "grant", "steps": 3}
    worker.send("step", at_ns=1 << 62)
    worker.send("step", values=list(range(4096)))
    assert (await group.receive())["at_ns"] == 1 << 62
    assert len((await group.receive())["values"]) == 4096
    group.close()
    worker.close()


async def test_what_is_long_waits_for_room_and_nothing_piles_up() -> None:
    mine, theirs = channel_pair()
    group, worker = GroupChannel(mine), WorkerChannel(theirs)
    data = bytes(1 << 17)
    handing = asyncio.create_task(hand(group, data, 20))
    asked = await asyncio.to_thread(lambda: [worker.receive() for _ in range(20)])
    await handing
    assert asked == [{"kind": "part", "number": number, "data": data} for number in range(20)]
    # The other way the worker waits: nothing is read for which nobody asks.
    saying = asyncio.create_task(asyncio.to_thread(tell, worker, data, 20))
    assert (await group.receive())["number"] == 0
    done, _ = await asyncio.wait([saying], timeout=0.05)
    assert not done
    assert [(await group.receive())["number"] for _ in range(19)] == list(range(1, 20))
    await saying
    worker.close()
    await group.hand("part", data=data)
    group.close()


async def hand(group: GroupChannel, data: bytes, count: int) -> None:
    for number in range(count):
        await group.hand("part", number=number, data=data)


def tell(worker: WorkerChannel, data: bytes, count: int) -> None:
    for number in range(count):
        worker.send("part", number=number, data=data)


async def test_the_last_words_of_a_worker_that_has_not_heard_everything_are_heard() -> None:
    mine, theirs = channel_pair()
    group, worker = GroupChannel(mine), WorkerChannel(theirs)
    group.send("grant", steps=1)
    worker.send("failed", reason="why")
    worker.close()
    assert (await group.receive())["reason"] == "why"
    with pytest.raises(ChannelClosedError):
        await group.receive()
    group.close()


async def test_a_worker_that_is_gone_is_noticed_again_and_again() -> None:
    mine, theirs = channel_pair()
    group, worker = GroupChannel(mine), WorkerChannel(theirs)
    worker.send("done")
    worker.close()
    assert (await group.receive())["kind"] == "done"
    for _ in range(2):
        with pytest.raises(ChannelClosedError):
            await asyncio.wait_for(group.receive(), 10)
        group.send("grant", steps=1)
    group.close()
    group.close()


async def test_an_orchestrator_that_is_gone_ends_the_worker() -> None:
    mine, theirs = channel_pair()
    GroupChannel(mine).close()
    worker = WorkerChannel(theirs)
    with pytest.raises(ChannelClosedError):
        worker.receive()
    with pytest.raises(ChannelClosedError):
        worker.receive(wait=False)
    with pytest.raises(ChannelClosedError):
        worker.send("step")
    worker.close()
