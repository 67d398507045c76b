"""What it costs a NIC's daemon to say what it counts, and the agent to make a page of it.

The NIC has 64 QPs with 256 EVs each to 63 peers over 8 planes, all EVs spread over their states as after a bad day.
`counters_us` is the daemon's share of a scrape (the core's counters and their packing), `glance_us` that of a look,
`walk_us` what counting the EVs one by one would take alone. `render_us` is the agent's share: it stalls no data path.
"""

import time
from collections.abc import Callable
from typing import Any

import msgpack

from bench.measure import Figure, repeat, rounded
from mrcfabric.metrics import families, text
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp
from nicd.core.ev_state import EvTrigger
from nicd.core.mrc.ev_profile import EvProfile
from nicd.metrics import DEFINITIONS
from nicd.programs.hosted_nic import HostedNic

QPS = 64
RUNS = 9
CALLS = 40
_TRIGGERS = (EvTrigger.SCAN, EvTrigger.ECN, EvTrigger.GAP, EvTrigger.DENY)


def loaded_nic() -> HostedNic:
    """The NIC, connected and battered."""
    topology = Topology(planes=8, t0_per_plane=8, t1_per_plane=4, nics_per_t0=8, evs_per_qp=192, reserve_evs_per_qp=64)
    nic = HostedNic(nic_config(topology, "h000"))
    inputs: list[Input] = []
    for number in range(QPS):
        for command in (CreateQp(0, 100 + number), ConnectQp(0, 100 + number, 1 + number % 63, 100, 0, 0)):
            inputs.append(Input(1, Rank.COMMAND, 0, len(inputs), command))
    nic.advance(inputs, 1_000)
    for profile in profiles(nic):
        for index in range(len(profile.evs)):
            profile.feedback(1_000, index, _TRIGGERS[index % len(_TRIGGERS)], 1_000)
    nic.drain_events()
    return nic


def profiles(nic: HostedNic) -> list[EvProfile]:
    """The EVs of every QP."""
    return [qp.link.profile for qp in nic._transport.qps.values() if qp.link is not None]


def run() -> dict[str, Any]:
    """The figures."""
    nic = loaded_nic()
    page = {"core": nic.counters(), "programs": nic.host.counters()}

    def render() -> bytes:
        return text(families(DEFINITIONS, "bench", "h000", page))

    measured = {
        "counters_us": _cpu_us(lambda: msgpack.packb(nic.counters())),
        "glance_us": _cpu_us(lambda: msgpack.packb(nic.glance(nic.host.glance()))),
        "walk_us": _cpu_us(lambda: [profile.counts() for profile in profiles(nic)]),
        "render_us": _cpu_us(render),
    }
    found: dict[str, Any] = {name: rounded(figure.median) for name, figure in measured.items()}
    return found | {
        "detail": {name: figure.record() for name, figure in measured.items()},
        "ratio_walk": rounded(measured["counters_us"].median / measured["walk_us"].median),
        "answer_bytes": len(msgpack.packb(nic.counters())),
        "page_bytes": len(render()),
    }


def _cpu_us(work: Callable[[], Any]) -> Figure:
    def once() -> float:
        started_ns = time.process_time_ns()
        for _ in range(CALLS):
            work()
        return (time.process_time_ns() - started_ns) / CALLS / 1000

    return repeat(RUNS, once)
