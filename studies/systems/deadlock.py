"""Row P5: pauses that wait for one another round a ring of switches, and what ends them.

Every link of the ring carries two flows of two hops, one that begins behind it and one that came from the switch
before. So each switch fills with packets for the next one, asks the one before to wait, and is asked by the next.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mrcfabric.topology import Setting
from studies.flows import START_NS, Flow
from studies.systems.bench_fabric import CONTROL_DSCP, fabric
from studies.systems.ring_fabric import RingFabric
from studies.systems.row import Finding, Row, at_least, near, seen
from studies.trial import Trial

_US: Final = 1_000
_MS: Final = 1_000_000
_STOP_NS: Final = 1 * _MS
"""When senders end, long after the ring stands still."""
_NIC: Final[Mapping[str, Setting]] = {"transport": "rc", "cc": "none", "rc_timeout": 0}
_DROPPING: Final[Mapping[str, Setting]] = {"forwarding": "ecmp", "ecn": False, "trim": False, "trim_last_hop": False}
_MESSAGES: Final = 64
_WATCHDOG_NS: Final = 300 * _US


class Cycle(NamedTuple):
    """One point."""

    switches: int = 3
    xoff_bytes: int = 200_000
    apart_ns: int = 700
    """Between the begins of senders."""
    rate_bps: int = 100_000_000_000
    delay_ns: int = 1_000


def _pfc(point: Cycle, watchdog_ns: int = 0) -> dict[str, Setting]:
    return {
        **_DROPPING, "lossless": "pfc", "pfc_threshold": "static", "pfc_xoff_bytes": point.xoff_bytes,
        "pfc_watchdog_ns": watchdog_ns,
    }  # fmt: skip


def _ring(point: Cycle, switch: Mapping[str, Setting], *, line: bool = False) -> RingFabric:
    made = RingFabric(
        point.switches, nic=_NIC, switch=switch, dscp=CONTROL_DSCP, line=line, rate_bps=point.rate_bps,
        link_delay_ns=point.delay_ns,
    )  # fmt: skip
    made.start(_MESSAGES, 10 * _US, point.apart_ns)
    made.stop(_STOP_NS)
    return made


def measure_cycle(point: Cycle) -> Sequence[Finding]:
    """P5: the ring with pauses, with a cable missing, without pauses; a tree with pauses; the ring with a watchdog."""
    at = f"{point.switches} switches, XOFF {point.xoff_bytes:,}, {point.rate_bps // 10**9} Gb/s, {point.delay_ns} ns"
    ring = _ring(point, _pfc(point))
    then, stopped, later = (ring.run(at_ns) for at_ns in (_STOP_NS // 2, _STOP_NS, 4 * _STOP_NS))
    line = _ring(point, _pfc(point), line=True)
    line_then, line_later = line.run(_STOP_NS // 2), line.run(4 * _STOP_NS)
    drops = _ring(point, _DROPPING).run(4 * _STOP_NS)
    watched = _ring(point, _pfc(point, _WATCHDOG_NS))
    watched_then, watched_later = watched.run(_WATCHDOG_NS), watched.run(4 * _STOP_NS)
    cut, free, dog = f"{at}, a cable missing", f"{at}, no PFC", f"{at}, watchdog of 0.3 ms"
    return (
        near(f"{at}: bytes placed in the last half of the senders' time", 0.0, stopped.placed - then.placed, 0.0, 0),
        at_least(f"{at}: bytes that wait 3 ms after the senders' end", 1.0, later.held, 0),
        near(f"{at}: switches that then ask the one before to wait", point.switches, ring.paused(), 0.0, 0),
        near(f"{at}: packets lost", 0.0, later.dropped, 0.0, 0),
        at_least(f"{cut}: bytes placed after the first half", 1.0, line_later.placed - line_then.placed, 0),
        near(f"{cut}: bytes that wait in the end", 0.0, line_later.held, 0.0, 0),
        at_least(f"{free}: packets lost", 1.0, drops.dropped, 0),
        near(f"{free}: bytes that wait in the end", 0.0, drops.held, 0.0, 0),
        near(f"{at}, T0s and a T1: messages that do not end", 0.0, _left_in_tree(point), 0.0, 0),
        at_least(f"{dog}: bytes placed after it", 1.0, watched_later.placed - watched_then.placed, 0),
        near(f"{dog}: bytes that wait in the end", 0.0, watched_later.held, 0.0, 0),
        seen(f"{dog}: pauses that it ended", watched.storms(), 0),
        seen(f"{dog}: packets lost", watched_later.dropped, 0),
    )


def _left_in_tree(point: Cycle) -> float:
    """Messages that do not end where each T0 has one up-link, and two NICs that send to the T0 after the next one."""
    topology = fabric(
        "tree", 2, 1, t0_per_plane=point.switches, nic=_NIC, switch=_pfc(point), dscp=CONTROL_DSCP,
        rate_bps=point.rate_bps, link_delay_ns=point.delay_ns,
    )  # fmt: skip
    total = topology.nics
    flows = tuple(Flow(nic, (nic + 4) % total, 1 << 20, 2, start_ns=START_NS + nic * point.apart_ns)
                  for nic in range(total))  # fmt: skip
    # Every up-link has two flows of two messages; four times as long is enough for both.
    deadline_ns = START_NS + 4 * 4 * (8 << 20) * 10**9 // point.rate_bps
    outcome = Trial(topology, flows, deadline_ns=deadline_ns).run()
    return float(sum(flow.time_ns is None for flow in outcome.flows))


ROWS: Final = (
    Row(
        "P5", "A ring of switches", "PFC: deadlock that outlasts its sources; without PFC, without the ring and in a "
        "tree: none", "closed form: a cycle of buffers that wait for one another", "none",
        "Lossless switches of the daemons wired in a ring with static tables (`studies/systems/ring_fabric.py`), below "
        "each a NIC that sends to the switch after the next one, for 1 ms, and one that receives.",
        (Cycle(), Cycle(4), Cycle(5), Cycle(xoff_bytes=20_000), Cycle(xoff_bytes=1_000_000), Cycle(apart_ns=40_000),
         Cycle(rate_bps=25_000_000_000), Cycle(delay_ns=3_000)), measure_cycle,
    ),
)  # fmt: skip
