"""Every row of the page, in its order."""

from typing import Final

from studies.systems import (
    claims,
    dcqcn,
    deadlock,
    flaps,
    hashing,
    infiniband,
    link_retry,
    moved_flows,
    outages,
    pauses,
    recovery,
    route_timers,
    routing,
    spraying,
)
from studies.systems.gates import GATES
from studies.systems.row import Row

_ORDER: Final = ("G1", "G2", "G3", "G4", "G5", "E1", "E2", "E4", "E5", "P1", "P2", "P3", "P4", "P5", "P6", "P7",
                 "D1", "D2", "D3", "D4", "U1", "U2", "U3", "U4", "U5", "U6",
                 "I1", "I2", "I3", "I4", "I5", "I6", "L1", "B1", "B2", "B3", "B4", "B5", "J1", "J2", "J3")  # fmt: skip
_MODULES: Final = (
    recovery, hashing, pauses, deadlock, dcqcn, spraying, infiniband, link_retry, routing, moved_flows,
    route_timers,     outages, flaps,
)  # fmt: skip
_ROWS: Final = {row.id: row for module in _MODULES for row in module.ROWS}
ROWS: Final[tuple[Row, ...]] = tuple(_ROWS[name] for name in _ORDER)
TABLE: Final = claims.ROWS

__all__ = ["GATES", "ROWS", "TABLE"]
