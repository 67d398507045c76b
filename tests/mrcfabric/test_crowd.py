"""When daemons are a crowd, and that they stand back."""

import os

import pytest

from mrcfabric import crowd


@pytest.mark.parametrize("cores", [1, 2, 64])
def test_a_crowd_is_more_than_so_many_for_each_core(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
    most, asked = crowd.CROWD_PER_CORE * cores, list[int]()
    monkeypatch.setattr(os, "nice", asked.append)
    for processes in (0, 1, most, most + 1):
        crowd.stand_back(processes)
    assert asked == [crowd.NICE]
    assert [crowd.is_crowd(processes) for processes in (most, most + 1)] == [False, True]


def test_where_priorities_are_forbidden_daemons_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_by: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "nice", forbidden)
    crowd.stand_back(1 << 20)


def test_the_demonstration_is_none_on_two_cores() -> None:
    assert crowd.CROWD_PER_CORE * 2 >= 56 + 8


@pytest.mark.parametrize(("processes", "free"), [(0, False), (1, True), (3, True), (4, False)])
def test_each_process_has_a_core_while_there_are_no_more_of_them(
    processes: int, free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 5})
    assert crowd.has_cores(processes) == free
