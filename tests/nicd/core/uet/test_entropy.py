"""The choice of entropies: each policy by hand, and the share of links that so many entropies cover."""

import pytest

from mrcfabric.naming import nic_address
from mrcfabric.rng import Rng
from mrcfabric.wire.uet_templates import UetTemplate
from nicd.core.settings import NicSettings
from nicd.core.uet.entropy import ENTROPY_MIN, Bitmap, Oblivious, Reps, Single, choice_of, draw_entropies
from switchd.core.forwarding.ecmp import EcmpConfig, EcmpForwarding
from tests.support.uet_packets import FIRST

FOUR = [1, 2, 3, 4]


def reps(**knobs: int) -> Reps:
    return Reps(FOUR, Rng("reps"), NicSettings(uet_reps_explore=0, **knobs))


def test_drawn_entropies_differ_and_keep_out_of_service_ports() -> None:
    drawn = draw_entropies(Rng("draw"), 4096)
    assert len(set(drawn)) == 4096
    assert min(drawn) >= ENTROPY_MIN
    assert max(drawn) <= 0xFFFF
    assert len(draw_entropies(Rng("all"), 1 << 17)) == 0x8000


def test_oblivious_takes_all_in_turn_whatever_happens() -> None:
    choice = Oblivious(FOUR, Rng("x"))
    rounds = [[choice.choose(0) for _ in FOUR] for _ in range(20)]
    choice.lost(0, 1)
    choice.trimmed(0, 1)
    choice.acked(0, 1, True)
    rounds.append([choice.choose(0) for _ in FOUR])
    assert all(sorted(one) == FOUR for one in rounds)
    assert len({tuple(one) for one in rounds}) > 5, "in another order each time"


def test_a_retransmission_avoids_the_entropy_that_failed() -> None:
    for choice in (Oblivious(FOUR, Rng("x")), Bitmap(FOUR, Rng("x"), NicSettings()), reps()):
        assert all(choice.choose(0, 3) != 3 for _ in range(30))
    assert Oblivious([5], Rng("x")).choose(0, 5) == 5


def test_single_is_one_for_ever() -> None:
    choice = Single(FOUR, Rng("x"))
    choice.lost(0, 1)
    assert {choice.choose(0, 1) for _ in range(9)} == {1}


@pytest.mark.parametrize(("what", "turns"), [("mark", 1), ("nack", 4), ("timeout", 15)])
def test_bitmap_has_an_entropy_sit_out_turns(what: str, turns: int) -> None:
    choice = Bitmap(FOUR, Rng("x"), NicSettings())
    if what == "mark":
        choice.acked(0, 2, True)
    elif what == "nack":
        choice.trimmed(0, 2)
    else:
        choice.lost(0, 2)
    others = 0
    while choice.choose(0) != 2:
        others += 1
    assert not choice.penalties
    # Three others per round, and up to three more before and after, as the rounds are shuffled.
    assert 3 * turns - 3 <= others <= 3 * turns + 6


def test_bitmap_penalties_add_up_to_a_bound_and_clean_arrivals_add_none() -> None:
    choice = Bitmap(FOUR, Rng("x"), NicSettings(uet_penalty_max=6))
    choice.trimmed(0, 2)
    choice.acked(0, 2, False)
    assert choice.penalties == {2: 4}
    choice.trimmed(0, 2)
    assert choice.penalties == {2: 6}


def test_bitmap_goes_on_when_all_are_punished() -> None:
    choice = Bitmap(FOUR, Rng("x"), NicSettings())
    for entropy in FOUR:
        choice.lost(0, entropy)
    assert choice.choose(0) in FOUR
    assert sorted(choice.penalties.values()) == [14, 14, 14, 14]


def test_reps_uses_the_entropy_of_a_clean_acknowledgement_once_more() -> None:
    choice = Reps(draw_entropies(Rng("many"), 1024), Rng("x"), NicSettings(uet_reps_explore=0))
    choice.acked(0, 7, False)
    choice.acked(0, 8, True)
    choice.acked(0, 9, False)
    assert [choice.choose(0), choice.choose(0)] == [7, 9]
    assert choice.choose(0) not in (7, 8, 9)


def test_reps_keeps_the_latest_eight() -> None:
    choice = reps()
    for entropy in range(10, 30):
        choice.acked(0, entropy, False)
    assert [choice.choose(0) for _ in range(8)] == list(range(22, 30))


def test_reps_explores_first() -> None:
    choice = Reps(FOUR, Rng("x"), NicSettings())
    for entropy in range(10, 18):
        choice.acked(0, entropy, False)
    assert all(choice.choose(0) in FOUR for _ in range(16))
    assert choice.choose(0) == 10


def test_reps_freezes_after_a_silent_loss_and_explores_when_it_thaws() -> None:
    choice = Reps(FOUR, Rng("x"), NicSettings(uet_reps_explore=0, uet_reps_freeze_ns=1_000))
    for entropy in range(10, 18):
        choice.acked(0, entropy, False)
    choice.lost(5, 10)
    choice.lost(6, 11)
    assert choice.freezes == 1
    taken = [choice.choose(7) for _ in range(60)]
    assert set(taken) == set(range(12, 18)), "kept ones again and again, without those that failed"
    assert choice.choose(1_004) in range(12, 18)
    assert choice.choose(1_005) in FOUR
    assert choice.frozen_until_ns == -1


def test_reps_does_not_freeze_while_it_explores() -> None:
    choice = Reps(FOUR, Rng("x"), NicSettings())
    choice.lost(0, 3)
    assert choice.freezes == 0


@pytest.mark.parametrize(("links", "count"), [(4, 4), (8, 16), (16, 8), (32, 64)])
def test_entropies_cover_the_share_of_links_that_chance_gives(links: int, count: int) -> None:
    """U4: a hash puts each of E entropies on one of M links; 1 - (1 - 1/M)^E of the links are used."""
    covered, rounds = 0, 120
    template = UetTemplate(nic_address(0), nic_address(9))
    for seed in range(rounds):
        switch = EcmpForwarding(EcmpConfig(16, 0, (0,), 1, tuple(range(1, links + 1)), seed=Rng("seed", seed).bits64()))
        choice = Oblivious(draw_entropies(Rng("cover", seed), count), Rng("turn", seed))
        used = set()
        for _ in range(count):
            routed = switch.route(0, 0, template.request(choice.choose(0), 2, 0, 0, 1, 2, 3, FIRST, b""))
            assert not isinstance(routed, str)
            used.add(routed[0])
        covered += len(used)
    expected = links * (1 - (1 - 1 / links) ** count)
    assert covered / rounds == pytest.approx(expected, rel=0.03)


def test_the_settings_name_the_policy() -> None:
    for name, kind in (("oblivious", Oblivious), ("bitmap", Bitmap), ("reps", Reps)):
        settings = NicSettings(uet_path=name)
        choice = choice_of(settings, Rng("x"), 4)
        assert type(choice) is kind
        assert len(choice._entropies) == settings.evs_active // 4
    assert type(choice_of(NicSettings(uet_mode="rod"), Rng("x"), 4)) is Single
