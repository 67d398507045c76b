"""Random mixtures of broken parts: each seed is one mixture, and little of what is due is missing in any."""

import pytest

from studies.random_mixtures import RATES, drawn, main, ratio


def test_a_seed_is_one_mixture_that_breaks_what_stands() -> None:
    titles = set()
    for seed in range(60):
        fabric, broken, title = drawn(seed)
        assert title == drawn(seed).title
        assert f"{fabric.rate_bps // 10**9} Gb/s" in title
        assert fabric.rate_bps // 10**9 in RATES
        assert 1 <= len(broken) <= min(3, fabric.planes)
        for target in (target for one in broken for target in one.targets):
            assert target in fabric.node_names() or fabric.parse_link(target)
        titles.add(title)
    assert len(titles) == 60
    for what in ("at 1/10", "lose 5 %", "12 us farther", "dead", "4 planes", "8 T1s", "4 NICs"):
        assert any(what in title for title in titles)


def test_no_plane_dies_wholly() -> None:
    """A plane of which every T1 is dead has no share that could be measured against."""
    for seed in range(200):
        fabric, broken, _ = drawn(seed)
        for one in broken:
            assert one.kind != "switch_crash" or len(one.targets) < fabric.t1_per_plane


def test_the_command_lists_what_has_less(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "3", "--seeds", "2", "--rates", "25", "--settle", "20", "--below", "1.1"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert float(first.split()[0]) <= float(second.split()[0])
    assert {first.split(":")[0][-1], second.split(":")[0][-1]} == {"3", "4"}
    assert last.startswith("2 mixtures: ")
    with pytest.raises(SystemExit):
        main(["--seeds", "0"])
    assert "1 or more" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 1_040, 8))
def test_nearly_all_of_what_is_due_arrives(first: int) -> None:
    found = [ratio(seed) for seed in range(first, first + 8)]
    assert min(found) >= 0.8
    assert sum(found) / len(found) >= 0.93
