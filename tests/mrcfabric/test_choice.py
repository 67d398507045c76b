"""Which packets are followed: the same ones at every node, and as many as were asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.choice import Choice, Chooser
from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_address
from mrcfabric.wire.layout import PSN_MASK

A, B, C = nic_address(0), nic_address(1), nic_address(2)
ONE_QP = {"source": 0, "source_qpn": 5, "destination": 1, "destination_qpn": 9}
PSNS = PSN_MASK + 1


def test_the_default_chooses_everything() -> None:
    chooser = Chooser(Choice())
    assert chooser.data(A, B, 7, 0)
    assert chooser.concerns(B, A, 3)


def test_one_qp_in_one_direction() -> None:
    chooser = Chooser(Choice(**ONE_QP, first=10, count=3))
    assert [psn for psn in range(20) if chooser.data(A, B, 9, psn)] == [10, 11, 12]
    assert not chooser.data(B, A, 9, 10)
    assert not chooser.data(A, B, 5, 10)
    assert not chooser.data(C, B, 9, 10)
    assert chooser.concerns(B, A, 5), "its acknowledgements go the other way, to the sender's number"
    assert not chooser.concerns(A, B, 9)


def test_ranges_go_round() -> None:
    chooser = Chooser(Choice(**ONE_QP, first=PSN_MASK, count=2))
    assert [psn for psn in (PSN_MASK - 1, PSN_MASK, 0, 1) if chooser.data(A, B, 9, psn)] == [PSN_MASK, 0]
    assert list(chooser.chosen(A, B, PSN_MASK - 5, 20)) == [PSN_MASK, 0]


@given(st.integers(1, 3000), st.integers(0, PSN_MASK), st.integers(1, 300))
def test_acknowledgements_choose_what_data_chooses(every: int, first: int, count: int) -> None:
    chooser = Chooser(Choice(every=every))
    span = [(first + place) % PSNS for place in range(count)]
    assert list(chooser.chosen(A, B, first, count)) == [psn for psn in span if chooser.data(A, B, 4, psn)]


@pytest.mark.parametrize("every", [2, 10, 1000])
def test_one_of_so_many_in_a_row(every: int) -> None:
    chooser = Chooser(Choice(every=every))
    blocks = [sum(chooser.data(A, B, 4, block * every + place) for place in range(every)) for block in range(20)]
    assert blocks == [1] * 20
    other = Chooser(Choice(every=every))
    assert list(other.chosen(A, C, 0, 20 * every)) != list(chooser.chosen(A, B, 0, 20 * every))


def test_there_and_back_as_data() -> None:
    choice = Choice(**ONE_QP, every=7)
    assert Choice.from_settings(choice.settings()) == choice
    assert Choice.from_settings({}) == Choice()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"every": 0}, r"choice\.every: 0 will not do"),
        ({"count": True}, "True will not do"),
        ({"first": 1 << 24}, "0 to 16777215"),
        ({"colour": 1}, r"choice\.colour: no such field"),
        ([], "no table of fields"),
    ],
)
def test_what_cannot_be_asked(raw: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Choice.from_settings(raw)
