"""What a packet that is trimmed, or simply gone, takes off the window of NSCC."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.nicd.core.congestion.test_nscc import MTU, TARGET, late, window


@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize("what", ["on_trim", "on_loss"])
def test_a_lost_packet_takes_its_size_and_leaves_one_packet(what: str) -> None:
    made = window(cwnd=20_000, loss_is_congestion=True)
    tell: Callable[[int, int], None] = getattr(made, what)
    tell(1, 4_000)
    assert made.cwnd_bytes == 16_000
    for _ in range(5):
        tell(1, 4_000)
    assert made.cwnd_bytes == MTU
    cause = what.removeprefix("on_")
    assert made._setup.stats.cwnd_cuts[cause] == 6


@pytest.mark.spec("MRC 1.0", "4")
def test_what_is_gone_without_a_trim_was_on_a_broken_path_where_switches_trim() -> None:
    made = window(cwnd=20_000)
    late(made, 0, TARGET)
    for now in range(5):
        made.on_loss(now, 4_000)
    assert late(made, 21_000, 0, 2_000, marked=True) == 20_000, "no quick adapt either"
    assert not any(made._setup.stats.cwnd_cuts.values())
    assert made.quick_adapts == 0


@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize("knobs", [{"trim_nack": False}, {"leaves": False}])
def test_where_they_do_not_or_no_path_is_left_for_it_the_sender_gives_way(knobs: dict[str, Any]) -> None:
    made = window(cwnd=20_000, **knobs)
    made.on_loss(1, 4_000)
    assert made.cwnd_bytes == 16_000


@pytest.mark.spec("MRC 1.0", "4")
def test_what_was_out_on_a_port_that_went_down_was_its_part_of_the_window() -> None:
    made = window(cwnd=20_000)
    made.on_loss(1, 4_000, gives_way=True)
    assert made.cwnd_bytes == 16_000
    assert made._setup.stats.cwnd_cuts["loss"] == 1
