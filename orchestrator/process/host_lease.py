"""The lease of a host: how long it, and its orchestrator, go on without a word of each other.

Owns the setting, its bounds and its defaults. A fabric whose hosts do not hear each other stands still; who keeps count
is `orchestrator.hosts.share_agent` on one side, `remote_share` and `cluster` on the other.
"""

from typing import Final

from mrcfabric.errors import ConfigError

LEASE_S: Final = 15.0
"""The default where somebody waits for the fabric: a run, or `up` in the foreground."""
LEASE_DETACHED_S: Final = 600.0
"""The default of a fabric that was left behind: a network may be away for long, and nobody is there to start anew."""
LEASE_S_MIN: Final = 5.0
"""Less than a connection takes to notice that it is cut would give hosts up for a hiccup."""
LEASE_S_MAX: Final = 86_400.0
HUNG_UP_S: Final = 15.0
"""A leader whose own kernel has closed the conversation has ended, unless it calls again within this; the lease is for
one that is silent."""
UNHEARD_S: Final = 3.0
"""A leader that says nothing for so long is not there: another launch may take the host over."""


def lease_of(asked_s: float | None, *, detached: bool) -> float:
    """The lease of a launch, in seconds; None: the default. Raises ConfigError."""
    if asked_s is None:
        return LEASE_DETACHED_S if detached else LEASE_S
    if not LEASE_S_MIN <= asked_s <= LEASE_S_MAX:
        raise ConfigError(f"--lease {asked_s:g}", "will not do", f"{LEASE_S_MIN:g} to {LEASE_S_MAX:,.0f} seconds")
    return asked_s


def beat_s(lease_s: float) -> float:
    """How often a share looks whether its lease has run out, and its leader says a word."""
    return min(1.0, lease_s / 4)
