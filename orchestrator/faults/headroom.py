"""Which ports of a switch a wrong headroom is about, and how many bytes each is left with.

Pure. Owns the reading of the figures of `wrong_headroom`. The switch's own composition says what is configured and what
would be exact; `switchd.core.headroom` has the formulas.
"""

from collections.abc import Mapping
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from orchestrator.faults.fault import Figure
from switchd.compose import headrooms

KIND: Final = "wrong_headroom"
EVERYBODY: Final = "all"
TOWARDS: Final = (EVERYBODY, "nic", "t0", "t1")
"""The neighbours whose ports can be meant."""


def ports_meant(topology: Topology, switch: str, figures: Mapping[str, Figure]) -> list[int]:
    """The ports of a switch that the figures mean. Raises ConfigError when there is none."""
    ends = topology.ports(switch)
    found = [
        end.port
        for end in ends
        if figures["port"] in (None, end.port) and figures["towards"] in (EVERYBODY, end.towards)
    ]
    if not found:
        kinds = ", ".join(dict.fromkeys(end.towards for end in ends))
        raise ConfigError(KIND, f"{shown(switch)} has no such port", f"0 to {len(ends) - 1}, towards {kinds}")
    return found


def left_by_port(topology: Topology, switch: str, figures: Mapping[str, Figure]) -> dict[int, int]:
    """Port -> bytes of headroom that the fault leaves; empty for switches that are not lossless.

    Raises ConfigError for a headroom that is not smaller than the configured one.
    """
    ports, known = ports_meant(topology, switch, figures), headrooms(topology, switch)
    found: dict[int, int] = {}
    for port in ports if known else ():
        configured, exact = known[port]
        given, share = figures["headroom_bytes"], figures["of_exact_ppm"]
        left = given if isinstance(given, int) else exact * share // PPM if isinstance(share, int) else 0
        if left >= configured:
            what = f"{left} bytes are no less than the {configured} that port {port} of {switch} has"
            raise ConfigError(KIND, what, "a smaller one drops packets; a larger one has no room in the buffer")
        found[port] = left
    return found
