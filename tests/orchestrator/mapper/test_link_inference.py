"""Lossy links told from the healthy ones their probes cross too."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.rng import PPM, Rng
from orchestrator.mapper.link_inference import Findings, explain
from orchestrator.mapper.link_likelihood import Trial

NICS = ("n0", "n1", "n2", "n3")
T1S = ("t0", "t1", "t2", "t3")


def below_a_t0(losses: dict[str, float], probes: int, seed: object, nics: tuple[str, ...] = NICS) -> list[Trial[str]]:
    """What the NICs below one T0 see when these links lose these shares of the round trips."""
    rng = Rng("below", str(seed))
    found = []
    for nic in nics:
        for t1 in (None, *T1S):
            links = (nic,) if t1 is None else (nic, t1)
            home = math.prod(1 - losses.get(link, 0.0) for link in links)
            number = probes if t1 is None else probes // 2
            lost = sum(rng.chance(int((1 - home) * PPM)) for _ in range(number))
            found.append(Trial(links, number, lost))
    return found


def test_nothing_lost_nobody_blamed() -> None:
    assert explain(below_a_t0({}, 1000, 0)) == Findings({}, {})


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("link", ["n2", "t1"])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.6])
def test_one_lossy_link_is_named_and_no_other(link: str, share: float, seed: int) -> None:
    found = explain(below_a_t0({link: share}, 1000, seed))
    assert list(found.lossy) == [link]
    assert found.lossy[link] == pytest.approx(share, rel=0.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("pair", [("n0", "n3"), ("n1", "t1"), ("t0", "t3")])
def test_two_lossy_links_are_named_even_when_probes_cross_both(pair: tuple[str, str], seed: int) -> None:
    found = explain(below_a_t0(dict.fromkeys(pair, 0.1), 1500, seed))
    assert sorted(found.lossy) == sorted(pair)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 300), st.sampled_from([*NICS, *T1S]), st.floats(0.01, 0.9))
def test_whoever_is_named_is_guilty(seed: int, probes: int, link: str, share: float) -> None:
    found = explain(below_a_t0({link: share}, probes, seed))
    assert set(found.lossy) <= {link}


def test_what_two_links_explain_alike_is_left_open() -> None:
    trials = [Trial(("n0", "t0"), 200, 30), Trial(("n1",), 200, 0)]
    found = explain(trials)
    assert not found.lossy
    assert set(found.suspects) == {"n0", "t0"}


def test_one_more_way_decides() -> None:
    trials = [Trial(("n0", "t0"), 200, 30), Trial(("n0",), 200, 0)]
    assert list(explain(trials).lossy) == ["t0"]


def test_little_evidence_makes_a_suspect_only() -> None:
    found = explain([Trial(("n0",), 100, 2), Trial(("n0", "t0"), 100, 0)])
    assert not found.lossy
    assert list(found.suspects) == ["n0"]


def test_a_known_link_takes_the_blame_for_its_probes() -> None:
    trials = [Trial(("n0",), 20, 1), Trial(("n0", "t0"), 20, 1), Trial(("n1", "t0"), 20, 0)]
    assert not explain(trials).lossy
    found = explain(trials, known=["n0"])
    assert found.lossy == {"n0": pytest.approx(0.05, rel=0.01)}
    assert not found.suspects


def test_a_known_link_that_nobody_tried_is_left_out() -> None:
    assert explain([Trial(("n0",), 20, 0)], known=["n9"]).lossy == {}


def test_a_mistake_is_taken_back_when_the_truth_explains_more() -> None:
    """Two up-links of one NIC went bad at once: at first its own link looked guilty."""
    lost = {None: 0, "t0": 30, "t1": 60, "t2": 0}
    trials = [Trial(("n0",) if t1 is None else ("n0", t1), 200, number) for t1, number in lost.items()]
    found = explain(trials, known=["n0", "t1"])
    assert sorted(found.lossy) == ["t0", "t1"]
    assert found.retracted == ("n0",)


def test_a_link_whose_losses_others_explain_is_let_go() -> None:
    trials = [Trial((nic, "t0"), 200, lost) for nic, lost in (("n0", 20), ("n1", 0), ("n2", 25))]
    trials += [Trial((nic,), 200, lost) for nic, lost in (("n0", 19), ("n1", 0), ("n2", 22))]
    found = explain(trials, known=["t0"])
    assert sorted(found.lossy) == ["n0", "n2"]
    assert found.retracted == ("t0",)


def test_a_known_link_without_losses_of_late_is_kept_for_its_own_healing() -> None:
    found = explain([Trial(("n0",), 200, 0), Trial(("n0", "t0"), 200, 0)], known=["t0"])
    assert found.retracted == ()
    assert "t0" in found.lossy


def test_tolerated_losses_accuse_nobody() -> None:
    assert not explain([Trial(("n0",), 1_000_000, 12)]).lossy


def test_a_single_nic_tells_its_own_link_from_those_of_the_t0() -> None:
    found = explain(below_a_t0({"n0": 0.1}, 2000, 1, ("n0",)))
    assert list(found.lossy) == ["n0"]
    found = explain(below_a_t0({"t2": 0.1}, 2000, 1, ("n0",)))
    assert list(found.lossy) == ["t2"]


GROUPS = NICS, T1S


def in_groups(trials: list[Trial[str]], known: tuple[str, ...] = ()) -> Findings[str]:
    return explain(trials, known, groups=GROUPS)


@pytest.mark.parametrize("seed", [15, 21, 22, 23, 67])
def test_what_all_nics_links_explain_is_blamed_on_no_link_of_a_t1(seed: int) -> None:
    """Few NICs have lost enough to be accused, and through some T1 more was lost than other single links explain."""
    many = tuple(f"n{number}" for number in range(8))
    trials = below_a_t0(dict.fromkeys(many, 0.02), 30, seed, many)
    wrong = set(explain(trials).lossy) - set(many)
    assert wrong, "without groups"
    found = explain(trials, groups=(many, T1S))
    assert set(found.lossy) <= set(many)
    assert wrong & set(found.suspects)


def test_a_link_of_a_t1_that_alone_loses_is_found_as_soon_as_without_groups() -> None:
    trials = [Trial((nic,), 40, 0) for nic in NICS]
    trials += [Trial((nic, t1), 10, int(t1 == "t0" and nic != "n3")) for nic in NICS for t1 in T1S]
    assert list(explain(trials).lossy) == ["t0"]
    assert list(in_groups(trials).lossy) == ["t0"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("probes", [60, 120, 400])
def test_while_all_links_of_nics_lose_no_link_of_a_t1_is_accused(probes: int, seed: int) -> None:
    found = in_groups(below_a_t0(dict.fromkeys(NICS, 0.02), probes, seed))
    assert set(found.lossy) <= set(NICS)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("probes", [60, 120, 400])
def test_while_all_links_of_t1s_lose_no_link_of_a_nic_is_accused(probes: int, seed: int) -> None:
    found = in_groups(below_a_t0(dict.fromkeys(T1S, 0.02), probes, seed))
    assert set(found.lossy) <= set(T1S)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("guilty", [NICS, T1S, ("t0", "t1", "t2"), ("n1", "t1"), ("n0", "n1")])
def test_links_of_a_group_are_accused_one_by_one_when_each_has_lost_enough(guilty: tuple[str, ...], seed: int) -> None:
    found = in_groups(below_a_t0(dict.fromkeys(guilty, 0.02), 1500, seed))
    assert sorted(found.lossy) == sorted(guilty)


def test_an_accusation_that_adds_next_to_nothing_to_others_is_taken_back() -> None:
    """Between no loss and losses that need it: through t0 a few more were lost than the NICs lose anyway."""
    trials = [Trial((nic,), 1000, 20) for nic in NICS]
    trials += [Trial((nic, t1), 250, 5 + (t1 == "t0" and nic == "n0")) for nic in NICS for t1 in T1S]
    found = in_groups(trials, known=("t0", *NICS))
    assert sorted(found.lossy) == sorted(NICS)
    assert found.retracted == ("t0",)
