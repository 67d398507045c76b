"""A window that never binds, whatever happens, and still counts what is in flight."""

from nicd.core.congestion.open_window import OpenWindow
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats


def test_nothing_closes_a_plane() -> None:
    windows = PlaneWindows(NicSettings(), (1_000_000_000, 1_000_000_000), NicStats(), policy=OpenWindow)
    for now in range(2_000):
        windows.left(now, now % 2, 4_096)
    assert windows.open == 3
    assert windows.inflight_bytes == 2_000 * 4_096
    windows.on_trim(5_000, 0, 4_096, True)
    windows.on_loss(5_000, 1, 4_096)
    windows.acked(0, 4_096)
    windows.on_sack(5_001, 0, True, 9_000, 0)
    assert windows.open == 3
    assert windows.inflight_bytes == 1_999 * 4_096
    assert windows.is_crowded(0, 4_000, False)
    assert not windows.is_crowded(1, 4_000, False)
    # There is no window to be told: its bound is no number of bytes.
    assert windows.record() == {"inflight_bytes": 1_999 * 4_096}
    assert not any(window.binds for window in windows.contexts)
