"""Units of a scenario file."""

import re
from fractions import Fraction

import pytest

from mrcfabric.topology import Topology
from orchestrator.yamlfile.spelling import (
    LENGTH_PATTERN,
    WANTED,
    Scale,
    amount,
    figure_of,
    share,
    spelled,
    told,
)

SCALE = Scale(rtt_ns=9_424, second_ns=100_000)


@pytest.mark.parametrize(
    ("written", "length_ns"),
    [(0, 0), ("20rtt", 188_480), ("0.5rtt", 4_712), ("7ns", 7), ("1.5us", 1_500), ("1s", 100_000), ("200ms", 20_000)],
)
def test_lengths(written: int | str, length_ns: int) -> None:
    assert SCALE.length(written) == length_ns


def test_a_second_of_the_timetable_follows_from_the_dilation() -> None:
    topology = Topology.demo()
    assert Scale.of(topology, 10_000) == Scale(topology.base_rtt_ns(), 100_000)


def test_shares() -> None:
    assert share("1%") == Fraction(1, 100)
    assert share(0.1) == Fraction(1, 10)
    assert share("0.1%") == Fraction(1, 1000)


@pytest.mark.parametrize(
    ("figure", "key"),
    [("share_ppm", "toxicity"), ("delay_ns", "delay"), ("rate_bps", "rate"), ("min_bytes", "min_bytes"), ("ev", "ev")],
)
def test_keys(figure: str, key: str) -> None:
    assert spelled(figure) == key


@pytest.mark.parametrize(
    ("figure", "written", "value"),
    [
        ("share_ppm", "1%", 10_000),
        ("share_ppm", 0.5, 500_000),
        ("delay_ns", "2us", 2_000),
        ("rate_bps", "25G", 25_000_000_000),
        ("rate_bps", 25, 25),
        ("min_bytes", "1.5KiB", 1_536),
        ("min_bytes", "1.3B", 1),
        ("burst_packets", 4, 4),
        ("off", True, True),
    ],
)
def test_figures(figure: str, written: object, value: object) -> None:
    assert figure_of(figure, written, SCALE) == value


def test_a_text_names_figures_as_they_are_written() -> None:
    assert told("as long as `for_ns` says, or `share_ppm`") == "as long as `for` says, or `toxicity`"


def test_an_amount_is_a_whole_number() -> None:
    assert amount("bytes", "0.3KiB") == 307


def test_patterns_end_where_the_text_ends() -> None:
    assert re.search(LENGTH_PATTERN, "20rtt")
    for wrong in ("20rtt\n", "20", "rtt", "-1us", "1 h", "\u0661rtt"):
        assert not re.search(LENGTH_PATTERN, wrong)
    assert all(re.compile(pattern) for pattern in WANTED)
