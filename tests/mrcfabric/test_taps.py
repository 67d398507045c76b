"""The ops of taps, asked of one switch on real sockets, and the end of a tap that nobody reads."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.tap import Tap, records_in
from mrcfabric.taps import TAPS_MAX, Taps
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import DEFAULT_OPTIONS
from switchd.daemon import build
from tests.support.daemons import Bench, daemons
from tests.support.wait import eventually

NODE = "p0-t0-0"


class CountingOps:
    """Taps without a daemon; `active` is what a drive would be told."""

    def __init__(self, unread_s: float = 30.0) -> None:
        self.active: tuple[Tap, ...] | None = None
        self.taps = Taps(Dscp(), DEFAULT_OPTIONS, self._set, lambda: 42, unread_s)

    def _set(self, active: tuple[Tap, ...] | None) -> None:
        self.active = active

    async def ask(self, op: str, **args: Any) -> Any:
        return await self.taps.ops[op](args)


async def test_set_read_and_end() -> None:
    ops = CountingOps()
    assert await ops.ask("tap", id="a", filter={"ports": [2]}, snap_bytes=4, records_max=2) == {"now_ns": 42}
    assert ops.active is not None
    ops.active[0].take([(2, at_ns, b"packet") for at_ns in (5, 6, 7)])
    answer = await ops.ask("tapped", id="a", limit=1)
    assert list(records_in(answer.pop("records"))) == [(5, 2, 6, b"pack")]
    assert answer == {"last": 1, "newest": 2, "lost": [(2, 1)], "now_ns": 42}
    answer = await ops.ask("tapped", id="a", since=1)
    assert list(records_in(answer["records"])) == [(6, 2, 6, b"pack")]
    assert await ops.ask("untap", id="a") == {"lost": [(2, 1)]}
    assert ops.active is None
    ops.taps.close()


@pytest.mark.parametrize(
    ("op", "args", "text"),
    [
        ("tap", {}, "id: None will not do"),
        ("tap", {"id": "x" * 65}, "will not do"),
        ("tap", {"id": "a", "ports": [1]}, "no argument 'ports'"),
        ("tap", {"id": "a", "snap_bytes": 0}, "snap_bytes: 0 will not do"),
        ("tap", {"id": "a", "records_max": 1 << 20}, "records_max: 1048576 will not do"),
        ("tap", {"id": "a", "filter": {"kinds": ["x"]}}, "no kind of packet"),
        ("tapped", {"id": "a"}, "there is no tap 'a'"),
        ("untap", {"id": ["a"]}, "there is no tap"),
    ],
)
async def test_refusals(op: str, args: dict[str, Any], text: str) -> None:
    ops = CountingOps()
    with pytest.raises((RefusedError, ConfigError), match=text):
        await ops.ask(op, **args)
    assert ops.active is None


async def test_a_name_is_taken_once_and_there_is_an_end_to_taps() -> None:
    ops = CountingOps()
    for number in range(TAPS_MAX):
        await ops.ask("tap", id=f"tap {number}")
    with pytest.raises(RefusedError, match="8 taps already"):
        await ops.ask("tap", id="another")
    await ops.ask("untap", id="tap 3")
    with pytest.raises(RefusedError, match="there is a tap 'tap 0' already"):
        await ops.ask("tap", id="tap 0")
    with pytest.raises(RefusedError, match="since: -1 will not do"):
        await ops.ask("tapped", id="tap 0", since=-1)
    ops.taps.close()


async def test_a_tap_that_nobody_reads_ends() -> None:
    ops = CountingOps(unread_s=0.0)
    await ops.ask("tap", id="a")
    await eventually(lambda: ops.active is None, deadline_s=20)
    with pytest.raises(RefusedError, match="there is no tap 'a'"):
        await ops.ask("tapped", id="a")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with daemons({NODE: build}) as bench:
        yield bench


@pytest.mark.integration
async def test_the_ops_of_a_daemon(bench: Bench) -> None:
    daemon = bench.daemons[NODE]
    assert (await bench.call(NODE, "tap", id="a", filter={"qps": [[0, 3]]}))["now_ns"] <= daemon.drive.now_ns
    assert daemon.drive.taps is not None
    assert (await bench.call(NODE, "tapped", id="a"))["records"] == b""
    assert await bench.call(NODE, "untap", id="a") == {"lost": []}
    assert daemon.drive.taps is None
