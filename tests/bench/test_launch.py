"""Launches of many daemons: their shapes have as many as their figures say."""

import pytest

from bench.launch import LARGE
from bench.report import HEADLINES
from mrcfabric.topology import Topology


@pytest.mark.parametrize("daemons", LARGE)
def test_a_shape_has_as_many_daemons_as_its_figure_says(daemons: int) -> None:
    shape = LARGE[daemons]
    topology = Topology(
        name="large", planes=shape["planes"], t0_per_plane=shape["t0"], t1_per_plane=shape["t1"],
        nics_per_t0=shape["nics-per-t0"],
    )  # fmt: skip
    assert topology.nodes == daemons


def test_every_shape_has_a_figure_with_a_goal() -> None:
    goals = {headline.name: headline.goal for headline in HEADLINES}
    assert all(goals[f"launch.seconds_{daemons}"] for daemons in LARGE)
