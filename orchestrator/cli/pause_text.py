"""Trees of pauses as text: who pauses whom, from the reason down to the NICs that stand still.

Pure. `orchestrator.live.pause_tree` makes the trees; the map in the browser shows the same.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from orchestrator.live.pause_tree import PauseTree, PauseView, receiver, sender

REASONS: Final = {
    "congested_port": "its port to {to} is congested",
    "slow_receiver": "it takes packets more slowly than they come",
    "storm": "it pauses without a reason",
    "unknown": "why is not known",
    "deadlock_suspect": "pauses go round in a circle: a DEADLOCK if they last",
}


def render_trees(pauses: Sequence[PauseView], trees: Sequence[PauseTree]) -> str:
    """Every tree: a line for its root, a line per paused direction below it, and who pauses nobody."""
    known = {(pause.link, pause.cls): pause for pause in pauses}
    return "\n".join(line for tree in trees for line in _tree(tree, known))


def _tree(tree: PauseTree, known: Mapping[tuple[str, int], PauseView]) -> list[str]:
    lines = [root_says(tree)]
    if tree.cycle:
        lines.append("  circle: " + " because of ".join((*tree.cycle, tree.cycle[0])))
    lines += [
        f"{'  ' * step.depth}{receiver(step.link)} pauses {sender(step.link)}  {told(known[step.link, tree.cls])}"
        for step in tree.steps
    ]
    return [*lines, f"  at the end: {' '.join(tree.leaves) or 'nobody'}"]


def root_says(tree: PauseTree) -> str:
    """The reason of a tree."""
    return f"class {tree.cls}: {tree.root}, {REASONS[tree.cause].format(to=receiver(tree.link))}"


def told(pause: PauseView) -> str:
    """The figures of a pause."""
    return f"{pause.share:.1%} of the time, {pause.frames:,} frames" + (", now too" if pause.paused else "")
