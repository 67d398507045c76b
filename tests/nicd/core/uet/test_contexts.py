"""Numbers of contexts: all differ, none is zero, none comes back before the others were used."""

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng
from nicd.core.uet.contexts import PDCID_MAX, Contexts


class End:
    pdcid = 0
    initiates = True


def test_numbers_come_in_turn_and_wrap_past_zero() -> None:
    contexts = Contexts(Rng("x"))
    first = contexts.enter(End())
    contexts.leave(first)
    seen = [contexts.enter(End()) for _ in range(PDCID_MAX)]
    assert sorted(seen) == list(range(1, PDCID_MAX + 1))
    assert seen[-1] == first
    with pytest.raises(RefusedError, match="65535 contexts"):
        contexts.enter(End())
    assert len(contexts) == PDCID_MAX


def test_an_end_is_found_replaced_and_forgotten() -> None:
    contexts = Contexts(Rng("x"))
    one, other = End(), End()
    number = contexts.enter(one)
    assert one.pdcid == number
    assert contexts.find(number) is one
    contexts.replace(number, other)
    assert (contexts.find(number), other.pdcid) == (other, number)
    assert list(contexts) == [other]
    contexts.leave(number)
    contexts.leave(number)
    assert contexts.find(number) is None
