"""What a look shows of a NIC with the RC transport, and the sums of all of them.

Pure. `mrcfabric.glance.RcGlance` has what a NIC tells.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, cast

from mrcfabric.glance import NicRest, RcGlance
from mrcfabric.topology import Topology
from nicd.core.qp_state import QP_STATES
from orchestrator.live.snapshot import NicView, RcView
from orchestrator.live.track import Track

Path: TypeAlias = Literal["ecmp", "pinned", "lid"]

_SUMMED: Final = (
    "cnps_sent_per_s", "cnps_received_per_s", "naks_sent_per_s", "naks_received_per_s", "retransmitted_bytes", "slowed",
)  # fmt: skip


def rc_path(topology: Topology) -> Path | None:
    """What chooses the paths of QPs in a fabric of RC NICs; None for others."""
    if topology.nic.get("transport") != "rc":
        return None
    return cast("Path", topology.nic.get("rc_path", "ecmp"))


def rc_view(track: Track[NicRest], rest: NicRest, path: Path) -> RcView:
    """Make the view of one NIC; `rest`: its present state, which of a dead one is empty."""
    now = _glance(rest, len(rest.placed))
    done, before = _glance(track.rest, len(rest.placed)), _glance(track.rest_before, len(rest.placed))
    qps = sum(now.ports)
    return RcView(
        states=dict(zip(QP_STATES, now.states, strict=True)),
        path=path,
        ports=tuple(now.ports),
        rate_bps_min=float(now.rate_bps_min),
        rate_bps_mean=now.rate_bps_sum / qps if qps else 0.0,
        slowed=now.slowed,
        cnps_sent_per_s=track.rate(done.cnps_sent - before.cnps_sent),
        cnps_received_per_s=track.rate(done.cnps_received - before.cnps_received),
        naks_sent_per_s=track.rate(done.naks_sent - before.naks_sent),
        naks_received_per_s=track.rate(done.naks_received - before.naks_received),
        retransmitted_bytes=done.retransmitted_bytes - before.retransmitted_bytes,
    )


def rc_sums(nics: Iterable[NicView]) -> dict[str, Any] | None:
    """All RC NICs together: QPs by state and by plane, sums, rates, the greatest paused share; None without any.

    The keys are those of `RcView`, and `paused_max`.
    """
    both = [(nic, nic.rc) for nic in nics if nic.rc is not None]
    if not both:
        return None
    views = [view for _, view in both]
    states: Counter[str] = Counter()
    for view in views:
        states.update(view.states)
    ports = [sum(column) for column in zip(*(view.ports for view in views), strict=True)]
    rates = [view.rate_bps_min for view in views if any(view.ports)]
    sums = {name: sum(getattr(view, name) for view in views) for name in _SUMMED}
    whole = sum(view.rate_bps_mean * sum(view.ports) for view in views)
    return {
        "states": {state: states[state] for state in QP_STATES},
        "path": views[0].path,
        "ports": ports,
        "rate_bps_min": min(rates, default=0.0),
        "rate_bps_mean": whole / sum(ports) if sum(ports) else 0.0,
        **sums,
        "paused_max": max(max(nic.paused, default=0.0) for nic, _ in both),
    }


def _glance(rest: NicRest, planes: int) -> RcGlance:
    if not rest.rc:
        return RcGlance([0] * len(QP_STATES), [0] * planes, 0, 0, 0, 0, 0, 0, 0, 0)
    return RcGlance(*rest.rc)
