"""Which changes of the cores from outside are refused to a test."""

from collections.abc import Iterator

import pytest

from mrcfabric.clock import ClockPage
from mrcfabric.units import NEVER
from nicd.core import scheduler
from orchestrator.hosts.clock.timekeeper import Timekeeper
from tests.support.changed_cores import changes_a_core


@pytest.fixture
def page() -> Iterator[ClockPage]:
    one = ClockPage.create([[(1, 0)], [(0, 0)]], 0.0)
    yield one
    one.close()


def test_methods_of_cores_are_not_set(page: ClockPage) -> None:
    assert changes_a_core(page, "fabric_front")
    assert changes_a_core(ClockPage, "fabric_front")


def test_what_each_object_has_and_what_is_no_core_may_be_set(page: ClockPage) -> None:
    assert not changes_a_core(page, "words")
    assert not changes_a_core(scheduler, "NEVER")
    assert not changes_a_core(Timekeeper, "soon_ns")
    assert not changes_a_core("mrcfabric.clock.NEVER", NEVER)


def test_a_test_that_does_it_fails_whatever_runs(page: ClockPage, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((AssertionError, AttributeError)):
        monkeypatch.setattr(page, "fabric_front", lambda: 100)
