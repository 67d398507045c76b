"""Where a kind of fault finds nothing to act on, a line says why; everywhere else nothing does."""

import pytest

from mrcfabric import bundles
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from orchestrator.faults.idle import why_idle
from orchestrator.faults.kinds import KINDS, OF_ROUTING

BGP = {"forwarding": "ecmp", "routing": "bgp"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_reason_is_one_line_that_names_a_setting(kind: str) -> None:
    for system in bundles.names():
        why = why_idle(with_system(Topology(), system), kind)
        assert not why or ("(" in why and "\n" not in why)


@pytest.mark.parametrize("kind", sorted(OF_ROUTING))
def test_routing_cores_are_where_switches_route(kind: str) -> None:
    assert why_idle(Topology(), kind) == "switches do not route for themselves (switch.routing: static)"
    assert why_idle(Topology(switch=BGP), kind) == ""


def test_each_setting_is_asked_for_what_it_gives() -> None:
    roce, irn, ib = (with_system(Topology(), name) for name in ("roce", "irn", "ib"))
    assert [bool(why_idle(one, "pause_storm")) for one in (roce, irn, ib, Topology())] == [False, True, False, True]
    assert [bool(why_idle(one, "wrong_headroom")) for one in (roce, irn, ib)] == [False, True, True]
    assert [bool(why_idle(one, "polarised_hash")) for one in (roce, ib, Topology())] == [False, True, True]
    assert not why_idle(Topology(), "link_down")
