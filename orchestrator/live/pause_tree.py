"""Who pauses whom: paused directions of links, put together into trees from the reason down to those that stand still.

Pure. A direction `h000>p0-t0-0` in a class is paused by the node at its end, because of packets that wait there in
sending ports. When such a port is itself paused by the next node, the pause goes on from there; when it is not, that
port is congested, and is a root. A NIC that asks for a pause is a root too. Pauses that go round in a circle have no
root: each waits for the next one, which is a deadlock if it lasts.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Cause: TypeAlias = Literal["queue", "slow_receiver", "storm", "unknown"]
RootCause: TypeAlias = Literal["congested_port", "slow_receiver", "storm", "unknown", "deadlock_suspect"]

RELAY_SHARE: Final = 0.1
"""A port passes a pause on if it was paused for at least this part of the time for which it made others pause; one that
was paused for less would have been congested without that."""


@dataclass(frozen=True, slots=True)
class PauseView:
    """One direction of a link in one traffic class, whose sender was paused since the look before."""

    link: str
    """`h000>p0-t0-0`: the sender, and who pauses it."""
    cls: int
    share: float
    """Part of the time since the look before for which the class might not start a packet, 0 to 1."""
    frames: int
    """Pause frames since the look before that said stop."""
    paused: bool
    """At the moment of the look."""
    cause: Cause
    """`queue`: what the sender has sent waits at the other end in the queues `because`. `slow_receiver`, `storm`: the
    NIC at the other end."""
    because: tuple[str, ...]
    """Directions in whose queues it waits."""


@dataclass(frozen=True, slots=True)
class PauseStep:
    """A paused direction in a tree."""

    link: str
    depth: int
    """1: paused by the root."""
    above: str
    """The paused direction through which the pause came here; "" at depth 1."""


@dataclass(frozen=True, slots=True)
class PauseTree:
    """The pauses of one class that have one reason."""

    cls: int
    cause: RootCause
    root: str
    """The node with which it begins."""
    link: str
    """The direction whose queue is full, of a `congested_port`; else ""."""
    steps: tuple[PauseStep, ...]
    """Each one before those that it makes pause."""
    leaves: tuple[str, ...]
    """Nodes that are paused here and pause nobody."""
    cycle: tuple[str, ...]
    """Of a `deadlock_suspect`: each of these directions is paused because the next one is, the last because of the
    first."""


_Key: TypeAlias = tuple[str, int]
_Graph: TypeAlias = Mapping[_Key, Sequence[_Key]]


def sender(link: str) -> str:
    """The node that sends in a direction."""
    return link.partition(">")[0]


def receiver(link: str) -> str:
    """The node at its end."""
    return link.partition(">")[2]


def pause_trees(pauses: Iterable[PauseView]) -> tuple[PauseTree, ...]:
    """The trees of these pauses: suspected deadlocks first, then by the number of paused directions.

    A pause with several reasons is in several trees.
    """
    known = {(pause.link, pause.cls): pause for pause in pauses}
    parents: dict[_Key, list[_Key]] = {}
    children: dict[_Key, list[_Key]] = {key: [] for key in known}
    roots: dict[tuple[int, RootCause, str, str], list[_Key]] = {}
    for key, pause in sorted(known.items()):
        above = [(link, pause.cls) for link in pause.because if _relays(known.get((link, pause.cls)), pause)]
        parents[key] = above
        for parent in above:
            children[parent].append(key)
        for root in _roots(pause, above):
            roots.setdefault(root, []).append(key)
    trees = [_tree(root, first, children) for root, first in roots.items()]
    for cycle in _cycles(parents, children):
        root = cycle[0][1], "deadlock_suspect", receiver(cycle[0][0]), ""
        trees.append(_tree(root, cycle, children, tuple(link for link, _ in cycle)))
    return tuple(sorted(trees, key=lambda tree: (not tree.cycle, -len(tree.steps), tree.cls, tree.root, tree.link)))


def trees_of(trees: Iterable[PauseTree], name: str) -> tuple[PauseTree, ...]:
    """The trees in which a node, a link or a direction of one takes part."""

    def takes_part(link: str) -> bool:
        low, _, high = link.partition(">")
        return name in (link, low, high, f"{low}~{high}", f"{high}~{low}")

    return tuple(
        tree
        for tree in trees
        if name == tree.root or takes_part(tree.link) or any(takes_part(step.link) for step in tree.steps)
    )


def _relays(above: PauseView | None, pause: PauseView) -> bool:
    """Whether a pause is the reason of another one, in whose `because` its direction stands."""
    return above is not None and above.share >= RELAY_SHARE * pause.share


def _roots(pause: PauseView, above: Sequence[_Key]) -> list[tuple[int, RootCause, str, str]]:
    """The roots that a pause hangs on directly."""
    node = receiver(pause.link)
    if pause.cause != "queue" or not pause.because:
        return [(pause.cls, "unknown" if pause.cause == "queue" else pause.cause, node, "")]
    return [(pause.cls, "congested_port", node, link) for link in pause.because if (link, pause.cls) not in above]


def _tree(
    root: tuple[int, RootCause, str, str], first: Sequence[_Key], children: _Graph, cycle: tuple[str, ...] = ()
) -> PauseTree:
    """The tree below a root whose first pauses are these. Each direction stands once, as near to the root as it is."""
    above: dict[_Key, _Key | None] = dict.fromkeys(first)
    depth = dict.fromkeys(first, 1)
    waiting = deque(first)
    while waiting:
        key = waiting.popleft()
        for child in children[key]:
            if child not in above:
                above[child], depth[child] = key, depth[key] + 1
                waiting.append(child)
    below: dict[_Key | None, list[_Key]] = {}
    for key, parent in above.items():
        below.setdefault(parent, []).append(key)
    steps: list[PauseStep] = []
    stack = below[None][::-1]
    while stack:
        key = stack.pop()
        parent = above[key]
        steps.append(PauseStep(key[0], depth[key], "" if parent is None else parent[0]))
        stack += below.get(key, [])[::-1]
    pausing = {receiver(step.link) for step in steps}
    leaves = sorted({sender(step.link) for step in steps} - pausing)
    return PauseTree(*root, tuple(steps), tuple(leaves), cycle)


def _cycles(parents: _Graph, children: _Graph) -> list[list[_Key]]:
    """Circles of pauses, each of which has the next one as a reason; no pause is in two of them."""
    left = set(parents)
    for first, after in ((parents, children), (children, parents)):
        _peel(left, first, after)
    found = []
    while left:
        key = min(left)
        way: list[_Key] = []
        while key not in way:
            way.append(key)
            key = min(parent for parent in parents[key] if parent in left)
        found.append(way[way.index(key) :])
        left.difference_update(found[-1])
        for first, after in ((parents, children), (children, parents)):
            _peel(left, first, after)
    return found


def _peel(left: set[_Key], before: _Graph, after: _Graph) -> None:
    """Take out, again and again, what has nothing `before` it in `left`."""
    counts = {key: sum(one in left for one in before[key]) for key in left}
    free = [key for key, count in counts.items() if not count]
    while free:
        key = free.pop()
        left.discard(key)
        for one in after[key]:
            if one in counts:
                counts[one] -= 1
                if not counts[one] and one in left:
                    free.append(one)
