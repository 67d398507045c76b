"""The states of a QP, and which may follow which.

Owns the table; `qp` does what the states require. MRC 1.0 section 3: RESET -> INIT -> RTR -> RTS -> ERROR; RTR
receives, RTS sends too.
"""

from enum import IntEnum
from typing import Final


class QpState(IntEnum):
    """States of a QP."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    ERROR = 4


QP_STATES: Final = tuple(state.name.lower() for state in QpState)
"""Names of the states in counters."""

# MRC 1.0 section 3, controller API.
NEXT_STATES: Final[dict[QpState, tuple[QpState, ...]]] = {
    QpState.RESET: (QpState.INIT,),
    QpState.INIT: (QpState.RTR, QpState.ERROR),
    QpState.RTR: (QpState.RTS, QpState.ERROR),
    QpState.RTS: (QpState.ERROR,),
    QpState.ERROR: (),
}
