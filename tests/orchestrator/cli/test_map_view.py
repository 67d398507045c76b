"""The map as people read it."""

from typing import Any

from orchestrator.cli.map_view import is_all_good, render_map
from orchestrator.mapper.link_verdicts import Cable, LinkMap, LinkVerdict, Verdict

GOOD = LinkVerdict(Cable(0, 0, 0, None), Verdict.GOOD, probes=200, loss=0.0114)
GRAY = LinkVerdict(Cable(0, 0, None, 1), Verdict.GRAY, 400, 21, 0.0263, 17_000, "to watch")
UNKNOWN = LinkVerdict(Cable(0, 0, 1, None), Verdict.UNKNOWN, note="h001 does not answer")


def record(*links: LinkVerdict, dead: tuple[str, ...] = ()) -> dict[str, Any]:
    return LinkMap(1_000, links, dead).record()


def test_only_what_is_not_good_is_shown() -> None:
    assert render_map(record(GOOD, GRAY, UNKNOWN, dead=("p0-t1-0",))).splitlines() == [
        "p0-t1-0  dead switch",
        "link             verdict     loss  probes  lost  note",
        "p0-t0-0~p0-t1-1  gray       2.63%     400    21  to watch",
        "h001~p0-t0-0     unknown        ?       0     0  h001 does not answer",
        "NIC-T0: 2 links, 1 good, 1 unknown",
        "T0-T1: 1 links, 1 gray",
    ]


def test_of_many_unknown_links_some_are_named() -> None:
    unknown = [LinkVerdict(Cable(0, 0, nic, None), Verdict.UNKNOWN) for nic in range(20)]
    lines = render_map(record(*unknown)).splitlines()
    assert lines[-3] == "and 12 more that are unknown"
    assert len(lines) == 1 + 8 + 1 + 2
    assert len(render_map(record(*unknown), everything=True).splitlines()) == 1 + 20 + 2


def test_all_links_on_request() -> None:
    assert "h000~p0-t0-0  good      <1.14%     200     0" in render_map(record(GOOD), everything=True)


def test_what_is_avoided_and_what_is_not() -> None:
    plan = {"avoided": ["p0-t0-0~p0-t1-1"], "kept": {"h001~p0-t0-0": "would leave 1 planes, fewer than 2"}}
    lines = render_map({**record(GRAY), "plan": plan}).splitlines()
    assert lines[-2:] == [
        "avoided: p0-t0-0~p0-t1-1",
        "NOT avoided: h001~p0-t0-0, would leave 1 planes, fewer than 2",
    ]


def test_good_is_when_nothing_else_is() -> None:
    assert is_all_good(record(GOOD))
    assert not is_all_good(record(GOOD, UNKNOWN))
    assert not is_all_good(record(GOOD, dead=("p0-t1-0",)))
