"""What `mrcfabric top` shows of fabrics of every size and condition, in terminals of every size."""

from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from orchestrator.cli.top_view import KEYS_TEXT, ORDERS, plain, screen, worst_links
from orchestrator.live.snapshot import Snapshot
from tests.support.corners import corners
from tests.support.snapshots import DEMO, LARGE, SMALL, all_broken, broken, busy, paused, quiet


def shown(shot: Snapshot, width: int = 80, height: int = 24, state: str = "") -> list[str]:
    return screen("demo", shot, 8e11, width, height, "utilisation", state).plain.split("\n")


@pytest.mark.parametrize("size", corners([(80, 24), (40, 10), (20, 3), (200, 60)], (20, 3), (200, 60)))
@pytest.mark.parametrize("topology", [SMALL, DEMO, LARGE], ids=lambda one: one.name)
@pytest.mark.parametrize("make", [quiet, busy, broken, all_broken])
def test_it_fits(make: object, topology: Topology, size: tuple[int, int]) -> None:
    width, height = size
    lines = shown(make(topology), width, height)  # type: ignore[operator]
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines[-1].startswith(KEYS_TEXT[:20])


def test_what_is_wrong_has_a_word() -> None:
    text = "\n".join(shown(broken(SMALL), 80, 40))
    for word in ("f1  link_down p0-t0-0~p0-t1-0", "DOWN", "IMPAIRED", "until", "more faults", "of script-1"):
        assert word in text
    assert "17 frames" in shown(all_broken(SMALL), 100)[0]
    assert shown(all_broken(SMALL), 40, state="PAUSED")[0].startswith("demo  PAUSED  NOT VALID")
    assert "time stands still" in shown(quiet(SMALL))[0]


def test_what_there_is_no_room_for_is_counted() -> None:
    whole = "\n".join(shown(all_broken(LARGE)))
    assert "and 233 more nodes" in whole
    small = "\n".join(shown(broken(SMALL), 40, 10))
    assert "6 faults" in small
    assert "2 nodes" in small
    assert "link, by" not in small, "no table without rows"


@pytest.mark.parametrize("order", ORDERS)
def test_links_that_are_not_whole_come_first_and_then_the_worst(order: str) -> None:
    found = worst_links(broken(DEMO), order, 200)
    wrong = [bool(one[2]) for one in found]
    assert wrong == sorted(wrong, reverse=True)
    key = {"queue": "queue_bytes"}.get(order, order)
    figures = [getattr(one[1], key) for one in found if not one[2]]
    assert figures == sorted(figures, reverse=True)
    assert len(worst_links(broken(DEMO), order, 3)) == 3


def test_a_line_for_what_is_no_terminal() -> None:
    line = plain(broken(SMALL))
    assert "Gb/s" in line
    assert "assumed_bad=" in line
    assert "faults f1,f2" in line
    assert "\n" not in line


def test_a_fabric_without_evs_has_no_columns_for_them() -> None:
    for size in ((80, 24), (40, 10)):
        found = screen("demo", broken(SMALL), 8e11, *size, "queue", "", False).plain
        assert "denied" not in found
        assert "bad EVs" not in found
        assert "no port" in found
    wide = screen("demo", busy(SMALL), 8e11, 200, 60, "queue", "", False).plain
    assert [line.split() for line in wide.split("\n") if line.startswith("NIC ")] == [
        ["NIC", "Gb/s", "QPs", "errors", "again", "ports"]
    ]
    assert "EVs" not in plain(busy(SMALL), False)
    assert "ports down" in plain(busy(SMALL), False)


def test_the_pace_is_that_of_the_rates_beside_it() -> None:
    went = replace(busy(SMALL), dilation=1234.0)
    assert "dilation 1,234  valid" in plain(replace(went, running=True))
    assert "dilation 1,234, now time stands still" in plain(replace(went, running=False))
    stood = replace(quiet(SMALL), dilation=0.0)
    assert "first look" in plain(replace(stood, running=True, number=1))
    assert "time stands still" in plain(replace(stood, running=True, number=2))
    assert "time stands still" in plain(replace(stood, running=False, number=1))


@pytest.mark.parametrize("size", corners([(80, 24), (40, 10), (20, 3), (200, 60)], (20, 3), (200, 60)))
def test_a_fabric_of_rc_nics_fits_and_has_nothing_of_evs(size: tuple[int, int]) -> None:
    width, height = size
    lines = screen("roce (roce)", paused(), 4e11, width, height, "paused", "", False).plain.split("\n")
    assert (len(lines), max(map(len, lines)) <= width) == (height, True)
    assert not [line for line in lines if "EV" in line or "denied" in line or "trims" in line]


def test_rc_nics_tell_of_qps_rates_notifications_and_pauses() -> None:
    text = screen("roce (roce)", paused(), 4e11, 120, 40, "paused", "", False).plain
    assert "QPs 16 rts; paths by ECMP, by plane 16; rate 25.0 Gb/s mean, 4.0 least, 8 slowed" in text
    assert "CNPs 8,000/s  NAKs 12/s  sent again 16,384 B  paused at most 70%" in text
    assert "pause class 3: p0-t0-0, its port to h000 is congested; 4 directions, at the end h002 h003" in text
    rows = [line.split() for line in text.split("\n")]
    head = next(row for row in rows if row[:1] == ["NIC"])
    assert head == ["NIC", "Gb/s", "QPs", "errors", "rate", "CNP/s", "NAK/s", "again", "B", "paused", "ports"]
    nics = rows[rows.index(head) + 1 :]
    assert [row[0] for row in nics[:2]] == ["h002", "h003"], "those that are paused longest first"
    assert nics[0][4:8] == ["25.0", "3,000", "8", "4,096"]
    assert nics[0][8] == "70%"
    assert worst_links(paused(), "paused", 1)[0][0] == "h002>p0-t0-1"
    line = plain(paused(), False)
    assert "paths by ECMP" in line
    assert "paused 4 directions" in line
