"""Seeds that once failed, each with a word on what was wrong. A new one is added for every failure the swarm finds."""

import pytest

from swarm.batch import cut_otherwise
from swarm.draw import draw
from swarm.run import run

pytestmark = pytest.mark.slow

SEEDS = {
    19: "a packet was sent again on the very EV that had failed, though its plane had another one to forgive",
    45: "the same, on a plane with a single path",
    4010: "QP pairs with fewer retries on one side than the settings have were held to the settings' budget",
    7031: "records of packets sent again piled up behind one that stayed out",
    6018: "a QP with longer timers than the settings have was not waited for until it gave up on its dead peer",
    700147: "a NIC that came back was not told to put its EV profile into use: its QPs could not be made",
    2000943: "a NIC whose only plane the controller had denied for good was to complete its messages",
    2000035: "windows that a knob keeps at one packet per plane were to send as much on each plane",
    5056: "a QP without retries failed the first time it had to wait for a window that others used",
}


DEAR = (4010, 7031, 6018, 5056)
"""These take a second of CPU each, and more."""


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.long if seed in DEAR else ()) for seed in SEEDS])
def test_a_seed_that_failed_holds(seed: int) -> None:
    outcome = run(draw(seed))
    assert not outcome.failed, outcome.reason
    assert outcome.cut or not cut_otherwise(outcome)
