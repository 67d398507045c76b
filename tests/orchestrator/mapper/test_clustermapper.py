"""The judgement on a whole fabric, from tables: every kind of fault is named, and nothing else."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.topology import Topology
from orchestrator.mapper.clustermapper import Clustermapper
from orchestrator.mapper.link_verdicts import LinkMap, Verdict
from orchestrator.mapper.t0_view import MapperSettings
from tests.support.corners import corners
from tests.support.probed import ProbedFabric

SHAPE = Topology(
    name="mapped", planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=3, evs_per_qp=12, reserve_evs_per_qp=6
)
ROUND_NS = 1_000
LOOK_ROUNDS = 10
KNOBS = MapperSettings(
    window_ns=400 * ROUND_NS, heal_ns=50 * ROUND_NS, settle_ns=ROUND_NS, confirm_ns=LOOK_ROUNDS * ROUND_NS
)
NIC_LINK, UP_LINK = "h001~p0-t0-0", "p0-t0-1~p0-t1-2"


class Mapped:
    """A fabric of tables under a Clustermapper."""

    def __init__(self, topology: Topology = SHAPE, seed: object = 0) -> None:
        self.fabric = ProbedFabric(topology, seed)
        self.mapper = Clustermapper(topology, KNOBS)
        self.at_ns = 0
        self.accused: set[str] = set()
        self.latest = self._look()

    def run(self, rounds: int) -> LinkMap:
        for _ in range(rounds // LOOK_ROUNDS):
            self.fabric.rounds(LOOK_ROUNDS)
            self.at_ns += LOOK_ROUNDS * ROUND_NS
            self.latest = self._look()
            self.accused |= set(self.latest.bad)
        return self.latest

    def _look(self) -> LinkMap:
        for nic, table in self.fabric.tables().items():
            self.mapper.enter(nic, self.at_ns, table)
        return self.mapper.look(self.at_ns)

    def verdict(self, link: str) -> Verdict:
        return next(found.verdict for found in self.latest.links if found.cable.name == link)

    def note(self, link: str) -> str:
        return next(found.note for found in self.latest.links if found.cable.name == link)


def test_links_are_named_as_the_topology_names_them() -> None:
    mapper = Clustermapper(SHAPE, KNOBS)
    assert [cable.name for cable in mapper.cables()] == [link.name for link in SHAPE.links()]


def test_a_healthy_fabric_is_all_good() -> None:
    mapped = Mapped()
    assert mapped.run(100).all_good
    assert mapped.latest.bad == []
    assert all(link.loss < 0.03 for link in mapped.latest.links), "what a hundred rounds rule out"


def test_before_the_first_probe_everything_is_unknown() -> None:
    assert {link.verdict for link in Mapped().latest.links} == {Verdict.UNKNOWN}


FAULTS: dict[str, Callable[[ProbedFabric], None]] = {
    "NIC-T0 link cut": lambda fabric: fabric.losses.update({NIC_LINK: 1.0}),
    "NIC-T0 link without carrier": lambda fabric: fabric.no_carrier.add((1, 0)),
    "T0-T1 link cut": lambda fabric: fabric.losses.update({UP_LINK: 1.0}),
    "NIC-T0 link at 5 %": lambda fabric: fabric.losses.update({NIC_LINK: 0.0975}),
    "T0-T1 link at 5 %": lambda fabric: fabric.losses.update({UP_LINK: 0.0975}),
    "NIC-T0 link at 1 %": lambda fabric: fabric.losses.update({NIC_LINK: 0.0199}),
    "T0-T1 link at 1 %": lambda fabric: fabric.losses.update({UP_LINK: 0.0199}),
    "dead T1": lambda fabric: fabric.losses.update({"p0-t1-1": 1.0}),
    "dead T0": lambda fabric: fabric.losses.update({"p0-t0-1": 1.0}),
    "two links below one T0": lambda fabric: fabric.losses.update({NIC_LINK: 0.1, "p0-t0-0~p0-t1-0": 0.1}),
    "a cut and a lossy link": lambda fabric: fabric.losses.update({NIC_LINK: 1.0, UP_LINK: 0.1}),
    "dead T1 and a lossy NIC": lambda fabric: fabric.losses.update({"p0-t1-1": 1.0, NIC_LINK: 0.1}),
}


@pytest.mark.spec("arXiv 2605.04333", "8")
@pytest.mark.parametrize("seed", corners(range(3), 0))
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_and_nothing_else(fault: str, seed: int) -> None:
    mapped = Mapped(seed=seed)
    mapped.run(50)
    FAULTS[fault](mapped.fabric)
    guilty = set(mapped.fabric.losses) | ({NIC_LINK} if mapped.fabric.no_carrier else set())
    mapped.run(600)
    assert set(mapped.latest.bad) == guilty
    assert mapped.accused == guilty, "nor was anything else accused on the way"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_what_has_healed_is_good_again(fault: str) -> None:
    mapped = Mapped(seed="heal")
    FAULTS[fault](mapped.fabric)
    mapped.run(600 if "1 %" in fault else 200)
    guilty = set(mapped.accused)
    assert guilty
    mapped.fabric.losses.clear()
    mapped.fabric.no_carrier.clear()
    mapped.run(700 if "1 %" in fault else 450)
    assert mapped.latest.all_good
    assert mapped.accused == guilty


def test_healing_takes_its_time() -> None:
    mapped = Mapped()
    mapped.fabric.losses[NIC_LINK] = 0.1
    mapped.run(200)
    mapped.fabric.losses.clear()
    mapped.run(KNOBS.heal_ns // ROUND_NS)
    assert mapped.verdict(NIC_LINK) == Verdict.GRAY
    assert "nothing lost since" in mapped.note(NIC_LINK)


def test_a_link_that_loses_again_and_again_does_not_heal() -> None:
    mapped = Mapped()
    mapped.fabric.losses[UP_LINK] = 0.0199
    mapped.run(600)
    for _ in range(60):
        mapped.run(LOOK_ROUNDS)
        assert mapped.verdict(UP_LINK) == Verdict.GRAY


def test_links_of_a_dead_switch_are_unknown_not_bad() -> None:
    mapped = Mapped()
    mapped.fabric.losses["p0-t0-1"] = 1.0
    mapped.run(100)
    behind = [link for link in mapped.latest.links if "p0-t0-1" in link.cable.name.split("~")]
    assert len(behind) == 6
    assert {link.verdict for link in behind} == {Verdict.UNKNOWN}
    assert mapped.latest.dead == ("p0-t0-1",)


def test_a_silent_nic_leaves_its_links_unknown_and_the_rest_tested() -> None:
    mapped = Mapped()
    mapped.fabric.dark.add(4)
    mapped.run(100)
    unknown = {link.cable.name for link in mapped.latest.of(Verdict.UNKNOWN)}
    assert unknown == {"h004~p0-t0-1", "h004~p1-t0-1"}
    assert mapped.latest.bad == []


def test_a_link_nobody_can_try_is_unknown() -> None:
    mapped = Mapped()
    mapped.fabric.dark |= {0, 1}
    mapped.run(20)
    mapped.fabric.no_carrier.add((2, 0))
    mapped.run(100)
    assert mapped.verdict("p0-t0-0~p0-t1-1") == Verdict.UNKNOWN
    assert mapped.verdict("p1-t0-0~p1-t1-1") == Verdict.GOOD
    assert "or p0-t0-0 itself" in mapped.note("h002~p0-t0-0")


def test_with_one_t0_a_cut_up_link_may_be_its_t1() -> None:
    mapped = Mapped(
        Topology(name="one", planes=1, t0_per_plane=1, t1_per_plane=2, nics_per_t0=2, evs_per_qp=4,
                 reserve_evs_per_qp=2)
    )  # fmt: skip
    mapped.fabric.losses["p0-t0-0~p0-t1-1"] = 1.0
    mapped.run(100)
    assert mapped.latest.bad == ["p0-t0-0~p0-t1-1"]
    assert "or p0-t1-1 itself" in mapped.note("p0-t0-0~p0-t1-1")


def test_a_nic_that_starts_again_counts_from_nothing() -> None:
    mapped = Mapped()
    mapped.run(100)
    mapped.fabric.restart(0, mapped.at_ns)
    mapped.run(100)
    assert mapped.latest.all_good


def test_a_link_that_was_cut_and_comes_back_lossy_is_found_lossy() -> None:
    mapped = Mapped()
    mapped.fabric.losses[UP_LINK] = 1.0
    mapped.run(50)
    assert mapped.verdict(UP_LINK) == Verdict.DOWN
    mapped.fabric.losses[UP_LINK] = 0.2
    mapped.run(100)
    assert mapped.verdict(UP_LINK) == Verdict.GRAY


def test_the_loss_is_estimated_per_direction() -> None:
    mapped = Mapped()
    mapped.fabric.losses[UP_LINK] = 1 - 0.9**2
    mapped.run(300)
    found = next(link for link in mapped.latest.links if link.cable.name == UP_LINK)
    assert found.loss == pytest.approx(0.1, rel=0.4)


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 1 << 30),
    st.sampled_from([link.name for link in SHAPE.links()]),
    st.one_of(st.floats(0.05, 0.6), st.just(1.0)),
)
def test_whatever_link_it_is(seed: int, link: str, share: float) -> None:
    mapped = Mapped(seed=seed)
    mapped.run(20)
    mapped.fabric.losses[link] = share
    mapped.run(200)
    assert mapped.latest.bad == [link]
    assert mapped.accused == {link}


def test_a_map_as_data_and_in_sums() -> None:
    mapped = Mapped()
    mapped.fabric.losses["p0-t1-1"] = 1.0
    found = mapped.run(100)
    sums = found.sums()
    assert sums[0, "t0-t1", "good"] == 4
    assert sums[0, "t0-t1", "unknown"] == 2
    assert sum(sums.values()) == SHAPE.link_count
    record = found.record()
    assert record["dead"] == ["p0-t1-1"]
    assert {row["link"] for row in record["links"]} == {link.name for link in SHAPE.links()}
