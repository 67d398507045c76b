"""Two tables of VLs and weights: turns, shares, the limit of the high one."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.vl_arbitration import NO_LIMIT, VlArbiter, check_table


def turns(arbiter: VlArbiter, count: int, ready: int, size: int | list[int] = 4_096) -> list[int]:
    sizes = [size] * 16 if isinstance(size, int) else size
    return [arbiter.choose(ready, sizes) for _ in range(count)]


def test_a_vl_sends_until_its_weight_is_used_up_and_a_packet_may_take_more() -> None:
    """64 units are one packet of 4,096 bytes; 65 are two, since the second begins with one unit left."""
    assert turns(VlArbiter((), ((0, 64), (1, 64)), 0), 6, 3) == [0, 1, 0, 1, 0, 1]
    assert turns(VlArbiter((), ((0, 65), (1, 64)), 0), 6, 3) == [0, 0, 1, 0, 0, 1]
    assert turns(VlArbiter((), ((0, 1), (1, 2)), 0), 6, 3, 65) == [0, 1, 0, 1, 0, 1], "65 bytes are two units"


def test_a_vl_with_nothing_to_send_loses_its_turn() -> None:
    arbiter = VlArbiter((), ((0, 200), (1, 64)), 0)
    assert turns(arbiter, 1, 3) == [0]
    assert turns(arbiter, 1, 2) == [1]
    assert turns(arbiter, 4, 3) == [0, 0, 0, 0], "its next turn is a whole one"


def test_weight_0_has_no_turn_and_a_vl_may_stand_twice() -> None:
    assert turns(VlArbiter((), ((0, 64), (1, 0), (2, 64), (0, 64)), 0), 6, 7) == [0, 2, 0, 0, 2, 0]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0, [1, 0] * 4), (1, [1, 0] * 4), (2, [1, 1, 0] * 3), (3, [1, 1, 1, 0] * 2), (NO_LIMIT, [1] * 8)],
)
def test_the_high_table_goes_first_up_to_its_limit(limit: int, expected: list[int]) -> None:
    arbiter = VlArbiter(((1, 10),), ((0, 10),), limit)
    assert turns(arbiter, len(expected), 3) == expected
    assert turns(arbiter, 3, 1) == [0, 0, 0], "alone the low one has the wire"


def test_the_limit_counts_only_while_the_low_table_could_send() -> None:
    arbiter = VlArbiter(((1, 10),), ((0, 10),), 2)
    assert turns(arbiter, 50, 2) == [1] * 50
    assert turns(arbiter, 6, 3) == [1, 1, 0, 1, 1, 0]


@given(st.integers(0, 1 << 32))
def test_shares_are_those_of_the_weights(seed: int) -> None:
    """Over many rounds each VL has its weight's part of the bytes, whatever the sizes of its packets."""
    draw = Random(seed)
    weights = [draw.randint(1, 255) for _ in range(draw.randint(2, 5))]
    arbiter = VlArbiter((), tuple(enumerate(weights)), 0)
    sizes = [64 * draw.randint(1, 4) for _ in range(16)]
    sent: Counter[int] = Counter()
    for _ in range(40 * sum(weights)):
        vl = arbiter.choose((1 << len(weights)) - 1, sizes)
        sent[vl] += sizes[vl] // 64
    for vl, weight in enumerate(weights):
        # A turn ends with the packet that uses up the weight.
        turn = -(-weight // (sizes[vl] // 64)) * (sizes[vl] // 64)
        others = [-(-other // (sizes[i] // 64)) * (sizes[i] // 64) for i, other in enumerate(weights)]
        assert sent[vl] / sum(sent.values()) == pytest.approx(turn / sum(others), rel=0.05)


@pytest.mark.parametrize("table", [((2, 1),), ((-1, 1),), ((0, 256),), ((0, -1),), ((0, 1),) * 65])
def test_tables_that_will_not_do(table: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ConfigError, match="egress"):
        check_table("egress.low", table, 2)
    check_table("egress.low", ((0, 255), (1, 0)) * 32, 2)
