"""What the ends of a QP offer, and what two offers agree to."""

import pytest

from mrcfabric.errors import RefusedError
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from nicd.core.mrc.limits import Hints, Offer, agree, hints_of, own_offer, peer_offer, retry_timers
from nicd.core.settings import NicSettings

SETTINGS = NicSettings()
BDP_BYTES = 1_000_000


def offer_of(**asked: object) -> Offer:
    command = CreateQp(0, **asked)  # type: ignore[arg-type]
    return own_offer(SETTINGS, command, hints_of(command), BDP_BYTES)


@pytest.mark.spec("MRC 1.0", "3")
def test_without_a_word_a_qp_offers_what_the_settings_say() -> None:
    assert offer_of() == Offer(32, 128, True, False, SETTINGS.service_time)
    assert offer_of(mpr=8, max_wimm=40, trim_nack=False, dynamic_mpr=True, service_time=False) == Offer(
        8, 40, False, True, False
    )


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"mpr": 0}, "an MPR of 0"),
        ({"mpr": 33}, "an MPR of 33"),
        ({"max_wimm": 0}, "max_wimm of 0"),
        ({"max_wimm": 129}, "max_wimm of 129"),
        ({"incast": -1}, "hint incast of -1"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(asked: dict[str, int], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        offer_of(**asked)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("asked", "why"), [({"peer_mpr": 0}, "MPR of 0"), ({"peer_mpr": 256}, "MPR of 256"),
                                            ({"peer_max_wimm": 0}, "max_wimm of 0")])  # fmt: skip
def test_a_peer_that_grants_nothing_is_refused(asked: dict[str, int], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        peer_offer(offer_of(), ConnectQp(0, 1, 1, 3, 0, 0, **asked))  # type: ignore[arg-type]


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("peer", [False, True])
def test_an_option_is_agreed_when_both_offer_it_and_windows_go_both_ways(own: bool, peer: bool) -> None:
    limits = agree(Offer(8, 40, own, own, own), Offer(16, 50, peer, peer, peer))
    assert limits[:4] == (8, 16, 40, 50)
    assert set(limits[4:]) == {own and peer}


def test_what_the_command_leaves_open_is_as_our_own() -> None:
    own = offer_of(mpr=9, max_wimm=33)
    assert peer_offer(own, ConnectQp(0, 1, 1, 3, 0, 0)) == own


@pytest.mark.parametrize(
    ("hints", "units"),
    [(Hints(), 32), (Hints(incast=1, send_peers=7), 32), (Hints(incast=1000), 8), (Hints(2, 0, 1), 3)],
)
def test_hints_share_the_window_out(hints: Hints, units: int) -> None:
    """Three bandwidth-delay products of 1 MB are 733 packets: 6 units; of two QPs each has 3, and 8 are the least."""
    command = CreateQp(0, **hints._asdict())
    assert own_offer(SETTINGS, command, hints, BDP_BYTES).mpr == max(8, units)
    big = own_offer(SETTINGS, command, hints, 40 * BDP_BYTES).mpr
    assert big == (32 if hints.incast < 1000 else 8)


@pytest.mark.spec("MRC 1.0", "3")
def test_timers_of_a_qp_that_becomes_rts() -> None:
    command = ModifyQp(0, 1, "rts", 8, 3, 25)
    assert retry_timers(SETTINGS, command) == (262_144, 3, 25)
    assert retry_timers(SETTINGS, ModifyQp(0, 1, "rts")) == (SETTINGS.rto_ns, 7, 8)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("timers", "why"), [((25, None, None), "2 to 25"), ((-1, None, None), "2 to -1|not above"),
                                             ((0, None, None), "not above the tail"), ((None, 8, None), "8 linear"),
                                             ((None, None, 26), "26 exponential")])  # fmt: skip
def test_timers_out_of_bounds_are_refused(timers: tuple[int | None, int | None, int | None], why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        retry_timers(SETTINGS, ModifyQp(0, 1, "rts", *timers))
