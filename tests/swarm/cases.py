"""Small cases that the tests of the swarm share."""

from typing import Any

from mrcfabric.topology import Topology
from swarm.case import Case, Fault, Flow, Write

TOPOLOGY = Topology(
    name="swarm", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4,
    seed="swarm-tests",
)  # fmt: skip


def flow(number: int, a: str, b: str, sizes: list[int], imm_every: int = 2) -> Flow:
    """Messages from `a` to `b`, every so many of them with an immediate; the first PSN lies below the wrap."""
    writes = [
        Write(12_000 + 10 * index, size, 7 * index if imm_every and index % imm_every == 0 else None, 5)
        for index, size in enumerate(sizes)
    ]
    return Flow(a, b, 16 + 2 * number, 17 + 2 * number, (1 << 24) - 20, 77, 10_000, forth=writes)


def calm(**changes: Any) -> Case:
    """Two flows, nothing breaks."""
    flows = [flow(0, "h000", "h002", [1, 5_000, 40_960, 4_096, 70_001]), flow(1, "h001", "h003", [100_000, 3])]
    return Case("calm", TOPOLOGY, flows, **changes)


def incast(switch: dict[str, Any], nic: dict[str, Any] | None = None, size: int = 120_000) -> Case:
    """Three NICs write to one at once."""
    topology = Topology.from_dict({**TOPOLOGY.to_dict(), "switch": switch, "nic": nic or {}})
    flows = [flow(number, f"h00{number}", "h003", [size, 60_000]) for number in range(3)]
    return Case("incast", topology, flows)


def broken_link() -> Case:
    """A link between switches goes down under load, and comes back."""
    case = calm()
    case.faults = [Fault("link_down", "p0-t0-0~p0-t1-0", 13_000, 200_000)]
    return case


def lossy() -> Case:
    """A NIC's link loses a third of its packets."""
    case = calm()
    case.faults = [Fault("link_loss", "h000~p0-t0-0", 11_000, 300_000, 330_000)]
    return case
