"""JourneyJoiner made look by look: the same as in one go, at the cost of what is new, within their bounds."""

import pickle
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from mrcfabric.choice import Choice
from mrcfabric.units import Instant
from orchestrator.faults.fault import Fault, once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.joiner import JourneyJoiner
from orchestrator.tracing.journey import Journey
from orchestrator.tracing.statements import Statement
from tests.support.scripts import Step
from tests.support.tracing import SIZE, SMALL, writes

PACKETS = SIZE // SMALL.mtu_bytes
ROUND_NS = 1_500_000


def followed(steps: Iterable[Step], fault: Fault | None = None, until: int = ROUND_NS) -> SimulatedFabric:
    """A fabric all of whose packets were followed."""
    fabric = SimulatedFabric(SMALL)
    fabric.follow(Choice())
    for step in steps:
        fabric.command(step.node, step.op, step.args, step.at_ns)
    if fault is not None:
        fabric.inject(fault)
    fabric.run(until)
    return fabric


def heard(fabric: SimulatedFabric) -> dict[str, list[Statement]]:
    """What its nodes have said since they were heard last."""
    return {node: fabric.statements(node) for node in SMALL.node_names()}


def in_portions(
    said: dict[str, list[Statement]], now_ns: Instant, stories: JourneyJoiner, seed: int
) -> Iterator[list[Journey]]:
    """What each look tells when nodes are heard in portions, none of them as far as the others."""
    chance, left = random.Random(seed), dict(said)
    while any(left.values()):
        for node, rest in left.items():
            count = chance.randrange(200)
            part, left[node] = rest[:count], rest[count:]
            told_ns = left[node][0]["at_ns"] - 1 if left[node] else now_ns
            stories.add(node, part, max(told_ns, stories.now_ns.get(node, 0)))
        yield stories.look()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["loss", "duplication"])
def test_portions_make_no_difference(kind: str, seed: int) -> None:
    fabric = followed(writes(), fault=once(kind, "p0-t0-0~p0-t1-0", at_ns=1_100, until_ns=900_000, share_ppm=300_000))
    whole, stories = JourneyJoiner(SMALL), JourneyJoiner(SMALL)
    said = heard(fabric)
    for node in said:
        whole.add(node, said[node], fabric.now_ns)
    looks = list(in_portions(said, fabric.now_ns, stories, seed))
    assert stories.journeys() == whole.journeys()
    complete = {(one.source, one.psn) for look in looks for one in look if one.complete}
    assert len(complete) == 2 * PACKETS


def test_strangers_are_nics_that_sent_by_qps_without_a_number() -> None:
    said, stories = heard(followed(writes())), JourneyJoiner(SMALL)
    for node in said:
        stories.add(node, said[node], ROUND_NS)
    assert stories.strangers({}) == set(SMALL.nic_names())
    assert stories.strangers({(0, 1, 200): 100}) == set(SMALL.nic_names()) - {"h000"}
    stories.look()
    assert stories.strangers({}) == set()


def test_the_work_of_a_look_does_not_grow_with_what_is_finished() -> None:
    """As many packets again and again, each time when the ones before are over: calls and memory stay the same."""
    stories, calls, kept = JourneyJoiner(SMALL), [], []
    rounds = 6
    steps = writes()
    posts = [step for step in steps if step.op == "post_write"]
    for number in range(1, rounds):
        for step in posts:
            args = {**step.args, "wr_id": step.args["wr_id"] + 1_000 * number}
            steps.append(step._replace(at_ns=step.at_ns + number * ROUND_NS, args=args))
    fabric = followed(steps, until=0)
    for number in range(1, rounds + 1):
        fabric.run(number * ROUND_NS)
        for node, said in heard(fabric).items():
            stories.add(node, said, fabric.now_ns)
        with calls_counted() as counted:
            assert len(stories.look()) == 2 * PACKETS
        calls.append(counted[0])
        kept.append(size_of(stories))
    assert len(stories.journeys()) == rounds * 2 * PACKETS
    assert max(calls[1:]) < 1.2 * min(calls[1:])
    assert max(kept) < 1.2 * min(kept)


def test_what_is_sent_beyond_the_bounds_is_left_out_and_counted() -> None:
    fabric = followed(writes())
    said = heard(fabric)
    bounded, few = JourneyJoiner(SMALL, under_way_max=16), JourneyJoiner(SMALL, count=5)
    for look in in_portions(said, fabric.now_ns, bounded, seed=0):
        assert sum(not one.complete for one in look) <= 16
    found = bounded.journeys()
    assert 0 < bounded.left_out == 2 * PACKETS - len(found)
    assert all(one.complete for one in found)
    list(in_portions(said, fabric.now_ns, few, seed=0))
    assert [one.complete for one in few.journeys()] == [True] * 5
    assert few.left_out == 0


@contextmanager
def calls_counted() -> Iterator[list[int]]:
    """Calls of functions within, Python's own too."""
    counted, before = [0], sys.getprofile()

    def count(_frame: object, event: str, _arg: object) -> None:
        counted[0] += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def size_of(stories: JourneyJoiner) -> int:
    """Everything that is kept but journeys that are over."""
    return len(pickle.dumps({name: value for name, value in vars(stories).items() if name != "_finished"}))
