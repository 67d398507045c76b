"""All links are broken alike: what is late on every plane is no queue, and windows stay open."""

import pytest

from studies.links_alike import CASES, cables, main, shares
from studies.systems.bench_fabric import fabric


def test_the_links_of_each_tier_have_names() -> None:
    small = fabric("x", 1, 2, planes=2)
    assert set(cables(small, "nic")) == {f"h00{nic}~p{plane}-t0-{nic}" for plane in (0, 1) for nic in (0, 1)}
    assert len(list(cables(small, "fabric"))) == 2 * 2 * 2
    assert set(cables(small, "all")) == {*cables(small, "nic"), *cables(small, "fabric")}


LESS = {"up to 10 us of jitter": 0.85, "up to 20 us of jitter": 0.5, "10 % held back for 20 us": 0.82, "5 % lost": 0.9}
"""What is left where jitter of more than a base RTT, much overtaking, or many losses still cost windows."""
FEW_PACKETS = "1/10 of the rate"
"""A window of a few packets in each of four planes: 0.82 to 0.90."""


EACH_KIND = ("3 us more", "up to 10 us of jitter", "1/4 of the rate", "5 % lost", "10 % held back for 20 us")
"""One case of each kind; `make test-long` has the others."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "planes"),
    [
        *((case, 1) if case in EACH_KIND else pytest.param(case, 1, marks=pytest.mark.long) for case in CASES),
        *(pytest.param(case, 4, marks=pytest.mark.long) for case in CASES if case != FEW_PACKETS),
    ],
)
def test_what_links_leave_arrives(case: str, planes: int) -> None:
    """At 100 Gb/s, on average, with all links broken."""
    found = shares((case, "mrc", 100), planes, "all", "alike", 150, {})
    assert sum(found) / len(found) >= LESS.get(case, 0.93)


def test_without_the_jitter_windows_close() -> None:
    asked, shape = (
        ("up to 10 us of jitter", "mrc", 100),
        {"planes": 1, "links": "all", "seed": "far", "settle_rtts": 150},
    )
    taken, kept = (shares(asked, nic={"late_jitter_times": times}, **shape) for times in (12, 0))  # type: ignore[arg-type]
    assert sum(taken) > 2 * sum(kept)


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rates", "100", "--systems", "mrc", "uet", "--case", "3 us more", "--settle", "40"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| Every link | mrc, 100 Gb/s | uet, 100 Gb/s |"
    assert lines[2].startswith("| 3 us more | 0.9")


def test_bad_figures_are_refused() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--planes", "0"])
    assert ended.value.code == 2
