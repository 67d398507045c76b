"""The lease of a host: how long the host and its leader go on without hearing each other.

Owns the setting, its bounds and its defaults. A fabric stands still while its hosts do not hear each other.
`orchestrator.hosts.share_agent` keeps the lease on one side, `remote_share` and `cluster` on the other.
"""

from typing import Final

from mrcfabric.errors import ConfigError

LEASE_S: Final = 15.0
"""The default where somebody waits for the fabric: a run, or `up` in the foreground."""
LEASE_DETACHED_S: Final = 600.0
"""The default of a detached fabric: its network may be away for long, and nobody is there to start it again."""
LEASE_S_MIN: Final = 5.0
"""More than a connection takes to notice that it is cut. A shorter lease would give hosts up for a short outage."""
LEASE_S_MAX: Final = 86_400.0
HUNG_UP_S: Final = 15.0
"""A leader that closed the connection has ended unless it calls again within this. The lease is for a silent one."""
UNHEARD_S: Final = 3.0
"""After so long without a word from its leader, a host may be taken over by another launch."""


def lease_of(asked_s: float | None, *, detached: bool) -> float:
    """The lease of a launch, in seconds; None stands for the default. Raises ConfigError."""
    if asked_s is None:
        return LEASE_DETACHED_S if detached else LEASE_S
    if not LEASE_S_MIN <= asked_s <= LEASE_S_MAX:
        raise ConfigError(
            f"--lease {asked_s:g}s", "will not do", f"{LEASE_S_MIN:g}s to {LEASE_S_MAX:.0f}s of wall time"
        )
    return asked_s


def beat_s(lease_s: float) -> float:
    """How often a share checks its lease and its leader sends a beat, in seconds."""
    return min(1.0, lease_s / 4)
