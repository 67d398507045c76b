"""Small cases of other systems that the tests of the second series share."""

from dataclasses import replace
from typing import Any

from mrcfabric.topology import Topology
from mrcfabric.topology_file import read_system
from swarm.case import SYSTEMS, Case, Fault
from tests.swarm.cases import flow

PLAIN = Topology(
    name="swarm", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4,
    seed="swarm-tests",
)  # fmt: skip
TIGHT = {"pfc_threshold": "static", "pfc_xoff_bytes": 12_000, "buffer_bytes": 1 << 20}
"""Pauses after three packets."""
MARKED = {"ecn_min_bytes": 1, "ecn_max_bytes": 2, "ecn_max_ppm": 1_000_000}
"""Every packet that leaves another behind is marked."""
QUICK = {"rc": {"rc_timeout": 7}}
"""By transport: a shorter patience than the default, which lets cases end soon."""
DEAD = [Fault("link_down", "h002~p0-t0-1", 12_500)]


def fabric(system: str, nic: dict[str, Any] | None = None, switch: dict[str, Any] | None = None) -> Topology:
    """The plain fabric with a system, and what departs from it."""
    tables = read_system(system).tables
    return replace(
        PLAIN,
        system=system,
        dscp=tables.get("dscp", {}),
        nic={**tables.get("nic", {}), **QUICK.get(tables.get("nic", {}).get("transport", ""), {}), **(nic or {})},
        switch={**tables["switch"], **(switch or {})},
    )


def pair(system: str, nic: dict[str, Any] | None = None, switch: dict[str, Any] | None = None, **more: Any) -> Case:
    """Two flows that meet nobody."""
    flows = [flow(0, "h000", "h002", [1, 5_000, 40_960, 4_096, 70_001]), flow(1, "h001", "h003", [100_000, 3])]
    return Case("pair", fabric(system, nic, switch), flows, series=SYSTEMS, **more)


def incast(
    system: str, nic: dict[str, Any] | None = None, switch: dict[str, Any] | None = None,
    sizes: tuple[int, ...] = (60_000, 30_000), **more: Any,
) -> Case:  # fmt: skip
    """Three NICs write to one at once, over the same plane."""
    topology = replace(fabric(system, nic, switch), planes=1)
    flows = [flow(number, f"h00{number}", "h003", list(sizes)) for number in range(3)]
    return Case("incast", topology, flows, series=SYSTEMS, **more)


def lossy(system: str, nic: dict[str, Any] | None = None) -> Case:
    """A NIC's link loses a tenth of its packets."""
    return pair(system, nic, faults=[Fault("link_loss", "h000~p0-t0-0", 11_000, 300_000, 100_000)])


def paused() -> Case:
    """An incast under pauses."""
    return incast("roce-pfc-only", switch=TIGHT)
