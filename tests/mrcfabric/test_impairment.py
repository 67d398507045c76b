"""Faults of one link direction: settings, and what they do to packets."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import HEALTHY, ImpairedLink, Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng


def carried(impairment: Impairment, count: int) -> tuple[list[Transmit], list[str | None]]:
    link = ImpairedLink(impairment, Rng("test"))
    out: list[Transmit] = []
    reasons = [link.carry(3, index, b"packet", out) for index in range(count)]
    return out, reasons


def test_a_healthy_link_passes_everything_untouched():
    out, reasons = carried(HEALTHY, 5)
    assert out == [Transmit(3, index, b"packet") for index in range(5)]
    assert reasons == [None] * 5


def test_a_link_that_is_down_loses_everything_in_silence():
    assert carried(Impairment(up=False), 3) == ([], ["link_down"] * 3)


def test_certain_loss_loses_everything():
    assert carried(Impairment(loss_ppm=1_000_000), 3) == ([], ["loss"] * 3)


def test_random_loss_is_near_its_rate_and_repeats():
    first = carried(Impairment(loss_ppm=200_000), 2_000)
    assert first == carried(Impairment(loss_ppm=200_000), 2_000)
    assert 320 <= first[1].count("loss") <= 480


def test_settings_round_trip():
    impairment = Impairment(up=False, loss_ppm=7)
    assert Impairment.from_settings(impairment.settings()) == impairment
    assert Impairment.from_settings({}).healthy


@pytest.mark.parametrize(
    "settings",
    [{"loss_ppm": -1}, {"loss_ppm": 1_000_001}, {"loss_ppm": 0.5}, {"loss_ppm": True}, {"up": 1}, {"lag": 3}],
)
def test_a_mistake_is_named(settings):
    with pytest.raises(ConfigError, match=r"^impairment\." + next(iter(settings))):
        Impairment.from_settings(settings)
