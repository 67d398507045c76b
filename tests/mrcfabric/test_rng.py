"""The generator: the same stream for the same names, everywhere and always."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import PPM, Rng, seed_of


def test_the_stream_never_changes() -> None:
    """Stored once: a change would change every trace that anybody has kept."""
    rng = Rng("p3-t0-17", 4)
    assert [rng.bits64() for _ in range(3)] == [0xB4FA2660BF1EB54E, 0xAA31A5638098A202, 0x9C88DA0F80D2E6CF]


def test_fnv_of_one_letter() -> None:
    """FNV-1a, 64 bits, of "a": the published test value."""
    assert seed_of("a") == 0xAF63DC4C8601EC8C


def test_names_are_kept_apart() -> None:
    assert seed_of("ab", "c") != seed_of("a", "bc")
    assert seed_of("p", 11) != seed_of("p1", 1)


@given(st.text(max_size=8), st.integers(1, 1 << 40))
def test_below_stays_below(name: str, bound: int) -> None:
    rng = Rng(name)
    assert all(0 <= rng.below(bound) < bound for _ in range(20))


@given(st.text(max_size=8), st.lists(st.integers()))
def test_a_shuffle_keeps_what_it_shuffles(name: str, items: list[int]) -> None:
    shuffled = list(items)
    Rng(name).shuffle(shuffled)
    assert sorted(shuffled) == sorted(items)


def test_chance_is_about_right() -> None:
    rng = Rng("chance")
    hits = sum(rng.chance(200_000) for _ in range(20_000))
    assert 3_800 < hits < 4_200


def test_certainty_draws_nothing() -> None:
    drawn, fresh = Rng("certain"), Rng("certain")
    assert not drawn.chance(0)
    assert drawn.chance(PPM)
    assert drawn.bits64() == fresh.bits64()


def test_every_place_is_reached_by_a_shuffle() -> None:
    rng = Rng("places")
    seen = set()
    for _ in range(200):
        items = list(range(5))
        rng.shuffle(items)
        seen.add(items.index(0))
    assert seen == set(range(5))
