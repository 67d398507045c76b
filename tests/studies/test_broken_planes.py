"""The table of broken planes: every case names what it breaks, cells have mean and range, wrong words are refused."""

import pytest

from studies.broken_planes import ALIKE, CASES, FARTHER, MIXED, cell, fabric_of, main, ratio


@pytest.mark.parametrize("planes", [2, 4])
@pytest.mark.parametrize("case", CASES)
def test_a_case_breaks_what_stands(case: str, planes: int) -> None:
    fabric = fabric_of(25, 0, planes, {})
    targets = [target for one in CASES[case](fabric) for target in one.targets]
    for target in targets:
        assert target in fabric.node_names() or fabric.parse_link(target)
    assert bool(targets) == (case != "nothing")


def test_a_cell_has_mean_least_and_most() -> None:
    assert cell([0.951, 0.949, 0.95]) == "0.95"
    assert cell([0.9, 0.97, 0.98]) == "0.95 (0.90 to 0.98)"


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--case", "nothing", "--case", "links lose 5 %", "--rates", "100", "--seeds", "1"]
    assert main(words) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| Broken | 100 Gb/s |"
    assert [row.split(" | ")[0] for row in rows] == ["| nothing", "| links lose 5 %"]
    # NICs that leave lossy paths for good, or that cut their windows for each loss, stay below this.
    assert all(float(row.split(" | ")[1].split()[0]) >= 0.95 for row in rows)


def test_the_table_of_lengths(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--farther", "--rates", "2", "--seeds", "1"]) == 0
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| T1s that are farther | 2 Gb/s |"
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(FARTHER)


def test_the_table_of_planes_that_are_longer_alike(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--alike", "--planes", "1", "--rates", "100", "--seeds", "1", "--settle", "80"]) == 0
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(ALIKE)
    # Where round trips are compared only with those of other planes, 3 us have 0.03.
    assert all(float(row.split(" | ")[1].split()[0]) >= 0.95 for row in rows[:-1])
    for case, broken in ALIKE.items():
        fabric = fabric_of(25, 0, 2, {})
        assert {target[:2] for one in broken(fabric) for target in one.targets} == {"p0", "p1"}, case


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_what_is_due_arrives_at_100_gbps(case: str) -> None:
    # In this mixture no flow has a link to itself, and windows are not equal within 40 round trips: 0.945 to 0.951 on
    # average over these seeds, whether planes are probed or not, from the 40th or from the 80th base RTT on.
    mixed = case.startswith("one T1 dead")
    ratios = [ratio((case, 100, seed), 2, {}) for seed in range(8 if mixed else 2)]
    assert sum(ratios) / len(ratios) >= (0.94 if mixed else 0.95)
    assert min(ratios) >= (0.93 if mixed else 0.95)


@pytest.mark.long
@pytest.mark.parametrize("case", list(CASES)[-3:])
def test_on_eight_planes_nearly_all_of_it_does(case: str) -> None:
    assert ratio((case, 100, 0), 8, {}) >= 0.98


def test_a_rack_with_twice_what_its_up_links_carry(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--case", "nothing", "--case", "half of the T1s dead", "--t1s", "2", "--rates", "100", "--seeds", "2"]
    assert main([*words, "--settle", "60"]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    # Nearly every packet is marked and has a SACK of its own; these take three hundredths of the links. Oblivious
    # spraying has 0.68 in the second row.
    assert all(0.87 <= float(row.split(" | ")[1].split()[0]) <= 0.98 for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--case", "everything"], "invalid choice: 'everything'"),
        (["--t1s", "1"], "--t1s is at least 2"),
        (["--settle", "0"], "1 or more"),
        (["--farther", "--t1s", "2"], "goes without --t1s"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("planes", [2, 4])
@pytest.mark.parametrize("case", MIXED)
def test_a_mixture_breaks_what_stands(case: str, planes: int) -> None:
    fabric = fabric_of(25, 0, planes, {})
    targets = [target for one in MIXED[case](fabric) for target in one.targets]
    assert targets
    assert all(fabric.parse_link(target) for target in targets)


def test_the_table_of_mixtures(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--mixed", "--case", "links lose 5 %", "--rates", "25", "--seeds", "1"]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[2].startswith("| links lose 5 % |")
    with pytest.raises(SystemExit):
        main(["--mixed", "--farther"])
    assert "not allowed with argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "rate", "t1s", "least"),
    [
        ("all T1s but one at a tenth", 100, 8, 0.95),
        ("the same, a quarter of the rate in the other", 25, 4, 0.9),
        ("the same, a tenth in the other", 25, 4, 0.8),
    ],
)
def test_what_slow_paths_or_a_far_plane_hold_is_not_missing_elsewhere(
    case: str, rate: int, t1s: int, least: float
) -> None:
    """Slow paths held two thirds of a window, and the queue of a weak plane hid a far one: 0.81, 0.70 and 0.39."""
    ratios = [ratio((case, rate, seed), 2, {}, t1s=t1s, nics=4) for seed in range(2)]
    assert sum(ratios) / len(ratios) >= least


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "rate", "t1s", "nics", "least"),
    [
        ("all T1s but one at a tenth", 100, 8, 2, 0.9),
        pytest.param("12 us more per link", 400, 2, 4, 0.93, marks=pytest.mark.long),
        pytest.param("the same, a quarter of the rate in the other", 400, 2, 4, 0.9, marks=pytest.mark.long),
    ],
)
def test_queues_that_nothing_marks_are_no_lengths_and_queues_of_a_full_rack_do_not_swing(
    case: str, rate: int, t1s: int, nics: int, least: float
) -> None:
    """0.75 where data alone told how long paths are, 0.88 and 0.83 where each mark took a whole turn."""
    ratios = [ratio((case, rate, seed), 2, {}, t1s=t1s, nics=nics, settle_rtts=100) for seed in range(2)]
    assert sum(ratios) / len(ratios) >= least
