"""python -m studies.scale: measures, and prints docs/SCALE.md; --write stores both, --check compares with what is
stored."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.scale import recovery, validation
from studies.scale.page import Measured, page

DOCUMENT = Path(__file__).parents[2] / "docs" / "SCALE.md"
STORE = Path(__file__).parent / "measured.json"
DIGITS = 9
"""Digits of a stored figure."""


def measured() -> Measured:
    """Measure everything anew: about a minute of CPU."""
    recoveries = {}
    for system in recovery.SYSTEMS:
        began_s = time.process_time()
        recoveries[system.name] = tuple(
            _rounded(recovery.measure(system, links)) for links in (recovery.FABRIC, recovery.NIC)
        )
        print(f"{system.name}: {time.process_time() - began_s:.1f} s", file=sys.stderr)
    checks = [validation.check(mean_ms, validation.SEEDS) for mean_ms in validation.MEANS_MS]
    return Measured(recoveries, [_rounded(one) for one in checks])


def _rounded(found: Any) -> Any:
    return found._replace(
        **{name: round(value, DIGITS) for name, value in found._asdict().items() if isinstance(value, float)}
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit code: 1 where --check finds something else."""
    parser = argparse.ArgumentParser("python -m studies.scale", description="At what scale MRC becomes indispensable.")
    parser.add_argument("--write", action="store_true", help="write docs/SCALE.md and what was measured")
    parser.add_argument("--check", action="store_true", help="compare with what is stored")
    given = parser.parse_args(arguments)
    made = measured()
    text = page(made)
    stored = json.dumps(made.plain(), indent=1) + "\n"
    if given.check:
        same = STORE.read_text() == stored and DOCUMENT.read_text() == text
        print("as stored" if same else "other than stored: make scale")
        return int(not same)
    if given.write:
        STORE.write_text(stored)
        DOCUMENT.write_text(text)
        print(DOCUMENT)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
