"""A measurement as text: a line per round, and the verdict."""

from typing import Any, Final

from orchestrator.measures.run_counters import AFTER_DESTROY

_HEAD: Final = (
    f"{'round':>5} {'size':>9} {'senders':>7} {'Gb/s':>9} {'of line':>8} {'slowest':>8} "
    f"{'p50 us':>9} {'p99 us':>9} {'max us':>9}  {'retx':>5} {'drops':>5}"
)


def head(evs: bool) -> str:
    """The line above all rounds; `evs`: whether the NICs have EVs, which have columns of their own."""
    return f"{_HEAD} {'bad EV':>6} {'skips':>6}" if evs else _HEAD


def round_line(record: dict[str, Any], evs: bool) -> str:
    """One round under `head`."""
    latency = record["latency_ns"]
    return (
        f"{record['round']:>5} {record['size_bytes']:>9} {record['senders']:>7} {record['goodput_gbps']:>9.1f} "
        f"{record['line_share']:>8.1%} {record['slowest_gbps']:>8.1f} "
        f"{latency['p50'] / 1000:>9.1f} {latency['p99'] / 1000:>9.1f} {latency['max'] / 1000:>9.1f}  "
        f"{record['retransmits']:>5} {record['drops']:>5}"
        + (f" {record['ev_transitions']:>6} {record['ev_skips']:>6}" if evs else "")
    )


def _late(data: dict[str, Any]) -> list[str]:
    """What NICs dropped because it came for a QP that a process had destroyed at its end: control packets."""
    late = {reason: count for reason, count in data.get("drops", {}).items() if reason in AFTER_DESTROY}
    named = ", ".join(f"{count:,} {reason}" for reason, count in late.items())
    return [f"dropped, because their QPs were gone: {named}"] if late else []


def summary(data: dict[str, Any]) -> str:
    """Totals, fidelity and verdict."""
    totals, fidelity = data["totals"], data["fidelity"]
    verified = f"{totals['bytes_verified']:,} bytes verified, {totals['data_packets']:,} data packets"
    marks = f"{totals['ecn_marks']:,} ECN marks, {totals['trims']:,} trims"
    faith = f"{fidelity['frames']:,} frames, {fidelity['late_share']:.4%} late, {fidelity['host_drops']} host drops"
    pace = f"dilation {fidelity['dilation_effective'] or 0:,.0f}, {data['wall_s']:.1f} s of wall time"
    lines = [f"{verified}, {marks}", *_late(data), f"{faith}, {pace}", f"verdict: {data['verdict'].upper()}"]
    return "\n".join([*lines, *(f"  {reason}" for reason in data["reasons"])])
