"""One fault with its names and instants resolved: the record that scenarios, commands, scripts and reports share.

Owns only the record. `orchestrator.faults.kinds` lists the kinds, `orchestrator.faults.table` turns faults into
commands for daemons, and `orchestrator.faults.selectors` resolves descriptions to parts of a fabric.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.units import NEVER, Instant

ID_CHARS_MAX: Final = 80
TITLE_CHARS_MAX: Final = 120

Figure: TypeAlias = int | str | bool | None
"""A parameter of a fault; its name ends in its unit (`delay_ns`, `share_ppm`, `rate_bps`)."""


_KEYS: Final = {"id": str, "kind": str, "title": str, "targets": list, "owner": str, "windows": list, "parts": list}


class Window(NamedTuple):
    """The fault is in force from `start_ns` up to, not including, `end_ns`, with these figures.

    `end_ns` NEVER: until it is healed. A flap has many windows, a ramp has windows with different figures.
    """

    start_ns: Instant
    end_ns: Instant
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is broken, where and when. Windows are in time order, never empty, and do not overlap."""

    id: str
    """Unique within a fabric: for example `f1`, or the name in the scenario."""
    kind: str
    """A key of `orchestrator.faults.kinds.KINDS`."""
    targets: tuple[str, ...]
    """What the kind acts on, spelled as `Target` says."""
    windows: tuple[Window, ...]
    owner: str = ""
    """The run that owns it; "" for a fault that an operator injected."""
    title: str = ""
    """Its name in reports; "": reports show the kind and the targets."""
    parts: tuple[str, ...] = ()
    """For a host fault: the nodes or links of its target hosts, as nodes are placed; otherwise empty."""

    @property
    def struck(self) -> tuple[str, ...]:
        """The parts of the fabric that the fault acts on."""
        return self.parts or self.targets

    @property
    def start_ns(self) -> Instant:
        return self.windows[0].start_ns

    @property
    def end_ns(self) -> Instant:
        """When the fault ends by itself; NEVER when only healing ends it."""
        return self.windows[-1].end_ns

    def at(self, at_ns: Instant) -> Mapping[str, Figure] | None:
        """The figures in force at an instant; None when the fault is not in force."""
        for window in self.windows:
            if window.start_ns <= at_ns < window.end_ns:
                return window.figures
        return None

    def record(self) -> dict[str, Any]:
        """As plain data, for reports and answers."""
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "targets": list(self.targets),
            "parts": list(self.parts),
            "owner": self.owner,
            "windows": [
                [window.start_ns, None if window.end_ns == NEVER else window.end_ns, dict(window.figures)]
                for window in self.windows
            ],
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Fault":
        """Make a fault of what `record` returned. Raises ConfigError for other data; `checks` does the rest."""
        given = {"parts": [], **record}
        for key, kind in _KEYS.items():
            if not isinstance(given.get(key), kind):
                raise ConfigError(f"fault.{key}", f"{given.get(key)!r} will not do", f"wanted: {kind.__name__}")
        if set(given) - set(_KEYS):
            raise ConfigError("fault", f"has no {', '.join(sorted(map(str, set(given) - set(_KEYS))))}")
        for key in ("targets", "parts"):
            if not all(isinstance(name, str) for name in given[key]):
                raise ConfigError(f"fault.{key}", "not all are names")
            given[key] = tuple(given[key])
        given["windows"] = tuple(_window(number, entry) for number, entry in enumerate(given["windows"]))
        return cls(**given)


def once(
    kind: str,
    *targets: str,
    at_ns: Instant,
    until_ns: Instant = NEVER,
    fault_id: str = "",
    owner: str = "",
    title: str = "",
    **figures: Figure,
) -> Fault:
    """Make a fault of one window. Without an id it is named after its kind, targets and start. Raises ConfigError."""
    for one in targets:
        if not isinstance(one, str):
            raise ConfigError("targets", f"{shown(repr(one))} is no text", "names, as p0-t0-0~p0-t1-0")
    name = fault_id or f"{kind} {','.join(targets)} {at_ns}"[:ID_CHARS_MAX]
    return Fault(name, kind, targets, (Window(at_ns, until_ns, figures),), owner, title)


def _window(number: int, entry: Any) -> Window:
    where = f"fault.windows[{number}]"
    if not isinstance(entry, list | tuple) or len(entry) != 3 or not isinstance(entry[2], Mapping):
        raise ConfigError(where, f"{entry!r} will not do", "wanted: [start_ns, end_ns or null, {figure: value}]")
    start_ns, end_ns, figures = entry
    end_ns = NEVER if end_ns is None else end_ns
    for instant in (start_ns, end_ns):
        if not isinstance(instant, int) or isinstance(instant, bool) or not 0 <= instant <= NEVER:
            raise ConfigError(where, f"{instant!r} is no instant", "whole nanoseconds")
    return Window(start_ns, end_ns, dict(figures))
