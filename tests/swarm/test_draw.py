"""A seed is a case: legal, reproducible, of every kind."""

import functools
import json

from nicd.compose import TOPOLOGY_FIGURES
from nicd.core.settings import NicSettings
from orchestrator.planning.plan import check
from swarm.breakage import KINDS
from swarm.case import Case
from swarm.draw import PACKETS_MAX, draw
from swarm.knobs import FIXED, OTHER_FABRICS, draw_settings
from switchd.core.settings import SwitchSettings
from tests.swarm.cases import TOPOLOGY


@functools.cache
def cases() -> list[Case]:
    """Not when the module is imported, which every process of a test run does."""
    return [draw(seed) for seed in range(150)]


def test_the_same_seed_is_the_same_case() -> None:
    assert [draw(seed).to_dict() for seed in range(10)] == [case.to_dict() for case in cases()[:10]]


def test_every_case_is_legal_and_small() -> None:
    for case in cases():
        check(case.topology)
        assert 1 <= len(case.flows) <= 8
        assert all(flow.a != flow.b for flow in case.flows)
        packets = sum(-(-write.length // case.topology.mtu_bytes) for flow in case.flows for write in flow.forth)
        assert packets < 4 * PACKETS_MAX
        assert all(
            fault.kind in KINDS and (not fault.until_ns or fault.until_ns > fault.at_ns) for fault in case.faults
        )


def test_a_case_survives_being_stored() -> None:
    for case in cases()[:40]:
        assert Case.from_dict(json.loads(json.dumps(case.to_dict()))) == case


def test_every_kind_of_breakage_is_drawn() -> None:
    drawn = {fault.kind for case in cases() for fault in case.faults}
    assert drawn == KINDS.keys() - {"link_flap"}, "a flap is several link_down"


def test_odd_shapes_are_drawn() -> None:
    topologies = [case.topology for case in cases()]
    assert {topology.planes for topology in topologies} == set(range(1, 9))
    assert any(topology.t0_per_plane == 1 for topology in topologies), "pairs on the same T0"
    assert any(flow.psn_ab > 0xFFFE00 for case in cases() for flow in case.flows), "PSNs just below the wrap"
    lengths = {write.length for case in cases() for flow in case.flows for write in (*flow.forth, *flow.back)}
    assert 1 in lengths
    assert any(length % 4 for length in lengths)


def test_every_knob_is_drawn_by_its_own_tables() -> None:
    """Also one that is added tomorrow: nothing here names a knob."""
    nic: set[str] = set()
    switch: set[str] = set()
    for seed in range(60):
        topology = draw_settings(TOPOLOGY, seed, 300_000)
        nic |= topology.nic.keys()
        switch |= topology.switch.keys()
    undrawn = NicSettings.__dataclass_fields__.keys() - nic | SwitchSettings.__dataclass_fields__.keys() - switch
    assert undrawn - FIXED == OTHER_FABRICS
    assert TOPOLOGY_FIGURES.keys() <= FIXED
