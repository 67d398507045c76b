"""Rows of InfiniBand: each at its quickest point, and the oracle of tables."""

import pytest

from studies.flows import Flow
from studies.systems import infiniband
from studies.systems.infiniband import ROWS, Death, Life, Loop
from tests.studies.systems.findings import missed

BY_ID = {row.id: row for row in ROWS}


@pytest.mark.parametrize("point", [Loop(1, 1_000), Loop(3, 5_000)])
def test_a_buffer_smaller_than_the_loop_has_its_share(point: Loop) -> None:
    assert missed(BY_ID["I1"].measure(point)) == []


@pytest.mark.parametrize(
    "point", [Death("shield", 0), Death("shield", 20_000), Death("manager", 0), Death("nothing", 4)]
)
def test_a_dead_link_costs_what_the_repair_takes(point: Death) -> None:
    assert missed(BY_ID["I4"].measure(point)) == []


@pytest.mark.parametrize("point", [Life(0, 0), Life(3, 10), Life(3, 18)])
def test_a_ring_stands_still_for_a_life_and_lost_credits_come_back(point: Life) -> None:
    assert missed(BY_ID["I5"].measure(point)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["I2", "I3", "I6"])
def test_the_other_rows_hold(name: str) -> None:
    row = BY_ID[name]
    assert missed(row.measure(row.points[0] if name == "I2" else 1)) == []


def test_flows_that_the_tables_put_on_one_up_link_share_it() -> None:
    topology = infiniband._ib("rates", 4, 2)
    flows = [Flow(0, 4, 1), Flow(1, 6, 1), Flow(2, 5, 1)]
    assert infiniband._table_rates(topology, flows) == [0.5, 0.5, 1.0]
