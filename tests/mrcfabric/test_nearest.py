"""Hints for names that do not exist."""

import pytest

from mrcfabric.nearest import LISTED_MAX, nearest, nearest_hint
from nicd.programs.catalogue import PROGRAMS
from orchestrator.faults.kinds import KINDS
from orchestrator.measures.measures import MEASURES

SLIPS = [
    ("link_dawn", "link_down"),
    ("linkdown", "link_down"),
    ("LINK-DOWN", "link_down"),
    ("swithc_crash", "switch_crash"),
    ("los", "loss"),
    ("blackhole", "black_hole"),
    ("partition", "host_partition"),
    ("corupt", "corruption"),
]


@pytest.mark.parametrize(("word", "meant"), SLIPS)
def test_a_slip_has_the_word_that_was_meant(word: str, meant: str) -> None:
    assert nearest(word, KINDS) == meant
    assert nearest_hint(word, KINDS) == f"nearest is {meant}"


@pytest.mark.parametrize(("word", "meant"), [("p3p", "p2p"), ("mcr", "mrc"), ("rto", "rto_ns"), ("vm2", "vm1")])
def test_short_words(word: str, meant: str) -> None:
    assert nearest(word, ["ib", meant, "x"]) == meant


@pytest.mark.parametrize("known", [KINDS, MEASURES, PROGRAMS])
@pytest.mark.parametrize(
    "word",
    ["banana", "random", "explode", "meteor", "nothing", "xyz", "zz", "quux", "", ";", "\n", "a" * 10_000],
)
def test_far_from_everything_there_is_no_nearest(word: str, known: dict[str, object]) -> None:
    assert nearest(word, known) is None
    assert nearest_hint(word, known) == "there are " + ", ".join(known)
    assert nearest_hint(word, known, "ask somebody") == "ask somebody"


def test_of_several_the_nearest() -> None:
    assert nearest("switch_crsh", ["switch", "switch_crash", "nic_crash"]) == "switch_crash"


def test_a_long_list_is_cut() -> None:
    known = [f"key_{number}" for number in range(LISTED_MAX + 3)]
    assert nearest_hint("banana", known[:LISTED_MAX]).endswith(known[LISTED_MAX - 1])
    assert nearest_hint("banana", known).endswith(f"{known[LISTED_MAX - 1]} and 3 more")
