"""The counters of a switch as nested dictionaries of plain integers, and their names.

Conservation, at any instant:

- received = packets dropped for one of `DROP_REASONS` + packets that reached a port. Where uSIDs are forwarded by, the
  packets of all uSIDs together are those that reached a port.
- Per port: packets that reached it = departures (`packets`) + waiting (`data_waiting`, `control_waiting`) + its drops
  in `mrcfabric.egress.REFUSALS`.
- Of the departures, those among its drops in `mrcfabric.impairment.LOSS_REASONS` never arrive, and those `touched` as
  duplicated arrive twice.

The same holds for the sums over the ports.
"""

from typing import Any, Final

from mrcfabric.egress import DROP_REASONS as PORT_DROP_REASONS
from mrcfabric.egress_queues import EgressQueues
from mrcfabric.impairment import TOUCHES
from switchd.core.buffer import DROPS as BUFFER_DROPS
from switchd.core.settings import SwitchConfig

DROP_REASONS: Final = (
    "short",
    "not_ipv6",
    "unknown_block",
    "not_own_usid",
    "no_usid_left",
    "unknown_usid",
    "hop_limit",
    "bad_srh",
    "frozen",
    "no_route",
    "link_control",
    *BUFFER_DROPS,
)
"""Why a packet never reaches a queue; `mrcfabric.egress.DROP_REASONS` has the queues' own reasons."""

_SUMMED: Final = (
    "packets",
    "bytes",
    "control_packets",
    "control_sent_bytes",
    "control_held",
    "marks",
    "trimmed",
    "trim_admitted",
    "trim_dropped",
    "refused_bytes",
    "data_bytes",
    "control_bytes",
    "data_waiting",
    "control_waiting",
)
_PEAKS: Final = ("data_bytes_peak", "control_bytes_peak")


def switch_counters(
    received: int,
    drops: dict[str, int],
    egress: tuple[EgressQueues, ...],
    config: SwitchConfig,
    usids: dict[int, dict[str, int]],
) -> dict[str, Any]:
    """All counters of a switch, by these keys.

    `received`; `drops` {reason: count} of the whole switch, ports included; `ports` {number: counters}; `usids` {uSID:
    packets and bytes} by entry of the table; the sums over all ports of their counters and gauges, including `touched`
    {what: count}, and the greatest of their peaks.

    A port's entry has `towards` (nic, t0 or t1) and `peer` (a name) if the configuration gives them, `rate_bps` as it
    was built, and `up`, 0 while its direction of the link lets nothing pass.
    """
    ports: dict[int, dict[str, Any]] = {
        port.port: {**port.counters(), "rate_bps": port.config.rate_bps, "up": int(port.impairment.up)}
        for port in egress
    }
    for number, kind in enumerate(config.towards):
        ports[number]["towards"] = kind
    for number, peer in enumerate(config.peers):
        ports[number]["peer"] = peer
    rows = list(ports.values())
    total = {**drops, **_sums([port.drops for port in egress], PORT_DROP_REASONS)}
    counters: dict[str, Any] = {"received": received, "drops": total, "ports": ports, "usids": usids}
    counters["touched"] = _sums([row["touched"] for row in rows], TOUCHES)
    counters.update(_sums(rows, _SUMMED))
    for name in _PEAKS:
        counters[name] = max([row[name] for row in rows], default=0)
    return counters


def _sums(rows: list[dict[str, Any]], names: tuple[str, ...]) -> dict[str, int]:
    """The sum of each of these counts over the rows."""
    found: dict[str, int] = {}
    for name in names:
        # Written out: a generator costs compiled code more than the rows of a small switch.
        count: int = 0
        for row in rows:
            count += row[name]
        found[name] = count
    return found
