"""Checks and sums of the figures of an impairment: whole numbers in bounds, lists of them, shares that meet.

Owns the wording of what is wrong. `mrcfabric.impairment` has the figures and their bounds.
"""

from collections.abc import Iterable
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.rng import PPM

BLACK_HOLES_MAX: Final = 64
"""Most uSIDs, and most EVs, that one direction can black-hole."""


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raises ConfigError that names the figure."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"impairment.{name}", f"{value!r} is not an integer")
    if not least <= value <= most:
        raise ConfigError(f"impairment.{name}", f"{value} is out of range", f"{least}..{most}")


def check_list(name: str, values: object, least: int, most: int) -> None:
    """The same for each of a list. Raises ConfigError."""
    if not isinstance(values, tuple):
        raise ConfigError(f"impairment.{name}", f"{values!r} is not a list of integers")
    if len(values) > BLACK_HOLES_MAX:
        raise ConfigError(f"impairment.{name}", f"{len(values)} are too many", f"{BLACK_HOLES_MAX} at most")
    for value in values:
        check_whole(name, value, least, most)


def either(shares: Iterable[int]) -> int:
    """The share of packets that meet at least one of several independent faults, rounded up."""
    passing, whole = PPM, PPM
    for share in shares:
        passing *= PPM - share
        whole *= PPM
    return PPM - passing * PPM // whole
