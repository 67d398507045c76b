"""The op results about a switch as rows for an operator: its ports with their queues, and its table.

Owns the contents of the rows. `mrcfabric.egress` and `switchd.core` count; the table itself never changes. The figures
come from the core as they are at this instant.
"""

from typing import Any

from mrcfabric.egress_queues import EgressQueues
from mrcfabric.impairment import LOSS_REASONS
from switchd.core.fib import usid_counters
from switchd.core.lossless import LosslessSwitch
from switchd.core.switch import Switch


def port_rows(switch: Switch) -> list[dict[str, Any]]:
    """One row per port: its peer, its settings, its two queues, its faults; `classes` that are lossless by number."""
    towards = switch.config.towards or ("",) * len(switch.egress)
    both = zip(switch.egress, towards, strict=True)
    rows = [{"port": port.port, "towards": kind, **port_row(port)} for port, kind in both]
    if isinstance(switch, LosslessSwitch):
        for row, classes in zip(rows, switch.class_counters().values(), strict=True):
            row["classes"] = {str(cls): counts for cls, counts in classes.items()}
    return rows


def port_row(port: EgressQueues) -> dict[str, Any]:
    """One port. Trimmed packets leave the data queue, and the control queue sends or drops them."""
    config = port.config
    counters = port.counters()
    ecn_min_bytes, ecn_max_bytes = port.ecn_thresholds
    return {
        "rate_bps": config.rate_bps,
        "trim": port.trim,
        "trim_bytes": config.trim_bytes,
        "trim_dscp": port.trim_dscp,
        "ecn": port.ecn,
        "ecn_min_bytes": ecn_min_bytes,
        "ecn_max_bytes": ecn_max_bytes,
        "control_share_ppm": config.control_share_ppm,
        "impairment": port.impairment.settings(),
        "touched": port.touched,
        "held": port.held,
        "lost": {reason: port.drops[reason] for reason in LOSS_REASONS},
        "data": {
            "bytes_max": config.data_bytes_max,
            "sent_packets": port.data_packets,
            "sent_bytes": port.data_sent_bytes,
            "waiting_packets": counters["data_waiting"],
            "waiting_bytes": port.data_bytes,
            "peak_bytes": port.data_bytes_peak,
            "dropped": port.drops["data_full"],
            "marked": port.marks,
            "trimmed": port.trimmed,
        },
        "control": {
            "bytes_max": config.control_bytes_max,
            "sent_packets": port.control_packets,
            "sent_bytes": port.control_sent_bytes,
            "waiting_packets": counters["control_waiting"],
            "waiting_bytes": port.control_bytes,
            "peak_bytes": port.control_bytes_peak,
            "dropped": port.drops["control_full"],
            "trimmed_dropped": port.drops["trimmed_full"],
            "trim_admitted": port.trim_admitted,
            "trim_dropped": port.trim_dropped,
            "held": port.control_held,
        },
    }


def usid_rows(switch: Switch) -> list[dict[str, Any]]:
    """One row per entry of the table: uSID, `uN` or `uA`, port, packets and bytes."""
    config = switch.config
    counted = usid_counters(switch.doors)
    return [
        {"usid": usid, "kind": kind, "port": port, **counted[usid]}
        for kind, table in (("uN", config.fib), ("uA", config.adjacency))
        for usid, port in sorted(table.items())
    ]
