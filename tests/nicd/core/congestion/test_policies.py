"""Congestion policies by name."""

import pytest

from nicd.core.congestion.nscc import Nscc
from nicd.core.congestion.policies import POLICIES, register, window_towards
from nicd.core.congestion.window import FixedWindow, WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from tests.nicd.core.bench import PLANES, Bench


def setup(policy: str) -> WindowSetup:
    return WindowSetup(NicSettings(congestion=policy), 800_000_000_000, NicStats())


@pytest.mark.spec("MRC 1.0", "4")
def test_nscc_is_the_default_and_the_window_fixed_one_of_the_others() -> None:
    assert NicSettings().congestion == "nscc"
    assert isinstance(window_towards(setup("nscc")), Nscc)
    fixed = window_towards(setup("fixed"))
    assert isinstance(fixed, FixedWindow)
    # 1.5 x 800 Gb/s x 10 us
    assert fixed.cwnd_bytes == 1_500_000


@pytest.mark.spec("MRC 1.0", "4")
def test_another_one_can_be_plugged_in() -> None:
    class Tiny(FixedWindow):
        """One packet, for ever."""

    register("tiny", lambda asked: Tiny(0, asked.settings.mtu_bytes, False))
    try:
        for scope, packets in (("destination", 1), ("plane", PLANES)):
            bench = Bench(congestion="tiny", congestion_scope=scope)
            bench.post(0, 10 * 4096)
            assert len(bench.pump(0)) == packets
            assert all(isinstance(context, Tiny) for context in bench.link.windows.contexts)
    finally:
        del POLICIES["tiny"]


def test_a_name_is_taken_once() -> None:
    with pytest.raises(AssertionError, match="nscc"):
        register("nscc", Nscc)
