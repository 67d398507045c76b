"""Parts of a fabric by description."""

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric.finder import Finder
from tests.orchestrator.running import SMALL


class Described(Finder):
    """A fabric of which nothing runs."""

    def __init__(self) -> None:
        self.topology = SMALL


def test_parts_are_found_by_name_tier_plane_and_neighbour() -> None:
    fabric = Described()
    assert fabric.find_nodes("p0-t*-0") == ["p0-t0-0", "p0-t1-0"]
    assert fabric.find_nodes(tier="t1", plane=1) == ["p1-t1-0", "p1-t1-1"]
    assert fabric.find_links(of="h001") == ["h001~p0-t0-1", "h001~p1-t0-1"]
    assert fabric.find_links("h000~p0-t0-0", direction="up") == ["h000>p0-t0-0"]
    assert fabric.find_ports(plane=1) == ["h000:1", "h001:1"]
    with pytest.raises(ConfigError, match="nearest is p1-t1-1"):
        fabric.find_nodes("p1-t1-9")


def test_what_is_drawn_is_drawn_alike_every_time() -> None:
    first, second = Described(), Described()
    drawn = [first.find_nodes(tier="t1", mode="one") for _ in range(6)]
    assert drawn == [second.find_nodes(tier="t1", mode="one") for _ in range(6)]
    assert len({tuple(names) for names in drawn}) > 1


def test_names_come_alone_or_in_lists() -> None:
    fabric = Described()
    t1s = fabric.find_nodes(tier="t1", plane=1)
    assert fabric.find_nodes(t1s) == fabric.find_nodes(*t1s) == t1s
    assert fabric.targets("switch_crash", t1s, "p0-t1-0") == ["p0-t1-0", *t1s]
    for wrong in (7, [7], [t1s]):
        with pytest.raises(ConfigError, match="is no name"):
            fabric.find_nodes(wrong)  # type: ignore[arg-type]
