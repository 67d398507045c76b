"""Parameters of which `make test` takes some, and `make test-long` the rest."""

from collections.abc import Iterable
from typing import Any

import pytest


def corners(values: Iterable[Any], *kept: Any) -> list[Any]:
    """`values` for `parametrize`; all but those that are `kept` are marked as long. Raises ValueError for no such."""
    found = list(values)
    if unknown := [one for one in kept if one not in found]:
        raise ValueError(f"{unknown} are none of {found}")
    return [one if one in kept else pytest.param(one, marks=pytest.mark.long) for one in found]
