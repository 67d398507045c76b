"""The sections of the benchmark: which there are, what each needs, and `python -m bench.section NAME` to run one.

A section is a module with `run() -> figures`; running one prints its figures as JSON on standard output.
"""

import importlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the benchmark."""

    module: str
    about: str
    needs: tuple[str, ...] = ()
    """Sections whose figures its ratios are made of."""
    by_name: bool = False
    """Measured only when it is asked for: it takes more than a Python."""


SECTIONS = {
    "reference": Section("bench.reference", "a bare forwarder and a bare chain, without protocol"),
    "hop": Section("bench.hop", "one switch with its I/O on one CPU", ("reference",)),
    "scrape": Section("bench.scrape", "what it costs a NIC to say what it counts"),
    "sim": Section("bench.simulated", "the demo's fabric in virtual time"),
    "launch": Section("bench.launch", "from the command to 56 daemons ready, and their memory"),
    "hosts": Section("bench.hosts", "200 daemons over four hosts in namespaces, by ssh; needs root", by_name=True),
    "crowd": Section("bench.crowd", "608 busy daemons, looked at; it takes two minutes", by_name=True),
    "e2e": Section("bench.pair", "one NIC to another over eight planes", ("reference",)),
    "fabric": Section("bench.permutation", "eight NICs in permutation over 48 switches"),
}
ORDER = tuple(SECTIONS)
USUAL = tuple(name for name, section in SECTIONS.items() if not section.by_name)


def requirements(chosen: Sequence[str]) -> list[str]:
    """The chosen sections and those they need, in the order in which they run."""
    wanted = set(chosen).union(*(SECTIONS[name].needs for name in chosen))
    return [name for name in ORDER if name in wanted]


def run(name: str) -> dict[str, Any]:
    """Measure one section here and now."""
    figures: dict[str, Any] = importlib.import_module(SECTIONS[name].module).run()
    return figures


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1])))
