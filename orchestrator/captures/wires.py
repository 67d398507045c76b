"""Which directions of links a capture covers, and what each node is asked to keep for them.

Pure. Owns the interfaces of a capture: their order, names and descriptions, and the filter for each sending node.
`orchestrator.faults.selectors` resolves words to links; `mrcfabric.packet_filter` says what a filter lets pass.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.rng import Rng
from mrcfabric.topology import PortLink, Topology
from orchestrator.faults import selectors

WIRES_MAX: Final = 1024
"""How many directions of links one capture may have."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One direction of a link: an interface of the capture."""

    name: str
    """For example `p0-t0-0>p0-t1-2`."""
    sender: str
    port: int
    """The port of the sender."""
    description: str
    rate_bps: int


def links_meant(topology: Topology, words: Sequence[str], direction: str, planes: Sequence[int]) -> tuple[str, ...]:
    """Resolve words of a command line to links or directions of links, as for faults. Raises ConfigError.

    `planes`: only links in these planes; empty: in all.
    """
    plane = list(planes) or None
    selector = selectors.of_words("link_down", words, direction=direction, plane=plane)
    try:
        return selectors.select(topology, "link_down", selector, Rng(topology.seed, "capture"))
    except ConfigError as error:
        if error.where != "selector":
            raise
        known = f"a link is {next(topology.links()).name}, planes are 0 to {topology.planes - 1}"
        raise ConfigError("links", error.what, known) from None


def wires_of(topology: Topology, links: Sequence[str]) -> tuple[Wire, ...]:
    """The directions of `links`, each `a~b` (both) or `a>b`, in their order. Raises ConfigError for too many."""
    ways: dict[tuple[str, str], None] = {}
    for link in links:
        one_way = ">" in link
        a, b = link.split(">" if one_way else "~")
        ways[a, b] = None
        if not one_way:
            ways[b, a] = None
    if len(ways) > WIRES_MAX:
        raise ConfigError("capture", f"{len(ways)} directions of links", f"at most {WIRES_MAX}: name fewer links")
    return tuple(_wire(topology, sender, receiver) for sender, receiver in ways)


def _wire(topology: Topology, sender: str, receiver: str) -> Wire:
    end = next(end for end in topology.ports(sender) if end.peer == receiver)
    return Wire(f"{sender}>{receiver}", sender, end.port, _description(sender, end), end.rate_bps)


def _description(sender: str, end: PortLink) -> str:
    return f"{sender} port {end.port} to {end.peer} port {end.peer_port}, link {end.link}"


def filters_of(wires: Sequence[Wire], wanted: PacketFilter) -> Mapping[str, PacketFilter]:
    """Make the filter for each sending node: on its captured ports, what `wanted` lets pass."""
    ports: dict[str, list[int]] = {}
    for wire in wires:
        ports.setdefault(wire.sender, []).append(wire.port)
    return {node: dataclasses.replace(wanted, ports=tuple(sorted(found))) for node, found in ports.items()}
