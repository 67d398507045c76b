"""Links that flap: an EV leaves such a link once, and stays away until it has answered as often as its failures ask."""

import pytest

from studies.flapping_links import CASES, T1S, fabric_of, main, measure, targets

FLAPS = [case for case in CASES if "flap" in case]


@pytest.mark.parametrize("planes", [2, 4, 8])
@pytest.mark.parametrize("case", CASES)
def test_a_case_breaks_what_stands(case: str, planes: int) -> None:
    fabric = fabric_of(25, 0, planes, {})
    failing = targets(case, planes)
    assert len(set(failing)) == len(failing) == (2 if case in FLAPS else min(planes, 4))
    for target in failing:
        assert target in fabric.node_names() or fabric.parse_link(target)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "returns"), list(zip(FLAPS, (1, 2), strict=True)))
@pytest.mark.parametrize(("rate", "seed"), [(25, 0), pytest.param(100, 1, marks=pytest.mark.long)])
def test_an_ev_leaves_a_link_that_flaps_once(case: str, returns: int, rate: int, seed: int) -> None:
    planes = 4
    fabric = fabric_of(rate, seed, planes, {})
    row = measure((case, rate, seed), planes, {})
    # Each of the two links lies on one path of every QP. Two answers take longer than a link lives that comes back for
    # five round trips; where it lives for nine they do not, and from then on its EVs need four.
    # One path of one QP more is left with some seeds; without these rules it was three times as many.
    per_path = fabric.evs_per_qp // planes // T1S
    assert 0 < row.retired <= returns * 2 * fabric.nics * per_path + per_path, row
    # A quarter of two planes is out of use.
    assert row.goodput >= 0.95 * (1 - 2 / planes / T1S), row


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--case", "T1s gone for 25 RTTs", "--rates", "25", "--seeds", "1", "--planes", "2"]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head == "| Failing | Gb/s | goodput | packets lost | EVs retired | probes |"
    goodput, lost, retired, probes = (float(cell) for cell in row.strip("| ").split(" | ")[2:])
    # Two of eight T1s are gone, and their EVs are back some fifteen round trips after them.
    assert 0.7 <= goodput < 0.9
    assert 0 < retired < probes
    assert lost > 0


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--case", "everything"])
    assert ended.value.code == 2
    assert "invalid choice: 'everything'" in capsys.readouterr().err
