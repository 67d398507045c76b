"""One question for all daemons of a process gives what single ones would have given."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import RefusedError
from mrcfabric.together import OP
from orchestrator.fabric import Fabric, batches
from orchestrator.fabric.batches import Batches
from tests.orchestrator.running import DEADLINE_S, SMALL, T1, broken
from tests.support.wait import eventually


class Process:
    """Daemons a, b and c in one process, d and e alone; answers as it is told."""

    def __init__(self) -> None:
        self.members = {
            node: SimpleNamespace(
                node=node, incarnation=number, alive=True, process=SimpleNamespace(site=0),
                child=SimpleNamespace(pid=7 if node in "abc" else 10 + number, life=number if node in "abc" else None),
            )
            for number, node in enumerate("abcde")
        }  # fmt: skip
        self.calls: list[tuple[str, str]] = []
        self.told: dict[str, Any] | Exception = {node: node.upper() for node in "abc"}
        self.batches = Batches(self.members, self.call)

    async def call(self, node: str, op: str, args: Mapping[str, Any] | None, timeout_s: float | None) -> Any:
        self.calls.append((node, op))
        if op != OP:
            return node.upper()
        assert args is not None
        assert args["nodes"] == {node: self.members[node].incarnation for node in "abc"}
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


@pytest.fixture
def process() -> Process:
    return Process()


async def test_a_process_is_asked_once(process: Process) -> None:
    found = await process.batches.ask("edcba", "glance", {}, 5.0)
    assert list(found.items()) == [(node, node.upper()) for node in "edcba"]
    assert sorted(process.calls) == [("c", OP), ("d", "glance"), ("e", "glance")]


async def test_whoever_is_left_out_is_asked_alone(process: Process) -> None:
    process.told = {"a": "A", "c": "C"}
    assert await process.batches.ask("abc", "glance", {}, None) == {"a": "A", "b": "B", "c": "C"}
    assert process.calls == [("a", OP), ("b", "glance")]


async def test_if_the_one_that_was_asked_dies_each_is_asked_alone(process: Process) -> None:
    process.told = RefusedError("a has ended")
    assert await process.batches.ask("abc", "glance", {}, 5.0) == {"a": "A", "b": "B", "c": "C"}
    assert process.calls == [("a", OP), ("a", "glance"), ("b", "glance"), ("c", "glance")]


async def test_a_silent_process_is_silence_of_all_its_daemons(process: Process) -> None:
    process.told = NoAnswerError("nothing")
    found = await process.batches.ask("abcd", "glance", {}, 5.0)
    assert {node: type(answer) for node, answer in found.items()} == {
        "a": NoAnswerError, "b": NoAnswerError, "c": NoAnswerError, "d": str,
    }  # fmt: skip


def test_groups_have_a_bound_and_the_dead_are_alone(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.members["b"].alive = False
    assert process.batches.groups("abcde") == [["a", "c"], ["b"], ["d"], ["e"]]
    monkeypatch.setattr(batches, "NODES_MAX", 1)
    assert process.batches.groups("ac") == [["a"], ["c"]]


@pytest.mark.integration
@pytest.mark.parametrize("pack", ["cores"])
async def test_on_daemons_one_answers_for_all_of_its_process(fabric: Fabric) -> None:
    async def requests() -> int:
        found = await fabric.counters(parts=("control",))
        assert set(found) == set(SMALL.node_names())
        return sum(one["control"]["requests"] for one in found.values())

    processes = len(fabric.layout.processes)
    assert processes < SMALL.nodes
    before = await requests()
    assert await requests() - before == processes
    assert len((await fabric.glances()).nodes) == SMALL.nodes
    assert await requests() - before == 3 * processes


@pytest.mark.integration
@pytest.mark.parametrize("pack", ["cores"])
async def test_the_cut_off_stay_silent_whoever_answers_for_them(fabric: Fabric) -> None:
    await broken(fabric, "switch_crash", T1)
    await eventually(lambda: not fabric.alive(T1), DEADLINE_S)
    await broken(fabric, "control_cut", "h000")
    silent: list[str] = []
    found = await fabric.counters(timeout_s=1.0, silent=silent)
    assert silent == ["h000"]
    assert set(found) == set(SMALL.node_names()) - {"h000", T1}
    glances = await fabric.glances()
    assert {node for node, glance in glances.nodes.items() if glance is None} == {"h000", T1}
    assert glances.down == (T1,)
