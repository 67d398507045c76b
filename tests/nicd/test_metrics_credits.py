"""VLs, second paths and subnet managers come out of a real NIC's counters, and only on InfiniBand."""

from dataclasses import replace
from typing import Any

from mrcfabric.metrics import families, text
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.commands import StartManager
from nicd.core.nic import Nic
from nicd.metrics_credits import CREDIT_DEFINITIONS
from tests.support.counters import samples_of

IB = replace(
    Topology.demo(), nic={"transport": "rc", "rc_path": "lid", "cc": "none", "apm": True},
    switch={"forwarding": "lft", "lossless": "credits", "vls": 3},
)  # fmt: skip


def samples(core: dict[str, Any]) -> dict[str, float]:
    return samples_of(text(families(CREDIT_DEFINITIONS, "demo", "h000", {"core": core})))


def test_other_nics_have_none() -> None:
    for nic in ({}, {"transport": "rc"}):
        assert samples(Nic(nic_config(replace(Topology.demo(), nic=nic), "h000")).counters()) == {}


def test_vls_are_told_by_plane() -> None:
    nic = Nic(nic_config(IB, "h000"))
    found = samples(nic.counters())
    assert len(found) == IB.planes * (3 * 4 + 3) + 1
    core = nic.counters()
    core["ports"]["5"]["vls"][2] |= {"stalls": 4, "blocked_ns": 5_000_000_000}
    told = {series: number for series, number in samples(core).items() if number}
    labels = '{fabric="demo",node="h000",plane="5",vl="2"}'
    assert told == {f"mrc_nic_vl_credit_stalls_total{labels}": 4, f"mrc_nic_vl_credit_stalled_seconds_total{labels}": 5}


def test_a_manager_is_told_of() -> None:
    nic = Nic(nic_config(IB, "h000"))
    nic.advance([Input(1_000, Rank.COMMAND, -1, 1, StartManager(1, 3))], 2_000)
    found = samples(nic.counters())
    labels = '{fabric="demo",node="h000",plane="3"}'
    assert found[f"mrc_nic_subnet_manager_state{labels}"] == 1
    assert found[f"mrc_nic_subnet_manager_requests_total{labels}"] == 1
    assert found[f"mrc_nic_subnet_manager_switches{labels}"] == 0
