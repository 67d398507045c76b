"""Blocks sent, received, held and granted, modulo 4096, and how both ends begin."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.link_credits import LinkCredits, check_blocks
from mrcfabric.wire.flow_control import INIT, NORMAL, FlowControl, parse


def pair(blocks: int = 10) -> tuple[LinkCredits, LinkCredits]:
    """Two ends that have begun."""
    ends = LinkCredits((blocks,)), LinkCredits((blocks,))
    for end, frame in enumerate([one.packet(0) for one in ends]):
        said = parse(frame)
        assert said is not None
        ends[1 - end].heard(said, True)
    return ends


def hear(near: LinkCredits, far: LinkCredits, answered: bool = True) -> FlowControl:
    said = parse(far.packet(0))
    assert said is not None
    near.heard(said, answered)
    return said


def test_both_begin_with_init_and_then_say_normal() -> None:
    near, far = LinkCredits((10,)), LinkCredits((20,))
    assert not near.may_start(0, 1)
    assert hear(near, far) == FlowControl(INIT, 0, 0, 20)
    assert near.credit(0) == 20
    assert hear(far, near).operand == NORMAL
    assert far.credit(0) == 0, "it has not heard INIT yet"


def test_who_hears_init_late_answers_with_init() -> None:
    near, far = LinkCredits((10,)), LinkCredits((20,))
    hear(near, far, answered=False)
    assert near.answer == [True]
    assert hear(far, near).operand == INIT
    assert not far.answer[0]
    assert far.credit(0) == 10


def test_a_neighbour_that_begins_anew_counts_from_zero() -> None:
    near, far = pair()
    near.spend(0, 7)
    far.take(0, 7)
    far.free(0, 7)
    hear(near, far)
    again = LinkCredits((10,))
    hear(near, again)
    assert (near.sent, near.limit, near.received, near.answer) == ([0], [10], [0], [True])
    assert hear(again, near).operand == INIT
    assert again.credit(0) == near.credit(0) == 10


def test_credit_is_spent_held_and_granted_anew_for_ever() -> None:
    near, far = pair(3)
    for _ in range(3 * 4_096):
        assert near.may_start(0, 3)
        assert not near.may_start(0, 4)
        near.spend(0, 3)
        assert not near.may_start(0, 1)
        assert far.take(0, 3)
        assert far.untold(0) == 0
        far.free(0, 3)
        assert far.untold(0) == 3
        assert far.stale(0)
        hear(near, far)
        assert not far.stale(0)


def test_what_finds_no_room_is_counted_and_granted_again() -> None:
    near, far = pair(3)
    assert far.take(0, 2)
    assert not far.take(0, 2)
    assert (far.held, far.received, far.untold(0)) == ([2], [4], 2)
    hear(near, far)
    assert near.limit == [5]


def test_blocks_that_got_lost_are_counted_when_the_sender_says_so() -> None:
    near, far = pair(5)
    near.spend(0, 4)
    assert near.credit(0) == 1
    hear(far, near)
    assert far.untold(0) == 4
    hear(near, far)
    assert near.credit(0) == 5


def test_what_was_lost_is_said_again() -> None:
    near, _ = pair()
    near.packet(0)
    assert not near.stale(0)
    near.forget(0)
    assert near.stale(0)


@pytest.mark.parametrize("blocks", [(64,), (2_049,), (65, 0)])
def test_buffers_that_will_not_do(blocks: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="blocks for VL"):
        check_blocks("egress.blocks", blocks, 65)
    check_blocks("egress.blocks", (65, 2_048), 65)
