"""The sums of all RC NICs (`orchestrator.live.rc_view`) in words, for `mrcfabric status` and `top`. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from mrcfabric.units import GBPS

_PATHS: Final = {"ecmp": "by ECMP", "pinned": "pinned", "lid": "by LID"}


def rc_text(sums: Mapping[str, Any]) -> list[str]:
    """The sums of `rc_sums` in words: QPs and rates; notifications, NAKs and pauses."""
    states = ", ".join(f"{count:,} {state}" for state, count in sums["states"].items() if count) or "none"
    ports = " ".join(map(str, sums["ports"]))
    rates = f"rate {sums['rate_bps_mean'] / GBPS:.1f} Gb/s mean, {sums['rate_bps_min'] / GBPS:.1f} least"
    sent = f"CNPs {sums['cnps_sent_per_s']:,.0f}/s  NAKs {sums['naks_sent_per_s']:,.0f}/s"
    again = f"sent again {sums['retransmitted_bytes']:,} B  paused at most {sums['paused_max']:.0%}"
    sent = f"CNPs {sums['cnps_sent_per_s']:,.0f}/s  NAKs {sums['naks_sent_per_s']:,.0f}/s"
    again = f"sent again {sums['retransmitted_bytes']:,} B  paused at most {sums['paused_max']:.0%}"
    return [
        f"QPs {states}; paths {_PATHS[sums['path']]}, by plane {ports}; {rates}, {sums['slowed']:,} slowed",
        f"{sent}  {again}",
    ]
