"""The record of a program: numbers that never collide, and mistakes that are named."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.wire.layout import QPN_MAX
from nicd.programs.program import PROGRAMS_MAX, RANKS_MAX, Program

RING = Program("train", "training", 3, (0, 4, 1), 1_000, "seed", {"steps": 4})

numbers = st.tuples(st.integers(0, PROGRAMS_MAX - 1), st.integers(0, RANKS_MAX - 1))


@given(numbers, numbers)
def test_numbers_of_programs_and_ranks_never_collide(one: tuple[int, int], other: tuple[int, int]) -> None:
    found = []
    for number, rank in (one, other):
        program = Program("p", "k", number, (0,), 0, "s")
        found.append((program.qpn(rank), program.r_key(rank), program.va(rank)))
        assert program.qpn(rank) <= QPN_MAX
        assert program.r_key(rank) < 1 << 32
        assert program.va(rank) + (1 << 43) < 1 << 64
    assert (one == other) == (found[0] == found[1])
    if one != other:
        assert all(mine != theirs for mine, theirs in zip(*found, strict=True))


def test_first_psns_differ_by_direction_and_are_the_same_at_both_ends() -> None:
    assert RING.psn(0, 1) == Program.of(RING.settings()).psn(0, 1) != RING.psn(1, 0)


def test_settings_are_the_inverse_of_of() -> None:
    assert Program.of(RING.settings()) == RING


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"number": PROGRAMS_MAX}, "number"),
        ({"ranks": [1, 1]}, "ranks"),
        ({"ranks": [1, "h001"]}, "ranks"),
        ({"begin_ns": -1}, "begin_ns"),
        ({"seed": 4}, "seed"),
        ({"name": "a\x1b[31m"}, "program.name"),
        ({"colour": "red"}, "colour"),
        ({"figures": None}, "figures"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        Program.of({**RING.settings(), **change})
