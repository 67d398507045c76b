"""Entries of the deny list, and what they cover."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import RefusedError
from nicd.core.mrc.deny_list import DenyList, Entry

ENTRIES = st.tuples(st.integers(0, 2), st.none() | st.integers(0, 2), st.none() | st.integers(0, 2))


def test_an_entry_covers_what_it_names() -> None:
    denied = DenyList(10)
    denied.deny((1, 2, None))
    assert denied.covers(1, 2, 7, True)
    assert not denied.covers(1, 2, 7, False), "below one T0 no T1 is passed"
    assert not denied.covers(0, 2, 7, True)
    denied.deny((1, 0, 5))
    assert denied.covers(1, 0, 5, False)
    assert not denied.covers(1, 0, 6, True)


def test_a_wider_entry_takes_narrower_ones_away() -> None:
    denied = DenyList(10)
    for entry in ((1, 2, None), (1, 2, 5), (1, None, 5), (0, 2, 5)):
        denied.deny(entry)
    assert denied.allow((1, 2, 5)) == 1
    assert denied.allow((1, None, None)) == 2
    assert denied.allow((1, None, None)) == 0
    assert list(denied) == [(0, 2, 5)]


def test_the_list_is_bounded() -> None:
    denied = DenyList(1)
    denied.deny((0, 0, None))
    denied.deny((0, 0, None))
    with pytest.raises(RefusedError, match="full"):
        denied.deny((0, 1, None))


@given(st.lists(ENTRIES, max_size=8), ENTRIES)
def test_what_was_allowed_is_covered_by_wider_entries_only(entries: list[Entry], lifted: Entry) -> None:
    denied = DenyList(10)
    for entry in entries:
        denied.deny(entry)
    denied.allow(lifted)
    for plane in range(3):
        for path in range(3):
            for peer in range(3):
                covering = [
                    entry
                    for entry in denied
                    if entry[0] == plane and entry[1] in (None, path) and entry[2] in (None, peer)
                ]
                assert denied.covers(plane, path, peer, True) == bool(covering)
