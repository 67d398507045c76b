"""One fault, resolved to names and instants: the record that scenarios, commands, scripts and reports share.

Owns the record and nothing else. What kinds there are is `orchestrator.faults.kinds`'s, what they do to daemons
`orchestrator.faults.table`'s, and which parts of a fabric a description means `orchestrator.faults.selectors`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from mrcfabric.units import NEVER, Instant

Figure: TypeAlias = int | str | bool | None
"""A parameter of a fault; units stand last in its name (`delay_ns`, `share_ppm`, `rate_bps`)."""


class Window(NamedTuple):
    """From `start_ns` up to, not including, `end_ns` the fault bites, with these figures.

    `end_ns` NEVER: until it is healed. A flap is many windows, a ramp windows with different figures.
    """

    start_ns: Instant
    end_ns: Instant
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is broken, where and when. Windows are in time order, never empty, and do not overlap."""

    id: str
    """Unique within a fabric: `f1`, or the name that the scenario gives it."""
    kind: str
    """A key of `orchestrator.faults.kinds.KINDS`."""
    targets: tuple[str, ...]
    """What the kind is about: see `Target`."""
    windows: tuple[Window, ...]
    owner: str = ""
    """The run it belongs to; "" for one that an operator injected."""
    title: str = ""
    """How reports call it; "" for the kind and the targets."""

    @property
    def start_ns(self) -> Instant:
        return self.windows[0].start_ns

    @property
    def end_ns(self) -> Instant:
        """When it is over by itself; NEVER when only healing ends it."""
        return self.windows[-1].end_ns

    def at(self, at_ns: Instant) -> Mapping[str, Figure] | None:
        """The figures with which it bites at an instant; None when it does not."""
        for window in self.windows:
            if window.start_ns <= at_ns < window.end_ns:
                return window.figures
        return None

    def record(self) -> dict[str, Any]:
        """As it stands in reports and answers: plain data."""
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "targets": list(self.targets),
            "owner": self.owner,
            "windows": [
                [window.start_ns, None if window.end_ns == NEVER else window.end_ns, dict(window.figures)]
                for window in self.windows
            ],
        }
