"""Digests of fixed cases, stored: the same seed gives the same trace everywhere, and a change shows as a diff.

`python -m swarm --write-digests` makes the file anew. A change of a digest is not wrong by itself: whoever changes what
a core does changes it, and sees here which cases it touches.
"""

import json
from pathlib import Path
from typing import Any, Final

from swarm.draw import draw
from swarm.run import run
from swarm.world import Depth

STORE: Final = Path(__file__).with_name("digests.json")
SEEDS: Final = (1, 2, 3, 5, 8, 13)
"""Fixed; new cases belong at the end."""


def digest_of_seed(seed: int) -> dict[str, Any]:
    """The digest of a seed's trace, with two figures that say at a glance what has changed."""
    outcome = run(draw(seed), Depth(stepwise=False, checks=False))
    if outcome.failed:
        raise RuntimeError(f"seed {seed}: {outcome.reason}")
    return {"digest": outcome.digest, "data_packets": outcome.data_packets, "ended_ns": outcome.ended_ns}


def stored() -> dict[str, Any]:
    """What the file says, by seed."""
    found: dict[str, Any] = json.loads(STORE.read_text(encoding="utf-8"))
    return found


def write() -> None:
    """Make the file anew."""
    table = {str(seed): digest_of_seed(seed) for seed in SEEDS}
    STORE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
