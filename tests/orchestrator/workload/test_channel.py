"""The channel between the orchestrator and a worker."""

import asyncio

import pytest

from orchestrator.workload.channel import ChannelClosedError, CrewChannel, WorkerChannel, channel_pair

pytestmark = pytest.mark.integration


async def test_messages_go_both_ways() -> None:
    mine, theirs = channel_pair()
    crew, worker = CrewChannel(mine), WorkerChannel(theirs)
    assert worker.receive(wait=False) is None
    crew.send("grant", steps=3)
    assert worker.receive() == {"kind": "grant", "steps": 3}
    worker.send("step", at_ns=1 << 62)
    worker.send("step", values=list(range(4096)))
    assert (await crew.receive())["at_ns"] == 1 << 62
    assert len((await crew.receive())["values"]) == 4096
    crew.close()
    worker.close()


async def test_a_worker_that_is_gone_is_noticed_again_and_again() -> None:
    mine, theirs = channel_pair()
    crew, worker = CrewChannel(mine), WorkerChannel(theirs)
    worker.send("done")
    worker.close()
    assert (await crew.receive())["kind"] == "done"
    for _ in range(2):
        with pytest.raises(ChannelClosedError):
            await asyncio.wait_for(crew.receive(), 10)
        crew.send("grant", steps=1)
    crew.close()
    crew.close()


async def test_an_orchestrator_that_is_gone_ends_the_worker() -> None:
    mine, theirs = channel_pair()
    CrewChannel(mine).close()
    worker = WorkerChannel(theirs)
    with pytest.raises(ChannelClosedError):
        worker.receive()
    with pytest.raises(ChannelClosedError):
        worker.receive(wait=False)
    with pytest.raises(ChannelClosedError):
        worker.send("step")
    worker.close()
