"""Trees of pauses: roots, leaves, shared reasons, circles."""

from typing import Any

import pytest

from mrcfabric.rng import Rng
from orchestrator.live.pause_tree import RELAY_SHARE, PauseTree, PauseView, pause_trees, trees_of


def pause(link: str, *because: str, share: float = 0.5, cls: int = 3, cause: Any = "queue") -> PauseView:
    return PauseView(link, cls, share, 7, True, cause, because)


CHAIN = (
    pause("t1>t0b", "t0b>h9"),
    pause("t0a>t1", "t1>t0b"),
    pause("h0>t0a", "t0a>t1"),
    pause("h1>t0a", "t0a>t1"),
)


def steps(tree: PauseTree) -> list[tuple[str, int, str]]:
    return [(step.link, step.depth, step.above) for step in tree.steps]


def test_a_congested_port_stops_hop_after_hop_down_to_the_nics() -> None:
    (tree,) = pause_trees(CHAIN)
    assert (tree.cls, tree.cause, tree.root, tree.link) == (3, "congested_port", "t0b", "t0b>h9")
    assert steps(tree) == [
        ("t1>t0b", 1, ""),
        ("t0a>t1", 2, "t1>t0b"),
        ("h0>t0a", 3, "t0a>t1"),
        ("h1>t0a", 3, "t0a>t1"),
    ]
    assert (tree.leaves, tree.cycle) == (("h0", "h1"), ())


def test_the_order_of_pauses_does_not_matter() -> None:
    orders = [list(CHAIN) for _ in range(20)]
    for seed, order in enumerate(orders):
        Rng("order", seed).shuffle(order)
    assert {pause_trees(order) for order in orders} == {pause_trees(CHAIN)}


@pytest.mark.parametrize("cause", ["slow_receiver", "storm"])
def test_a_nic_that_asks_is_the_root(cause: str) -> None:
    (tree,) = pause_trees([pause("t0b>h9", cause=cause), *CHAIN])
    assert (tree.cause, tree.root, tree.link) == (cause, "h9", "")
    assert steps(tree)[:2] == [("t0b>h9", 1, ""), ("t1>t0b", 2, "t0b>h9")]
    assert tree.leaves == ("h0", "h1")


def test_classes_do_not_mix() -> None:
    others = [pause("t0b>h9", cls=4, cause="storm")]
    trees = pause_trees([*CHAIN, *others])
    assert [(tree.cls, tree.root, len(tree.steps)) for tree in trees] == [(3, "t0b", 4), (4, "h9", 1)]


@pytest.mark.parametrize(
    ("share", "roots"), [(0.0, ["t1>t0b"]), (RELAY_SHARE * 0.49, ["t1>t0b"]), (RELAY_SHARE * 0.5, [""]), (1.0, [""])]
)
def test_a_port_that_was_hardly_paused_is_congested_by_itself(share: float, roots: list[str]) -> None:
    found = pause_trees([pause("t1>t0b", "t0b>h9", share=share, cause="storm"), pause("t0a>t1", "t1>t0b", share=0.5)])
    assert [tree.link for tree in found if any(step.link == "t0a>t1" for step in tree.steps)] == roots


def test_a_pause_with_two_reasons_is_in_two_trees() -> None:
    trees = pause_trees([pause("h0>t0", "t0>h1", "t0>h2"), pause("h3>t0", "t0>h2")])
    assert [(tree.link, [step.link for step in tree.steps]) for tree in trees] == [
        ("t0>h2", ["h0>t0", "h3>t0"]),
        ("t0>h1", ["h0>t0"]),
    ]


def test_what_nobody_can_explain_has_an_unknown_root() -> None:
    trees = pause_trees([pause("h0>t0", cause="unknown"), pause("h1>t0")])
    assert [(tree.cause, tree.root, tree.leaves) for tree in trees] == [("unknown", "t0", ("h0", "h1"))]


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_pauses_in_a_circle_are_a_suspected_deadlock(size: int) -> None:
    names = [f"s{number}" for number in range(size)]
    ring = [f"{names[number]}>{names[(number + 1) % size]}" for number in range(size)]
    circle = [pause(ring[number], ring[(number + 1) % size]) for number in range(size)]
    behind = [pause(f"h{number}>{names[number]}", ring[number]) for number in range(size)]
    (tree,) = pause_trees([*behind, *circle])
    assert (tree.cause, tree.link) == ("deadlock_suspect", "")
    assert tree.cycle == tuple(ring)
    assert tree.leaves == tuple(f"h{number}" for number in range(size))
    assert {step.link for step in tree.steps if step.depth == 1} == set(ring)


def test_a_circle_that_a_congested_port_feeds_is_in_both_trees() -> None:
    circle = [pause("a>b", "b>a", "b>h"), pause("b>a", "a>b")]
    first, second = pause_trees(circle)
    assert (first.cause, first.cycle) == ("deadlock_suspect", ("a>b", "b>a"))
    assert (second.link, [step.link for step in second.steps]) == ("b>h", ["a>b", "b>a"])


def test_two_circles_are_two_suspects() -> None:
    trees = pause_trees([pause("a>b", "b>a"), pause("b>a", "a>b"), pause("c>d", "d>c"), pause("d>c", "c>d", "a>b")])
    assert [tree.cycle for tree in trees if tree.cycle] == [("a>b", "b>a"), ("c>d", "d>c")]


@pytest.mark.parametrize("seed", range(40))
def test_every_pause_of_any_graph_is_in_a_tree_and_every_step_after_the_one_above(seed: int) -> None:
    rng = Rng("graph", seed)
    nodes = [f"n{number}" for number in range(2 + rng.below(6))]
    links = [f"{low}>{high}" for low in nodes for high in nodes if low != high and rng.below(3)]
    pauses = []
    for link in links:
        node = link.partition(">")[2]
        onward = [other for other in links if other.startswith(f"{node}>") and rng.below(2)]
        pauses.append(pause(link, *onward, share=rng.below(100) / 100))
    trees = pause_trees(pauses)
    assert {step.link for tree in trees for step in tree.steps} == set(links)
    for tree in trees:
        seen: dict[str, int] = {}
        for step in tree.steps:
            assert step.link not in seen
            assert step.depth == (1 if not step.above else seen[step.above] + 1)
            seen[step.link] = step.depth
        if tree.cycle:
            assert set(tree.cycle) <= set(seen)


@pytest.mark.parametrize("name", ["h0", "h0>t0a", "h0~t0a", "t0a~h0", "t1", "t0b", "h9", "t0b~h9"])
def test_a_part_finds_its_trees(name: str) -> None:
    trees = pause_trees([*CHAIN, pause("x>y", "y>z")])
    assert [tree.root for tree in trees_of(trees, name)] == ["t0b"]


def test_a_part_without_pauses_has_none() -> None:
    assert trees_of(pause_trees(CHAIN), "h7") == ()
    assert pause_trees(()) == ()
