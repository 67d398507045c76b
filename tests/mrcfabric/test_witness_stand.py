"""The ops of a witness, asked of one switch on real sockets, and its end when nobody reads."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import WRITE_ONLY
from mrcfabric.wire.options import DEFAULT_OPTIONS
from mrcfabric.witness import Witness
from mrcfabric.witness_stand import WitnessStand
from switchd.daemon import build
from tests.support.daemons import Bench, daemons
from tests.support.packets import data_packet
from tests.support.wait import eventually

NODE = "p0-t0-0"


class CountingOps:
    """A stand without a daemon."""

    def __init__(self, unread_s: float = 30.0) -> None:
        self.witness: Witness | None = None
        self.stand = WitnessStand(Dscp(), DEFAULT_OPTIONS, self._set, lambda: 42, unread_s)

    def _set(self, witness: Witness | None) -> None:
        self.witness = witness

    async def ask(self, op: str, **args: Any) -> Any:
        return await self.stand.ops[op](args)


async def test_called_read_and_dismissed() -> None:
    ops = CountingOps()
    assert await ops.ask("witness", id="a", choice={"every": 1}) == {"now_ns": 42}
    assert ops.witness is not None
    ops.witness.dropped(5, data_packet(WRITE_ONLY), "hop_limit")
    answer = await ops.ask("witnessed", id="a")
    assert [(one["n"], one["step"], one["reason"]) for one in answer["statements"]] == [(1, "drop", "hop_limit")]
    assert (answer["last"], answer["lost"], answer["more"], answer["now_ns"]) == (1, 0, False, 42)
    await ops.ask("dismiss", id="a")
    assert ops.witness is None
    ops.stand.close()


async def test_one_at_a_time() -> None:
    ops = CountingOps()
    await ops.ask("witness", id="mine")
    with pytest.raises(RefusedError, match=r"followed already \(mine\)"):
        await ops.ask("witness", id="yours")
    with pytest.raises(RefusedError, match="no packets are followed as 'yours'"):
        await ops.ask("dismiss", id="yours")
    with pytest.raises(RefusedError, match="limit: 0 will not do"):
        await ops.ask("witnessed", id="mine", limit=0)
    ops.stand.close()


@pytest.mark.parametrize("args", [{}, {"id": ""}, {"id": 5}, {"id": "a", "choice": {"every": 0}}])
async def test_refusals(args: dict[str, Any]) -> None:
    ops = CountingOps()
    with pytest.raises((RefusedError, ConfigError), match="will not do"):
        await ops.ask("witness", **args)
    assert ops.witness is None


async def test_a_witness_that_nobody_reads_goes() -> None:
    ops = CountingOps(unread_s=0.0)
    await ops.ask("witness", id="a")
    await eventually(lambda: ops.witness is None, deadline_s=20)
    with pytest.raises(RefusedError, match="not read for 0 s ends"):
        await ops.ask("witnessed", id="a")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with daemons({NODE: build}) as bench:
        yield bench


@pytest.mark.integration
async def test_the_ops_of_a_daemon(bench: Bench) -> None:
    daemon = bench.daemons[NODE]
    assert (await bench.call(NODE, "witness", id="a", choice={}))["now_ns"] <= daemon.drive.now_ns
    assert (await bench.call(NODE, "witnessed", id="a"))["statements"] == []
    await bench.call(NODE, "dismiss", id="a")
    with pytest.raises(RefusedError, match="no packets are followed"):
        await bench.call(NODE, "witnessed", id="a")
