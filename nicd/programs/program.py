"""The record of a workload for all its ranks, and the numbers that follow from it.

From the record alone every rank knows its QPs, and the address and key of its peers' memory. So ranks exchange nothing
before a run, and the order in which they get the record does not matter. The other modules say what a program does.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from mrcfabric.units import Instant

PROGRAMS_MAX: Final = 64
"""Programs of one fabric, all hosts together, from launch to stop."""
UNKNOWN: Final = "no program"
"""How a NIC begins its refusal to end a program that it does not have."""
RANKS_MAX: Final = 4096
QPS_MAX: Final = 16
"""QPs from one rank to another."""
ATTEMPTS_MAX: Final = 1024
"""Attempts of one program: its first, and those after restarts."""
_QPN_TURNS: Final = 3
"""An attempt has other QPNs than the two before it, whose packets may still be under way."""
_QPN_BASE: Final = 0x100000
_KEY_BASE: Final = 0x4000_0000
_VA_STRIDE: Final = 1 << 44


@dataclass(frozen=True, slots=True)
class Program:
    """One workload. The same record goes to every NIC that has a rank in it."""

    name: str
    kind: str
    """Which program: a key of `nicd.programs.catalogue.PROGRAMS`."""
    number: int
    """Number of the workload in its fabric, 0 .. PROGRAMS_MAX - 1: keeps QPs, keys and addresses apart."""
    ranks: tuple[int, ...]
    """Index of the NIC of every rank; a NIC has at most one rank in a program."""
    begin_ns: Instant
    """When the ranks begin. The command must come earlier, since it makes and connects the QPs."""
    seed: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The figures of the kind: plain data, units last in the names."""
    qps: int = 1
    """QPs between two ranks: messages take them in turn."""
    profile: int = 0
    """Number of the EV profile of its QPs, which must be online; 0: the built-in one."""
    attempt: int = 0
    """How often it has been restarted. Each attempt has QPs, PSNs and keys of its own: no packet of an earlier one can
    write into its memory."""
    first_step: int = 0
    """The step that it begins with."""

    def qpn(self, peer_rank: int, turn: int = 0) -> int:
        """The number, at any rank, of one of its QPs towards `peer_rank`."""
        set_of_qps = self.attempt % _QPN_TURNS * QPS_MAX + turn
        return _QPN_BASE + (set_of_qps * PROGRAMS_MAX + self.number) * RANKS_MAX + peer_rank

    def r_key(self, rank: int) -> int:
        """The key of a rank's memory, another in every attempt."""
        return _KEY_BASE + (self.attempt * PROGRAMS_MAX + self.number) * RANKS_MAX + rank

    def va(self, rank: int) -> int:
        """The first address of a rank's memory."""
        return (self.number * RANKS_MAX + rank + 1) * _VA_STRIDE % (1 << 63)

    def psn(self, sender: int, receiver: int, turn: int = 0) -> int:
        """The first PSN from one rank to another, on one of their QPs."""
        words = f"psn {sender} {receiver}" + (f" {turn}" if turn else "")
        words += f" attempt {self.attempt}" if self.attempt else ""
        return Rng(self.seed, self.name, words).below(1 << 24)

    def settings(self) -> dict[str, Any]:
        """Plain data, the inverse of `of`."""
        return {**asdict(self), "ranks": list(self.ranks), "figures": dict(self.figures)}

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Program":
        """From plain data. Raises ConfigError that names the field; the kind checks the figures."""
        kinds = {"name": str, "kind": str, "number": int, "ranks": list, "begin_ns": int, "seed": str, "figures": dict,
                 "qps": int, "profile": int, "attempt": int, "first_step": int}  # fmt: skip
        settings = {"qps": 1, "profile": 0, "attempt": 0, "first_step": 0, **settings}
        for key, kind in kinds.items():
            value = settings.get(key)
            if not isinstance(value, kind) or isinstance(value, bool):
                raise ConfigError(f"program.{key}", f"{value!r} will not do", f"wanted: {kind.__name__}")
        if set(settings) - set(kinds):
            raise ConfigError("program", f"has no {', '.join(sorted(set(settings) - set(kinds)))}")
        if not settings["name"].isprintable():
            raise ConfigError("program.name", f"{settings['name']!r} will not do", "one line of printable characters")
        ranks = settings["ranks"]
        if not 0 <= settings["number"] < PROGRAMS_MAX:
            raise ConfigError("program.number", f"{settings['number']} is out of range", f"0..{PROGRAMS_MAX - 1}")
        if not all(isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 for rank in ranks):
            raise ConfigError("program.ranks", "not all are numbers of NICs")
        if not 1 <= len(ranks) <= RANKS_MAX or len(set(ranks)) != len(ranks):
            raise ConfigError("program.ranks", f"{len(ranks)} NICs will not do", f"1..{RANKS_MAX}, each once")
        if not 1 <= settings["qps"] <= QPS_MAX:
            raise ConfigError("program.qps", f"{settings['qps']} is out of range", f"1..{QPS_MAX}")
        if not 0 <= settings["attempt"] < ATTEMPTS_MAX or settings["first_step"] < 0:
            what = f"attempt {settings['attempt']} from step {settings['first_step']} is out of range"
            raise ConfigError("program.attempt", what, f"attempts 0..{ATTEMPTS_MAX - 1}, steps from 0 on")
        if settings["begin_ns"] < 0:
            raise ConfigError("program.begin_ns", "is before the beginning of time")
        return cls(**{**settings, "ranks": tuple(ranks)})
