"""Commands about self probes that make no sense are refused, and nothing begins."""

from typing import Any

import pytest

from mrcfabric.node import Input, Rank
from nicd.compose import nic_config
from nicd.core.commands import ProbeLinks, ProbeLoop
from nicd.core.nic import Nic
from tests.nicd.core.bench import topology


def refused(command: Any) -> str | None:
    nic = Nic(nic_config(topology(), "h000"))
    nic.advance([Input(10, Rank.COMMAND, 0, 1, command)], 20)
    (done,) = nic.drain_events()
    assert nic.next_timeout() is None or done.error is None
    error: str | None = done.error
    return error


@pytest.mark.parametrize(("period_ns", "rounds"), [(999, None), (20_000, 0)])
def test_a_schedule_that_makes_no_sense(period_ns: int, rounds: int | None) -> None:
    assert refused(ProbeLinks(0, period_ns, rounds)) is not None


@pytest.mark.parametrize("bad", [(2, 0, 0, 0, 5, 5), (0, 9, 0, 0, 5, 5), (0, 0, 2, 0, 5, 5), (0, 0, 0, 0, 0, 5),
                                 (0, 0, 0, 0, 5, 0)])  # fmt: skip
def test_a_loop_that_makes_no_sense(bad: tuple[int, ...]) -> None:
    assert refused(ProbeLoop(0, *bad)) is not None


def test_what_makes_sense_begins() -> None:
    assert refused(ProbeLinks(0, 20_000, 1)) is None
    assert refused(ProbeLoop(0, 0, 0, 0, 1, 5, 5)) is None
