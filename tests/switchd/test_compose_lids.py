"""Tables by LID as they come from a topology."""

from typing import Any

import pytest

from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.lids import base_lid
from mrcfabric.topology import Topology
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.credited import CreditSwitch
from switchd.core.forwarding.lft import NO_PORT

IB = {"forwarding": "lft", "lossless": "credits"}


def topology(lmc: int = 0, **switch: Any) -> Topology:
    return Topology(
        planes=2, t0_per_plane=3, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_lmc": lmc}, switch={**IB, **switch},
    )  # fmt: skip


@pytest.mark.parametrize("lmc", [0, 1, 2])
def test_what_is_below_has_its_port_and_all_else_an_uplink_by_lid(lmc: int) -> None:
    fabric = topology(lmc)
    t0 = switch_config(fabric, "p1-t0-1")
    assert t0.lft is not None
    ports = {end.peer: end.port for end in fabric.ports("p1-t0-1")}
    for nic in range(6):
        for bits in range(1 << lmc):
            wanted = ports[f"h00{nic}"] if nic // 2 == 1 else ports[f"p1-t1-{(nic + bits) % 2}"]
            assert t0.lft.table[base_lid(nic, lmc) + bits] == wanted
    assert set(t0.lft.table[: 1 << lmc]) == {NO_PORT}
    assert t0.lft.group == (ports["p1-t1-0"], ports["p1-t1-1"])
    t1 = switch_config(fabric, "p0-t1-0")
    assert t1.lft is not None
    down = {end.peer: end.port for end in fabric.ports("p0-t1-0")}
    assert [t1.lft.table[base_lid(nic, lmc)] for nic in range(6)] == [down[f"p0-t0-{nic // 2}"] for nic in range(6)]
    assert t1.lft.group == ()


def test_ports_have_the_vls_and_lives_of_the_settings() -> None:
    fabric = topology(vls=3, head_life=10, head_life_nic=9, vl_blocks=99, adaptive="packet", shield=True, shield_ns=7)
    config = switch_config(fabric, "p0-t0-0")
    for end, port in zip(fabric.ports("p0-t0-0"), config.ports, strict=True):
        assert isinstance(port, CreditEgressConfig)
        assert port.blocks == (99,) * 3
        assert port.head_life_ns == 4_096 << (9 if end.towards == "nic" else 10)
    assert config.lft is not None
    assert (config.lft.adaptive, config.lft.failover_ns) == ("packet", 7)
    assert config.credits is not None
    assert config.credits.sl2vl[:4] == (0, 1, 2, 0)
    assert isinstance(build_switch(config), CreditSwitch)


def test_more_nics_than_lids_are_refused() -> None:
    fabric = Topology(
        planes=1, t0_per_plane=8, t1_per_plane=8, nics_per_t0=48, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_lmc": 7}, switch=IB,
    )  # fmt: skip
    with pytest.raises(ConfigError, match="384 NICs with 128 LIDs"):
        switch_config(fabric, "p0-t0-0")
    with pytest.raises(ConfigError, match="whole number"):
        switch_config(topology("x"), "p0-t0-0")  # type: ignore[arg-type]
