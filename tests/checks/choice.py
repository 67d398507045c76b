"""One row of the table of choices, what kinds of gaps there are, and where settings live."""

from typing import NamedTuple

WIRE = "mrcfabric.wire.options:WireOptions."
DSCP = "mrcfabric.wire.dscp:Dscp."
NIC = "nicd.core.settings:NicSettings."
SWITCH = "switchd.core.settings:SwitchSettings."
TOPOLOGY = "mrcfabric.topology:Topology."

UNKNOWN = "not public"
CONFLICT = "sources conflict"
OPTION = "left to deployment"
DEVIATION = "deviation"
NOT_DONE = "not implemented"


class Choice(NamedTuple):
    """One row of the table."""

    subject: str
    kind: str
    done: str
    settings: tuple[str, ...] = ()
    """`module:Class.field` each; none where there is nothing to set."""


def of(prefix: str, *names: str) -> tuple[str, ...]:
    """Settings of one class, by name."""
    return tuple(prefix + name for name in names)
