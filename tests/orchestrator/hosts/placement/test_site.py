"""Hosts of a fabric: who runs where, and the leader's host for whoever is not named."""

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.hosts.placement.site import LEADER, LOOPBACK, Site, Sites


def test_a_fabric_without_hosts_stands_on_this_one() -> None:
    sites = Sites()
    assert not sites.several
    assert sites.number("h000") == LEADER
    assert (sites.site("h000").data, sites.site("h000").control) == (LOOPBACK, LOOPBACK)


def test_who_is_not_named_runs_on_the_leaders_host() -> None:
    here, there = Site("here"), Site("there", data="192.0.2.7", control="2001:db8::7")
    sites = Sites((here, there), {"h001": 1})
    assert sites.several
    assert [sites.number(node) for node in ("h000", "h001")] == [LEADER, 1]
    assert sites.site("h001") is there
    assert sites.site("p0-t0-0") is here


def test_memory_is_shared_on_the_leaders_host_alone() -> None:
    sites = Sites((Site("here"), Site("vm1")), {"h001": 1})
    sites.require_here("h000")
    with pytest.raises(RefusedError, match="h001 runs on host vm1"):
        sites.require_here("h001")
