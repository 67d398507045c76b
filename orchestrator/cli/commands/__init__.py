"""The subcommands of `mrcfabric`, one module per family; `register(app)` of a module adds its commands."""

from typing import Final

MODULES: Final[dict[str, tuple[str, ...]]] = {
    "capture": ("capture",),
    "compare": ("compare",),
    "doctor": ("doctor",),
    "up": ("fabric",),
    "status": ("fabric",),
    "down": ("fabric",),
    "logs": ("fabric",),
    "events": ("look",),
    "manifests": ("manifests",),
    "mapper": ("mapper",),
    "pauses": ("pauses",),
    "plan": ("plan",),
    "run": ("run",),
    "share": ("share",),
    "sweep": ("sweep",),
    "systems": ("systems",),
    "top": ("top",),
    "trace": ("trace",),
    "validate": ("validate",),
    "web": ("web",),
    "demo": ("work",),
    "perf": ("work",),
    "send": ("work",),
    "ev": ("ev", "ev_profile"),
    "fault": ("fault",),
    "host": ("host",),
    "nic": ("nic",),
    "packet": ("packet", "packet_walk"),
    "switch": ("switch",),
    "work": ("workload",),
}
"""Modules of each command, in the order of `mrcfabric --help`. The first registers it, a second adds to its group."""
