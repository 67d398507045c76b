"""When a receiver says ALWAYS_SKIP."""

import pytest

from mrcfabric.wire.layout import M_ALWAYS_SKIP, M_SKIP_ONCE
from nicd.core.mrc.mark_runs import MarkRuns


def test_never_by_default() -> None:
    marks = MarkRuns(0, 4)
    assert {marks.marked(1) for _ in range(100)} == {M_SKIP_ONCE}
    assert marks.runs == {}


@pytest.mark.spec("MRC 1.0", "11.2")
def test_after_so_many_in_a_row_on_one_ev() -> None:
    marks = MarkRuns(3, 4)
    assert [marks.marked(1) for _ in range(4)] == [M_SKIP_ONCE, M_SKIP_ONCE, M_ALWAYS_SKIP, M_SKIP_ONCE]
    assert [marks.marked(2) for _ in range(2)] == [M_SKIP_ONCE, M_SKIP_ONCE]
    marks.runs.pop(2)
    assert marks.marked(2) == M_SKIP_ONCE


def test_the_memory_is_bounded() -> None:
    marks = MarkRuns(3, 4)
    for ev in range(100):
        marks.marked(ev)
        assert len(marks.runs) <= 4
