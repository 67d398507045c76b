"""How a vector is cut, filled, added and checked."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nicd.programs.program import Program
from nicd.programs.rank import Rank
from nicd.programs.vector import Addends, Vector, cut, longest


@given(st.integers(1, 500).map(lambda lanes: 4 * lanes), st.integers(1, 70))
def test_cuts_cover_the_vector_in_whole_lanes(size: int, parts: int) -> None:
    bounds = cut(size, parts)
    sizes = [high - low for low, high in pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(sizes)) == (0, size, parts)
    assert max(sizes) == longest(size, parts)
    assert all(size % 4 == 0 and size >= longest(size * parts, parts) - 4 for size in sizes)


def ranks(count: int, size: int) -> list[Rank]:
    program = Program("p", "ring_all_reduce", 0, tuple(range(count)), 0, "s")
    names = tuple(map(str, range(count)))
    return [Rank(program, n, names, memoryview(bytearray(2 * size)), lambda *_: None) for n in range(count)]


def test_contributions_of_all_ranks_add_up_to_what_is_expected() -> None:
    size = 400
    vectors = [Vector(rank, 0, size) for rank in ranks(5, size)]
    addends = [Addends(vector.rank, size) for vector in vectors]
    for vector, own in zip(vectors, addends, strict=True):
        own.fill(vector, 3, 1)
    first = vectors[0].rank
    for other in vectors[1:]:
        first.memory[size:] = other.rank.memory[:size]
        vectors[0].add(0, size, size)
    addends[0].verify(vectors[0], 0, size, 3, 1)
    assert (first.record.bytes_verified, first.record.bytes_wrong) == (size, 0)
    addends[0].verify(vectors[0], 40, 80, 3, 1)
    assert first.record.bytes_wrong == 0
    addends[0].verify(vectors[0], 0, size, 4, 1)
    assert first.record.bytes_wrong > size // 2
