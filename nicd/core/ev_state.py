"""The state machine of one EV, as a table.

Owns which state follows from which trigger, and the section that says so. `ev_profile` and `probe` act on it (reserve
EVs, events, probes); `recovery` decides which losses accuse an EV.

MRC 1.0 11.2: GOOD, SKIP, ASSUMED_BAD, DENIED; only GOOD sends. Nothing is retired for good: ASSUMED_BAD comes back
by probes alone, DENIED by the controller alone.
"""

from enum import IntEnum
from typing import Final, NamedTuple


class EvState(IntEnum):
    """State of an EV; the values index counters."""

    GOOD = 0
    SKIP = 1
    ASSUMED_BAD = 2
    DENIED = 3


EV_STATES: Final = tuple(state.name.lower() for state in EvState)
"""As counters, events and reports spell them."""


class EvTrigger(IntEnum):
    """What can happen to an EV."""

    ECN = 0
    """A SACK for a packet on it said SKIP_ONCE."""
    ALWAYS_SKIP = 1
    """A SACK for a packet on it said ALWAYS_SKIP."""
    TRIM = 2
    """A packet on it was trimmed inside the fabric."""
    TRIM_LASTHOP = 3
    """A packet on it was trimmed on the last hop."""
    GAP = 4
    """A packet on it is lost by the evidence of SACKs."""
    TIMEOUT = 5
    """A packet on it is lost: no word of it for an RTO."""
    SCAN = 6
    """The scan reached it in SKIP and forgives it."""
    PROBED_CLEAR = 7
    """Enough probes were answered, the last one unmarked."""
    PROBED_MARKED = 8
    """Enough probes were answered, the last one marked."""
    DENY = 9
    """The controller bars it."""
    ALLOW = 10
    """The controller lifts the bar."""
    PATH = 11
    """Losses of other EVs on its path have shown that the path is dead."""


class Rule(NamedTuple):
    """One cell of the table: the state that follows, and where the rule stands."""

    target: EvState
    section: str


_G, _S, _B, _D = EvState.GOOD, EvState.SKIP, EvState.ASSUMED_BAD, EvState.DENIED

# Rows by trigger, columns GOOD, SKIP, ASSUMED_BAD, DENIED.
_ROWS: Final = {
    # MRC 1.0 11.2: congestion on the path, leave it out for a turn; late news does not excuse a bad EV.
    EvTrigger.ECN: ((_S, _S, _B, _D), "MRC 1.0 11.2"),
    # MRC 1.0 11.2: the peer asks to leave this EV out.
    EvTrigger.ALWAYS_SKIP: ((_B, _B, _B, _D), "MRC 1.0 11.2"),
    # MRC 1.0 11.2: NACK TRIMMED.
    EvTrigger.TRIM: ((_S, _S, _B, _D), "MRC 1.0 11.2"),
    # MRC 1.0 11.2: NACK TRIMMED_LASTHOP; the receiver is congested, no path is to blame.
    EvTrigger.TRIM_LASTHOP: ((_G, _S, _B, _D), "MRC 1.0 11.2"),
    # arXiv 2605.04333 section 2: a loss without a trim means a broken path.
    EvTrigger.GAP: ((_B, _B, _B, _D), "MRC 1.0 11.2"),
    EvTrigger.TIMEOUT: ((_B, _B, _B, _D), "MRC 1.0 11.2"),
    EvTrigger.PATH: ((_B, _B, _B, _D), "arXiv 2605.04333 2"),
    # MRC 1.0 11.2.2: forgiveness needs no probe.
    EvTrigger.SCAN: ((_G, _G, _B, _D), "MRC 1.0 11.2.2"),
    # MRC 1.0 11.2: only probes bring an EV back.
    EvTrigger.PROBED_CLEAR: ((_G, _S, _G, _D), "MRC 1.0 11.2"),
    EvTrigger.PROBED_MARKED: ((_G, _S, _S, _D), "MRC 1.0 11.2"),
    # Controller API: deny and allow.
    EvTrigger.DENY: ((_D, _D, _D, _D), "controller"),
    EvTrigger.ALLOW: ((_G, _S, _B, _G), "controller"),
}

TABLE: Final[dict[tuple[EvState, EvTrigger], Rule]] = {
    (state, trigger): Rule(targets[state], section)
    for trigger, (targets, section) in _ROWS.items()
    for state in EvState
}
"""Every state meets every trigger: the full product."""


def step(state: EvState, trigger: EvTrigger) -> Rule:
    """The state after `trigger`, and the section that says so."""
    return TABLE[state, trigger]
