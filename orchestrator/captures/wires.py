"""Which directions of links a capture is of, and what is asked of which node for them.

Pure. Owns the interfaces of a capture: their order, names and descriptions, and the filter that each sending node gets.
Which links words mean is `orchestrator.faults.selectors`'s, what a filter lets pass `mrcfabric.packet_filter`'s.
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
"""Directions of links in one capture."""


@dataclass(frozen=True, slots=True)
class Wire:
    """One direction of a link: an interface of the capture."""

    name: str
    """As `p0-t0-0>p0-t1-2`."""
    sender: str
    port: int
    """Of the sender."""
    description: str
    rate_bps: int


def links_meant(topology: Topology, words: Sequence[str], direction: str, planes: Sequence[int]) -> tuple[str, ...]:
    """Links, or directions of them, by the words of a command line, as faults take them. Raises ConfigError.

    `planes`: only in these; empty: in all.
    """
    plane = list(planes) or None
    selector = selectors.of_words("link_down", words, direction=direction, plane=plane)
    return selectors.select(topology, "link_down", selector, Rng(topology.seed, "capture"))


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
    """What each sending node is to keep: of the ports that are captured, what `wanted` lets pass."""
    ports: dict[str, list[int]] = {}
    for wire in wires:
        ports.setdefault(wire.sender, []).append(wire.port)
    return {node: dataclasses.replace(wanted, ports=tuple(sorted(found))) for node, found in ports.items()}
