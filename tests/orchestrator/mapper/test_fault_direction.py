"""Which loops are asked for, and what their counts mean."""

import pytest

from mrcfabric.topology import Topology
from mrcfabric.turns import TurnTable
from orchestrator.mapper.clustermapper import Clustermapper
from orchestrator.mapper.fault_direction import PROBES_LEAST, PROBES_MOST, Direction, direction, question
from orchestrator.mapper.link_evidence import Counts
from orchestrator.mapper.link_verdicts import Cable, LinkMap, LinkVerdict, Verdict
from orchestrator.mapper.t0_view import MapperSettings

SHAPE = Topology(
    name="loops", planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=4, reserve_evs_per_qp=2
)
LINK = Cable(1, 0, None, 2)


def mapped(*bad: Cable, loss: float = 0.1, topology: Topology = SHAPE) -> LinkMap:
    cables = Clustermapper(topology, MapperSettings(1, 1, 1)).cables()
    links = [LinkVerdict(cable, Verdict.GRAY if cable in bad else Verdict.GOOD, loss=loss) for cable in cables]
    return LinkMap(0, tuple(links), ())


def test_each_loop_crosses_the_link_once_and_else_good_links_only() -> None:
    asked = question(SHAPE, mapped(LINK, Cable(1, 0, None, 0), Cable(1, 0, 0, None)), LINK)
    assert asked is not None
    assert asked.nic == 1, "the link of the first NIC is bad itself"
    assert asked.up == (1, 2, 1, 1)
    assert asked.down == (1, 1, 1, 2)
    turns = TurnTable(SHAPE, asked.nic)
    assert turns.loop(turns.loop_number(*asked.up)) == asked.up


@pytest.mark.parametrize(("loss", "probes"), [(1.0, PROBES_LEAST), (0.01, 1600), (0.0001, PROBES_MOST)])
def test_the_smaller_the_loss_the_more_probes(loss: float, probes: int) -> None:
    asked = question(SHAPE, mapped(LINK, loss=loss), LINK)
    assert asked is not None
    assert asked.probes == probes


@pytest.mark.parametrize(
    "others",
    [
        (Cable(1, 1, None, 2),),
        (Cable(1, 0, None, 0), Cable(1, 1, None, 1)),
        (Cable(1, 0, 0, None), Cable(1, 0, 1, None)),
    ],
)
def test_without_good_links_beside_it_nothing_can_be_asked(others: tuple[Cable, ...]) -> None:
    assert question(SHAPE, mapped(LINK, *others), LINK) is None


def test_nothing_can_be_asked_of_a_nic_link_or_without_a_second_t0() -> None:
    nic_link = Cable(0, 0, 0, None)
    assert question(SHAPE, mapped(nic_link), nic_link) is None
    alone = Topology(**{**SHAPE.to_dict(), "t0_per_plane": 1})
    assert question(alone, mapped(LINK, topology=alone), LINK) is None


@pytest.mark.parametrize(
    ("up", "down", "told"),
    [
        ((64, 64), (64, 0), Direction.UP),
        ((64, 0), (64, 64), Direction.DOWN),
        ((200, 20), (200, 25), Direction.BOTH),
        ((200, 20), (200, 0), Direction.UP),
        ((200, 20), (200, 1), Direction.OPEN),
        ((200, 20), (20, 0), Direction.OPEN),
        ((200, 1), (200, 0), Direction.OPEN),
        ((0, 0), (0, 0), Direction.OPEN),
    ],
)
def test_what_the_counts_mean(up: tuple[int, int], down: tuple[int, int], told: Direction) -> None:
    assert direction(Counts(*up, 0), Counts(*down, 0)) == told
