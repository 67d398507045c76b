"""The kinds of programs there are.

Owns the names, for hosts, the scenario language and the docs alike. The module of each kind says what it does.
"""

from collections.abc import Mapping
from typing import Final

from mrcfabric.errors import ConfigError
from nicd.programs.all_reduce import HALVING_ALL_REDUCE, REDUCE_SCATTER, RING_ALL_REDUCE
from nicd.programs.exchange import ALL_GATHER, ALL_TO_ALL, BROADCAST
from nicd.programs.kind import Kind, Part
from nicd.programs.program import Program
from nicd.programs.streams import INCAST, P2P, PERMUTATION
from nicd.programs.trace import TRACE
from nicd.programs.training import TRAINING

PROGRAMS: Final[Mapping[str, Kind]] = {
    "p2p": P2P,
    "permutation": PERMUTATION,
    "incast": INCAST,
    "all_to_all": ALL_TO_ALL,
    "ring_all_reduce": RING_ALL_REDUCE,
    "halving_doubling_all_reduce": HALVING_ALL_REDUCE,
    "reduce_scatter": REDUCE_SCATTER,
    "all_gather": ALL_GATHER,
    "broadcast": BROADCAST,
    "training": TRAINING,
    "trace": TRACE,
}


def check(program: Program) -> None:
    """Raises ConfigError for an unknown kind, wrong figures, or ranks that do not suit the kind."""
    part_of(program, 0)


def part_of(program: Program, number: int) -> Part:
    """What rank `number` does in a program. Raises ConfigError as `check` does."""
    if not program.name.isprintable():
        raise ConfigError("program.name", f"{program.name!r} will not do", "one line of printable characters")
    where = f"program {program.name}"
    kind = PROGRAMS.get(program.kind)
    if kind is None:
        raise ConfigError(f"{where}.kind", f"{program.kind!r} is not known", "one of " + ", ".join(PROGRAMS))
    if program.first_step and program.kind != "training":
        raise ConfigError(f"{where}.first_step", f"{program.kind} has no checkpoint to begin with", "only training has")
    return kind.part(program, kind.checked(where, program.figures, len(program.ranks)), number)
