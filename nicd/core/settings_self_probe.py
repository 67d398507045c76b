"""Knobs of the self-addressed probes, by which a NIC tests the links around it.

arXiv 2605.04333 8 names a test of every link each millisecond, also without a job, and no further figure.
Owns names, units, defaults and bounds; relations between knobs are `nicd.core.settings`'.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

SELF_PROBE_PERIOD_NS_MIN: Final = 1_000
"""Rounds that come faster are a load and no test."""

LOOP_PROBES_MAX: Final = 65_536
"""Probes round one loop."""


@dataclass(frozen=True)
class SelfProbeKnobs:
    """How a NIC sends packets to itself."""

    self_probe_period_ns: int = 0
    """One round of self probes per this time from the start on, each way of the round once. 0: none until a command
    asks for them, which is the default, because a fabric that probes is never idle and so never sleeps."""
    self_probe_timeout_ns: int = 0
    """A self probe that has not come back by then is lost. Default 16 base RTT: it may meet full queues on its four
    links, and a late one must not make a link look lossy."""
    self_probe_bytes: int = 0
    """Payload of a self probe; 0: the MTU, so that a link that loses large packets only is found too."""
    self_probe_testers: int = 2
    """NICs below a T0 that try each of its T0-T1 links in a round. Two: with one, a NIC that is itself cut off would
    leave links that nobody has tried; each further one costs as many probes again."""
    self_probes_outstanding_max: int = 8192
    """Self probes waiting to come back; beyond it a way is passed over, and counted as such."""


DERIVED: Final[dict[str, float]] = {"self_probe_timeout_ns": 16.0}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {"self_probe_period_ns": 0, "self_probe_bytes": 0}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {"self_probe_bytes": 4096, "self_probes_outstanding_max": 1 << 20}
"""Largest value where there is one."""
CHOICES: Final[dict[str, Collection[str]]] = {}
"""What a knob that is a name may be."""
