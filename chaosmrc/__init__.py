"""mrcfabric for the Chaos Toolkit: actions, probes and a control over a fabric that runs on this host.

    {"type": "python", "module": "chaosmrc.actions", "func": "inject_fault",
     "arguments": {"kind": "link_down", "names": ["p0-t0-0~p0-t1-*"]}}

An experiment names its fabric under `configuration` by `mrcfabric_name` or `mrcfabric_run_dir`. It needs neither when
only one fabric runs. Faults belong to the experiment: they are healed when it ends, however it ends.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chaoslib.types import Discovery

__all__ = ["__version__", "discover"]

__version__ = "0.1.0"


def discover(discover_system: bool = True) -> "Discovery":
    """What `chaos discover chaosmrc` shows: every action and probe with its arguments."""
    from chaoslib.discovery.discover import discover_actions, discover_probes, initialize_discovery_result

    discovery = initialize_discovery_result("chaosmrc", __version__, "mrcfabric")
    discovery["activities"].extend(discover_actions("chaosmrc.actions"))
    discovery["activities"].extend(discover_probes("chaosmrc.probes"))
    return discovery
