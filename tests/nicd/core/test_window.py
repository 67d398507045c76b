"""The fixed window."""

import pytest

from nicd.core.window import FixedWindow


def test_it_stays_where_it_is() -> None:
    window = FixedWindow(100_000, 4096, trim_response=True)
    window.on_sack(0, 50_000, True, 99_999, 0)
    window.on_loss(0, 4096)
    assert window.cwnd_bytes == 100_000


@pytest.mark.spec("UEC", "CMS")
def test_trims_push_it_down_to_one_packet_and_windows_bring_it_back() -> None:
    window = FixedWindow(100_000, 4096, trim_response=True)
    for _ in range(100):
        window.on_trim(0, 4096)
    assert window.cwnd_bytes == 4096
    window.on_sack(0, 4096, False, None, 0)
    assert window.cwnd_bytes == 8192
    for _ in range(10_000):
        window.on_sack(0, 4096, False, None, 0)
    assert window.cwnd_bytes == 100_000


def test_without_a_response_trims_change_nothing() -> None:
    window = FixedWindow(100_000, 4096, trim_response=False)
    window.on_trim(0, 4096)
    assert window.cwnd_bytes == 100_000


def test_one_packet_always_fits() -> None:
    assert FixedWindow(10, 4096, trim_response=True).cwnd_bytes == 4096
