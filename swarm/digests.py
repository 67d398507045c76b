"""Digests of fixed cases, stored: the same seed gives the same trace everywhere, and a change shows as a diff.

`python -m swarm --write-digests` makes the file anew. A change of a digest is not wrong by itself: whoever changes what
a core does changes it, and sees here which cases it touches.
"""

import json
from pathlib import Path
from typing import Any, Final

from swarm.batch import DRAW
from swarm.case import MRC, SYSTEMS
from swarm.run import run
from swarm.world import Depth

STORE: Final = Path(__file__).with_name("digests.json")
SEEDS: Final = (1, 2, 3, 5, 8, 13)
"""Of the series of MRC. Fixed; new cases belong at the end."""
SYSTEM_SEEDS: Final = (2, 3, 6, 7, 17, 21, 98)
"""Of the series of all systems; these stand in the file behind the name of their series."""


def names() -> dict[str, tuple[str, int]]:
    """What each entry of the file is called -> series and seed."""
    found = {str(seed): (MRC, seed) for seed in SEEDS}
    return found | {f"{SYSTEMS} {seed}": (SYSTEMS, seed) for seed in SYSTEM_SEEDS}


def digest_of_seed(seed: int, series: str = MRC) -> dict[str, Any]:
    """The digest of a seed's trace, with two figures that say at a glance what has changed."""
    outcome = run(DRAW[series](seed), Depth(stepwise=False, checks=False))
    if outcome.failed:
        raise RuntimeError(f"{series} seed {seed}: {outcome.reason}")
    return {"digest": outcome.digest, "data_packets": outcome.data_packets, "ended_ns": outcome.ended_ns}


def stored() -> dict[str, Any]:
    """What the file says, by the name of each entry."""
    found: dict[str, Any] = json.loads(STORE.read_text(encoding="utf-8"))
    return found


def write() -> None:
    """Make the file anew."""
    table = {name: digest_of_seed(seed, series) for name, (series, seed) in names().items()}
    STORE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
