"""One question for many daemons of a process: who is answered for, and with what."""

import asyncio
import zlib
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from mrcfabric import together
from mrcfabric.errors import RefusedError
from mrcfabric.metrics import COMMON, Family
from mrcfabric.together import NODES_MAX, Together, series_of


class Told:
    """A daemon that counts how often it was asked."""

    def __init__(self, node: str, incarnation: int = 0, *, cut: bool = False) -> None:
        self.config: Any = SimpleNamespace(node=node, incarnation=incarnation)
        self.closed = False
        self.cut = cut
        self.asked: list[Any] = []

    def hears(self) -> bool:
        return not self.cut

    def glance(self) -> list[Any]:
        return [self.config.node]

    def counters(self, parts: Any = None) -> dict[str, Any]:
        self.asked.append(parts)
        return {"core": self.config.node}

    def families(self, counters: dict[str, Any]) -> list[Family]:
        first, second, *_ = COMMON
        return [Family(first, [f"one {counters['core']}", f"two {counters['core']}"]), Family(second, [])]


def of(*daemons: Told) -> Together:
    found = Together(daemons[0])
    found.siblings = lambda: daemons
    return found


async def test_all_that_live_that_life_and_can_be_heard_are_answered_for() -> None:
    one = of(Told("a"), Told("b", 2), Told("c", cut=True), Told("d"), Told("e"))
    assert await one.answer({"op": "glance", "nodes": {"a": 0, "b": 1, "c": 0, "d": 0, "z": 0}}) == {
        "a": ["a"], "d": ["d"],
    }  # fmt: skip


async def test_parts_of_counters_are_passed_on() -> None:
    a, b = Told("a"), Told("b")
    found = await of(a, b).answer({"op": "counters", "args": {"parts": ["core"]}, "nodes": {"b": 0}})
    assert found == {"b": {"core": "b"}}
    assert (a.asked, b.asked) == ([], [["core"]])


async def test_series_come_family_by_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "PIECE_WALL_NS", -1)
    found = await of(Told("a"), Told("b")).answer({"op": "metrics", "nodes": {"a": 0, "b": 0}})
    assert found["nodes"] == ["a", "b"]
    assert list(series_of(found["families"])) == [[COMMON[0].name, "one a\ntwo a\none b\ntwo b"]]


async def test_who_is_not_rendered_in_time_is_late() -> None:
    a, b = Told("a"), Told("b", cut=True)
    found = await of(a, b).answer({"op": "metrics", "args": {"within_s": -1.0}, "nodes": {"a": 0, "b": 0}})
    assert (found["nodes"], found["late"], list(series_of(found["families"]))) == ([], ["a"], [])
    assert not a.asked
    in_time = await of(a, b).answer({"op": "metrics", "args": {"within_s": 60}, "nodes": {"a": 0}})
    assert (in_time["nodes"], in_time["late"]) == (["a"], [])


@pytest.mark.parametrize("op", ["glance", "counters", "metrics"])
async def test_one_that_dies_meanwhile_says_nothing_more(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "PIECE_WALL_NS", -1)
    daemons = [Told(name) for name in "abc"]
    answering = asyncio.ensure_future(of(*daemons).answer({"op": op, "nodes": dict.fromkeys("abc", 0)}))
    await asyncio.sleep(0)  # the first is asked, then others have their turn
    daemons[1].closed = True
    found = await answering
    assert (found["nodes"] if op == "metrics" else list(found)) == ["a", "c"]
    assert not daemons[1].asked


@pytest.mark.parametrize(
    "args",
    [
        {"op": "crash", "nodes": {"a": 0}},
        {"op": "glance"},
        {"op": "glance", "nodes": ["a"]},
        {"op": "glance", "nodes": dict.fromkeys(range(NODES_MAX + 1), 0)},
        {"op": "glance", "nodes": {"a": 0}, "args": 7},
        {"op": "counters", "nodes": {"a": 0}, "args": {"parts": "core"}},
        {"op": "metrics", "nodes": {"a": 0}, "args": {"within_s": "1"}},
    ],
)
async def test_other_questions_are_refused(args: dict[str, Any]) -> None:
    daemon = Told("a")
    with pytest.raises(RefusedError):
        await of(daemon).answer(args)
    assert not daemon.asked


@pytest.mark.parametrize("block", [b"", b"no stream", zlib.compress(b"\xc1")])
def test_a_block_that_is_none_is_no_surprise(block: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason is that of zlib or msgpack
        list(series_of(block))


def test_a_block_is_a_stream_of_pairs() -> None:
    assert list(series_of(zlib.compress(msgpack.packb(("x", "y"))))) == [["x", "y"]]
