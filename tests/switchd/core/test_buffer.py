"""The account of the shared buffer: parts, thresholds, XOFF and XON, drops, and what no sequence of calls can do."""

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from switchd.core.buffer import CLASSES, FULL, NO_HEADROOM, XOFF, BufferConfig, SharedBuffer

STATIC = BufferConfig(
    bytes_total=200_000, headroom_bytes=(10_000, 20_000), lossless=(3,), frame_bytes_max=1_000, reserved_bytes=2_000,
    xoff_bytes=8_000, xon_offset_bytes=3_000,
)  # fmt: skip
DYNAMIC = replace(STATIC, xoff_bytes=0, alpha_shift=1)
PAIR, LOSSY = 3, 6


def fill(buffer: SharedBuffer, pair: int, size: int = 1_000, most: int = 10_000) -> list[str | None]:
    """Packets until one is not simply admitted; what each was told."""
    told: list[str | None] = []
    while not told or (told[-1] is None and len(told) < most):
        told.append(buffer.admit(pair, size))
    return told


def test_the_pool_is_what_nobody_owns() -> None:
    assert STATIC.pool_bytes == 200_000 - (10_000 + 1_000) - (20_000 + 1_000) - 2 * 8 * 2_000


@pytest.mark.parametrize("size", [1, 7, 500, 1_000])
def test_xoff_comes_with_the_byte_that_reaches_the_threshold(size: int) -> None:
    buffer = SharedBuffer(STATIC)
    assert len(fill(buffer, PAIR, size)) == -(-8_000 // size)
    assert buffer.xoff[PAIR]
    assert buffer.headroom[PAIR] == 0, "the frame that crosses has room of its own"


def test_what_comes_after_xoff_needs_headroom_and_the_rest_is_dropped() -> None:
    buffer = SharedBuffer(STATIC)
    fill(buffer, PAIR)
    assert [buffer.admit(PAIR, 1_000) for _ in range(11)] == [None] * 10 + [NO_HEADROOM]
    assert (buffer.headroom[PAIR], buffer.headroom_peak[PAIR], buffer.peak[PAIR]) == (10_000, 10_000, 18_000)
    assert buffer.drops[NO_HEADROOM][PAIR] == 1
    other = CLASSES + PAIR
    fill(buffer, other)
    assert [buffer.admit(other, 1_000) for _ in range(21)] == [None] * 20 + [NO_HEADROOM], "each port has its own"


def test_xon_comes_below_the_offset_and_with_headroom_empty() -> None:
    buffer = SharedBuffer(STATIC)
    fill(buffer, PAIR)
    for _ in range(2):
        buffer.admit(PAIR, 1_000)
    # Two of headroom, then from 8,000 down to 5,000.
    assert [buffer.release(PAIR, 1_000) for _ in range(6)] == [False, False, False, False, True, False]
    assert not buffer.xoff[PAIR]
    assert buffer.stock[PAIR] == 4_000


def test_an_offset_beyond_the_threshold_waits_for_an_empty_share() -> None:
    buffer = SharedBuffer(replace(STATIC, xon_offset_bytes=50_000))
    fill(buffer, PAIR)
    assert [buffer.release(PAIR, 1_000) for _ in range(6)] == [False] * 5 + [True]
    assert buffer.stock[PAIR] == STATIC.reserved_bytes


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_a_threshold_that_follows_the_pool_leaves_alpha_of_what_is_unused(shift: int) -> None:
    """The share s settles where s = (pool - s) / 2^shift."""
    buffer = SharedBuffer(replace(DYNAMIC, alpha_shift=shift))
    fill(buffer, PAIR, 100)
    alpha = 2.0**-shift
    assert buffer.stock[PAIR] - 2_000 == pytest.approx(DYNAMIC.pool_bytes * alpha / (1 + alpha), abs=200)
    assert buffer.stock[PAIR] == pytest.approx(buffer.config.first_xoff_bytes, abs=100)
    assert STATIC.first_xoff_bytes == 8_000


def test_pairs_share_the_pool_evenly_when_all_press() -> None:
    """n pairs of alpha 1/2 end at pool / (2 + n) each."""
    config = replace(DYNAMIC, lossless=(0, 1, 3, 5), bytes_total=400_000)
    buffer = SharedBuffer(config)
    pairs = [port * CLASSES + cls for port in range(2) for cls in config.lossless]
    for _ in range(2_000):
        for pair in pairs:
            if not buffer.xoff[pair]:
                buffer.admit(pair, 100)
    for pair in pairs:
        assert buffer.stock[pair] - 2_000 == pytest.approx(config.pool_bytes / (2 + len(pairs)), abs=400)


def test_a_class_that_may_be_dropped_has_a_threshold_and_no_headroom() -> None:
    buffer = SharedBuffer(DYNAMIC)
    told = fill(buffer, LOSSY)
    assert told[-1] == FULL
    assert buffer.stock[LOSSY] - 2_000 == pytest.approx(DYNAMIC.pool_bytes / 3, abs=2_000)
    assert not buffer.xoff[LOSSY]
    assert buffer.drops[FULL][LOSSY] == 1


def test_reserved_bytes_are_there_whatever_others_do() -> None:
    buffer = SharedBuffer(replace(STATIC, xoff_bytes=150_000))
    for pair in set(range(2 * CLASSES)) - {LOSSY, PAIR, CLASSES + PAIR}:
        fill(buffer, pair)
    assert buffer.pool_used <= STATIC.pool_bytes
    assert [buffer.admit(LOSSY, 1_000) for _ in range(3)] == [None, None, FULL]
    assert [buffer.admit(PAIR, 1_000) for _ in range(3)] == [None, None, XOFF], "a used-up pool pauses at once"
    assert [buffer.admit(PAIR, 1_000) for _ in range(11)] == [None] * 10 + [NO_HEADROOM]


@pytest.mark.parametrize(
    "wrong", [{"lossless": (8,)}, {"lossless": (3, 3)}, {"xoff_bytes": 2_000}, {"bytes_total": 64_000}]
)
def test_a_buffer_that_cannot_be_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"^buffer\..*\b{next(iter(wrong))}\b"):
        replace(STATIC, **wrong)


CONFIGS = st.builds(
    BufferConfig,
    bytes_total=st.integers(130_000, 300_000),
    headroom_bytes=st.tuples(st.integers(0, 9_000), st.integers(0, 9_000)),
    lossless=st.sampled_from([(3,), (3, 4), ()]),
    frame_bytes_max=st.just(4_000),
    reserved_bytes=st.sampled_from([0, 100, 4_000]),
    xoff_bytes=st.sampled_from([0, 4_001, 20_000, 250_000]),
    alpha_shift=st.integers(0, 8),
    xon_offset_bytes=st.sampled_from([0, 3_000, 60_000]),
)


@given(CONFIGS, st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_no_sequence_breaks_the_account(config: BufferConfig, seed: int) -> None:
    """Nobody loses what is another's: never more than all, each part within its size, and lossless pairs lose nothing
    while their neighbours keep to their headroom."""
    draw = random.Random(seed)
    buffer = SharedBuffer(config)
    inside: list[tuple[int, int]] = []
    pairs = [port * CLASSES + cls for port in range(2) for cls in (0, 3, 4, 6)]
    greedy = draw.random()
    for _ in range(600):
        if inside and draw.random() > greedy:
            pair, size = inside.pop(draw.randrange(len(inside)))
            was = buffer.xoff[pair]
            assert buffer.release(pair, size) == (was and not buffer.xoff[pair])
        else:
            pair, size = draw.choice(pairs), draw.randint(1, 4_000)
            was, held = buffer.xoff[pair], buffer.headroom[pair]
            told = buffer.admit(pair, size)
            assert (told == XOFF) == (buffer.xoff[pair] and not was)
            if told in (None, XOFF):
                inside.append((pair, size))
            elif pair % CLASSES in config.lossless:
                assert told == NO_HEADROOM
                assert was
                assert held + size > config.headroom_bytes[pair // CLASSES]
        assert buffer.total == sum(size for _, size in inside) <= config.bytes_total
        for each in pairs:
            assert buffer.stock[each] + buffer.headroom[each] == sum(size for pair, size in inside if pair == each)
            assert 0 <= buffer.headroom[each] <= config.headroom_bytes[each // CLASSES]
        shares = sum(max(0, stock - config.reserved_bytes) for stock in buffer.stock)
        assert buffer.pool_used == shares
    for pair, size in inside:
        buffer.release(pair, size)
    assert (buffer.total, buffer.pool_used) == (0, 0)
    assert not any(buffer.xoff), "whoever was asked to pause is let go"


def test_a_smaller_headroom_drops_sooner_and_keeps_what_is_there() -> None:
    buffer = SharedBuffer(BufferConfig(1 << 20, (9_000, 9_000), (3,), 4_000, reserved_bytes=0, xoff_bytes=5_000))
    fill(buffer, 3, most=5_000)
    assert [buffer.admit(3, 1_000) for _ in range(4)] == [None] * 4
    buffer.set_headroom(0, 2_000)
    assert (buffer.headroom_max[3], buffer.headroom_max[11]) == (2_000, 9_000)
    assert buffer.admit(3, 1_000) == "pfc_headroom"
    assert buffer.headroom[3] == 4_000
    for _ in range(3):
        buffer.release(3, 1_000)
    assert buffer.admit(3, 1_000) is None
    assert buffer.admit(3, 1_000) == "pfc_headroom"
    buffer.set_headroom(0, None)
    assert buffer.admit(3, 1_000) is None
    buffer.set_headroom(0, 1 << 30)
    assert buffer.headroom_max[3] == 9_000, "the buffer has no room for more"
