"""The records that describe a kind of program: its figures, and the part of each rank in it.

Owns the records and the check of figures. `catalogue` lists the kinds.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.units import MIB
from nicd.programs.program import RANKS_MAX, Program
from nicd.programs.rank import Rank

Run: TypeAlias = Callable[[Rank], Coroutine[Any, Any, None]]
"""The coroutine of a rank, from begin to end."""
Figures: TypeAlias = Mapping[str, Any]
"""Every figure of a kind by name: given, or its default."""

MESSAGE_BYTES_MAX: Final = 64 * MIB
STEPS_MAX: Final = 10_000
TRACE_MESSAGES_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class Figure:
    """A whole number, a choice or yes/no that a kind takes. Its unit is the ending of its name."""

    default: int | str | bool | None
    """None: may be left out, and then has the meaning that the text says."""
    meaning: str
    least: int = 0
    most: int = 1 << 62
    multiple: int = 1
    choices: tuple[str, ...] = ()
    """The allowed texts."""

    def check(self, where: str, value: Any) -> None:
        """Raises ConfigError."""
        if value is None and self.default is None:
            return
        if self.choices:
            if value not in self.choices:
                raise ConfigError(where, f"{value!r} is not known", "one of " + ", ".join(self.choices))
        elif isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise ConfigError(where, f"{value!r} is neither true nor false")
        elif not isinstance(value, int) or isinstance(value, bool):
            raise ConfigError(where, f"{value!r} is not a whole number")
        elif not self.least <= value <= self.most:
            raise ConfigError(where, f"{value} is out of range", f"{self.least} to {self.most}")
        elif value % self.multiple:
            raise ConfigError(where, f"{value} is not a multiple of {self.multiple}")


@dataclass(frozen=True, slots=True)
class TraceFigure:
    """A list of messages: [from rank, to rank, bytes, instant in ns after the begin]."""

    meaning: str
    default: None = None

    def check(self, where: str, value: Any) -> None:
        """Raises ConfigError."""
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= TRACE_MESSAGES_MAX:
            raise ConfigError(where, "is no list of messages", f"1 to {TRACE_MESSAGES_MAX} of them")
        for place, message in enumerate(value):
            if not isinstance(message, list | tuple) or len(message) != 4 or not all(map(_natural, message)):
                raise ConfigError(f"{where}[{place}]", f"{message!r} will not do", "[from, to, bytes, at in ns]")
            if not 1 <= message[2] <= MESSAGE_BYTES_MAX:
                raise ConfigError(f"{where}[{place}]", f"a message of {message[2]} bytes", f"1 to {MESSAGE_BYTES_MAX}")


def _natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


@dataclass(frozen=True, slots=True)
class Part:
    """What one rank does in a program, and the memory it needs."""

    peers: tuple[int, ...]
    """Ranks that it exchanges messages with, ascending."""
    inbound_bytes: int
    """Size of the memory that peers write into; the same at all ranks of a program."""
    noise: bytes
    """The bytes that it sends from; they follow the inbound part in memory."""
    run: Run


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the catalogue."""

    meaning: str
    figures: Mapping[str, Figure | TraceFigure]
    part: Callable[[Program, Figures, int], Part]
    """Makes the part of a rank from checked figures. Raises ConfigError for figures that do not fit together."""
    ranks_least: int = 2
    ranks_most: int = RANKS_MAX
    even: bool = False
    """Only an even number of ranks will do."""
    required: frozenset[str] = frozenset()

    def checked(self, where: str, figures: Mapping[str, Any], ranks: int) -> Figures:
        """All figures, with defaults for those that are not given. Raises ConfigError that names the figure."""
        unknown = sorted(set(figures) - set(self.figures))
        if unknown:
            hint = "there are " + (", ".join(self.figures) or "none")
            raise ConfigError(f"{where}.{unknown[0]}", "is no figure of this kind", hint)
        missing = sorted(self.required - set(figures))
        if missing:
            raise ConfigError(f"{where}.{missing[0]}", "is missing")
        for name, value in figures.items():
            self.figures[name].check(f"{where}.{name}", value)
        if not self.ranks_least <= ranks <= self.ranks_most:
            raise ConfigError(f"{where}.ranks", f"{ranks} will not do", f"{self.ranks_least} to {self.ranks_most}")
        if self.even and ranks % 2:
            raise ConfigError(f"{where}.ranks", f"{ranks} ranks cannot be put into pairs")
        return {name: figures.get(name, row.default) for name, row in self.figures.items()}
