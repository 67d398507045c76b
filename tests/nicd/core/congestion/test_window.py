"""The fixed window, and what the largest one follows from."""

import pytest

from nicd.core.congestion.window import FixedWindow, WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats

MTU = 4096
GIGA = 10**9


@pytest.mark.spec("MRC 1.0", "4")
@pytest.mark.parametrize(
    ("rate", "base_ns", "published", "most"),
    [
        # A SACK is due after four packets, or after half a base RTT: at 10 Gb/s 13,750 bytes, and one packet begun.
        (10, 22_000, 41_250, 27_500 + 4 * MTU + 4 * MTU),
        (10, 10_000, 18_750, 12_500 + 6_250 + MTU + 4 * MTU),
        (25, 14_000, 65_625, 43_750 + 4 * MTU + 4 * MTU),
        # From here on half a product is more.
        (100, 9_500, 178_125, 178_125),
        (400, 8_400, 630_000, 630_000),
    ],
)
def test_the_largest_window_has_room_for_what_waits_besides(rate: int, base_ns: int, published: int, most: int) -> None:
    setup = WindowSetup(NicSettings(base_rtt_ns=base_ns), rate * GIGA, NicStats())
    assert (setup.published_bytes(base_ns), setup.most_bytes(base_ns)) == (published, most)
    plain = WindowSetup(NicSettings(base_rtt_ns=base_ns, cwnd_spare_packets=0), rate * GIGA, NicStats())
    assert plain.most_bytes(base_ns) == published


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
