"""Names the addresses in packets of a fabric: NICs, and uSID containers by the path that they spell.

Pure. A container is named hop by hop, for example `p0-t1-2>p0-t0-1>h003`. Which NIC the last uSID means depends on the
T0 in front of it. So a container of that uSID alone is named after the port, for example `p0-t0-*:down-1`.
"""

from typing import Final

from mrcfabric.naming import (
    USID_TIER_DESTINATION,
    USID_TIER_LOCAL,
    USID_TIER_T0,
    nic_name,
    t0_name,
    t1_name,
    usid_fields,
)
from mrcfabric.topology import Topology
from mrcfabric.units import Buffer
from mrcfabric.wire import usid
from mrcfabric.wire.layout import (
    INNER_DESTINATION,
    INNER_SOURCE,
    NEXT_HEADER_UDP,
    OUTER_DESTINATION,
    OUTER_SOURCE,
)

NAMES_MAX: Final = 65_536
"""How many addresses one capture names."""
_UDP: Final = bytes((NEXT_HEADER_UDP,))
_PLACES: Final = (OUTER_SOURCE, OUTER_DESTINATION, INNER_SOURCE, INNER_DESTINATION)


class AddressNames:
    """For each packet, returns those of its addresses that have not been named yet."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: set[bytes] = set()

    def new_in(self, packet: Buffer) -> dict[bytes, str]:
        """Address -> name, for addresses seen for the first time; those without a name are left out."""
        found: dict[bytes, str] = {}
        # Behind a plain packet's only IPv6 header there are no addresses.
        for place in _PLACES[:2] if bytes(packet[6:7]) == _UDP else _PLACES:
            address = bytes(packet[place])
            if address in self._known or len(address) < usid.CONTAINER_SIZE or len(self._known) >= NAMES_MAX:
                continue
            self._known.add(address)
            name = self.name(address)
            if name:
                found[address] = name
        return found

    def name(self, address: bytes) -> str:
        """The name of an address of 16 bytes; empty for one that does not belong to this fabric."""
        nic = self._topology.nic_of_address(address)
        if nic is not None:
            return nic_name(nic)
        if usid.block(address) != self._topology.usid_block:
            return ""
        hops: list[str] = []
        below: int | None = None
        for one in usid.usids(address):
            tier, plane, index = usid_fields(one)
            hops.append(self._hop(tier, plane, index, below))
            below = index if tier == USID_TIER_T0 else None
        return ">".join(hops)

    def _hop(self, tier: int, plane: int, index: int, t0: int | None) -> str:
        """Name one uSID. `t0`: the number of the T0 in front of it, if there is one."""
        if tier == USID_TIER_LOCAL:
            return f"port-{index - 1}"
        if tier == USID_TIER_DESTINATION:
            if t0 is not None and index < self._topology.nics_per_t0:
                return nic_name(t0 * self._topology.nics_per_t0 + index)
            return f"p{plane}-t0-*:down-{index}"
        return t0_name(plane, index) if tier == USID_TIER_T0 else t1_name(plane, index)
