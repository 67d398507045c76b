"""LIDs of an InfiniBand fabric: which NIC has which. Pure arithmetic.

Owns the numbers. A port has `1 << lmc` LIDs in a row, the first of them a multiple of that; NICs have them in the order
of their numbers, from the first such multiple on. Each plane is a subnet of its own, in which a NIC has one port, so
the numbers repeat in every plane.

Source: IBTA 4.1.1 (LIDs), 7.11.1 (LMC).
"""

from mrcfabric.errors import ConfigError
from mrcfabric.naming import port_mac
from mrcfabric.wire.lrh import LID_MAX
from mrcfabric.wire.options import LMC_MAX


def base_lid(nic: int, lmc: int) -> int:
    """The first LID of a NIC's port."""
    return nic + 1 << lmc


def nic_of(lid: int, lmc: int) -> int:
    """The NIC that has a LID; -1: none can."""
    return (lid >> lmc) - 1


def node_guid(name: str) -> int:
    """The GUID of a node: the address of its first port in the longer form."""
    mac = port_mac(name, 0)
    return int.from_bytes(mac[:3] + b"\xff\xfe" + mac[3:], "big")


def check_lids(nics: int, lmc: int) -> None:
    """Raises ConfigError for more NICs than there are LIDs."""
    if not 0 <= lmc <= LMC_MAX:
        raise ConfigError("nic.lmc", f"{lmc} is out of range", f"0 to {LMC_MAX}")
    most = ((LID_MAX + 1) >> lmc) - 1
    if nics > most:
        raise ConfigError("nic.lmc", f"{nics} NICs with {1 << lmc} LIDs each", f"a subnet has LIDs for {most}")
