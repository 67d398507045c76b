"""The way of one packet, taken up again as nodes tell more."""

from typing import Any

from orchestrator.tracing.paths import Paths, Trail, doubled
from orchestrator.tracing.statements import Statements
from tests.support.tracing import SMALL

PACKET = {"kind": "data", "source": 0, "destination": 1, "qpn": 5, "psn": 7, "ev": 0, "rtx": False, "ce": False,
          "size": 100, "print": 3}  # fmt: skip
OFFER: dict[str, Any] = {"n": 1, "at_ns": 100, "step": "offer", "port": 0, "verdict": "queued", "packet": PACKET}
DEPART: dict[str, Any] = {"n": 2, "at_ns": 100, "step": "depart", "of": 1, "arrival_ns": 900, "marked": False}


def begun(*statements: dict[str, Any]) -> tuple[Paths, Trail, dict[str, Statements]]:
    """A packet that h000 has made, and what h000 says of it."""
    nodes = {"h000": Statements(nic=True), "p0-t0-0": Statements(nic=False)}
    for statement in (OFFER, *statements):
        nodes["h000"].add(statement)
    nodes["h000"].hold(OFFER)
    return Paths(SMALL, nodes, {"h000": 5_000, "p0-t0-0": 50}), Trail("h000", OFFER), nodes


def end(paths: Paths, trail: Trail) -> tuple[str, str, bool]:
    paths.follow(trail)
    return trail.way.outcome, trail.way.where, trail.final


def test_a_way_goes_on_where_it_was() -> None:
    paths, trail, statements = begun()
    assert end(paths, trail) == ("waiting", "h000", False)
    statements["h000"].add(DEPART)
    assert end(paths, trail) == ("under way", "p0-t0-0", False)
    statements["p0-t0-0"].add({**OFFER, "at_ns": 900, "verdict": "data_full"})
    assert end(paths, trail) == ("dropped", "p0-t0-0", True)
    assert [hop.node for hop in trail.way.hops] == ["h000", "p0-t0-0"]
    assert statements["h000"].departs == {}, "nothing of it is kept"
    assert end(paths, trail) == ("dropped", "p0-t0-0", True)


def test_a_link_that_loses_it_ends_its_way() -> None:
    paths, trail, _ = begun(DEPART, {"n": 3, "at_ns": 100, "step": "carry", "of": 1, "lost": "loss"})
    assert end(paths, trail) == ("lost", "h000>p0-t0-0", True)


def test_copies_are_counted_where_a_doubled_packet_ends() -> None:
    paths, trail, statements = begun(
        DEPART, {"n": 3, "at_ns": 100, "step": "carry", "of": 1, "touched": ["duplicated"]}
    )
    for number, at_ns in enumerate((900, 950), start=1):
        statements["p0-t0-0"].add({"n": number, "at_ns": at_ns, "step": "take", "verdict": "placed", "packet": PACKET})
    assert end(paths, trail) == ("taken", "p0-t0-0", True)
    assert doubled(trail.way)
    assert paths.copies(trail) == 1
