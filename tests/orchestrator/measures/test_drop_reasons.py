"""Every reason that a node of any system can count has a name and a meaning, and every name is counted somewhere."""

from dataclasses import replace

import pytest

from mrcfabric import bundles
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from orchestrator.measures.drop_reasons import DROP_REASONS
from orchestrator.measures.measures import MEASURES
from orchestrator.runs.counting import flat_nic, flat_switch
from orchestrator.sim.fabric import SimulatedFabric

SMALL = Topology(planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8)
FABRICS = {
    **{name: with_system(SMALL, name) for name in bundles.names()},
    "mrc, lossless": replace(SMALL, switch={"lossless": "pfc", "pfc_classes": "0,1"}),
    "rc, pinned": replace(SMALL, nic={"transport": "rc", "rc_path": "pinned"}),
}
PREFIX = "drops."


def counted(topology: Topology) -> set[str]:
    """The reasons that the nodes of a fabric count."""
    fabric = SimulatedFabric(topology)
    flat = [flat_nic(fabric.counters(name)) for name in topology.nic_names()]
    flat += [flat_switch(fabric.counters(name)) for name in topology.switch_names()]
    return {name.removeprefix(PREFIX) for counts in flat for name in counts if name.startswith(PREFIX)}


@pytest.mark.parametrize("name", FABRICS)
def test_whatever_a_node_counts_has_a_name(name: str) -> None:
    assert counted(FABRICS[name]) <= set(DROP_REASONS)


def test_every_name_is_counted_by_somebody() -> None:
    assert set().union(*map(counted, FABRICS.values())) == set(DROP_REASONS)
    assert MEASURES["drops"].labels == tuple(DROP_REASONS)


def test_every_reason_has_a_meaning_of_one_sentence() -> None:
    for reason, meaning in DROP_REASONS.items():
        assert meaning.endswith("."), reason
        assert meaning.count(".") == 1, reason
