"""Journeys as text for a terminal: a line that says what became of a packet, and a row for each hop."""

from collections.abc import Iterator

from mrcfabric.glance import SLOW_RECEIVER, STORM
from mrcfabric.units import NS_PER_US, Instant
from orchestrator.tracing.journey import Backlog, Hindsight, Hop, Journey, Pause, Way

_PAUSED = " " * 20
_HEAD = f"    {'here us':>14}  {'node':<10} {'in':>3} {'out':>3}  {'ahead: data':>11} {'control':>8}  {'leaves us':>14}"


def render(journey: Journey) -> str:
    """Format one journey, on several lines."""
    return "\n".join(_lines(journey))


def headline(journey: Journey) -> str:
    """Format in one line who sent what to whom, and what became of it."""
    qpn = "" if journey.source_qpn is None else f" QP {journey.source_qpn}"
    who = f"{journey.source}{qpn} > {journey.destination} QP {journey.destination_qpn}, PSN {journey.psn}"
    began = journey.began_ns
    if journey.placed_ns is None:
        came = _ending(journey.attempts[-1].way)
    else:
        came = f"placed after {_us(journey.placed_ns - began)} us"
    told = "" if journey.total_ns is None else f", acknowledged after {_us(journey.total_ns)} us"
    sent = len(journey.attempts)
    paused = f", paused for {_us(journey.paused_ns)} us of that" if journey.paused_ns else ""
    return f"{who}: {came}{told}{paused}" + (f", sent {sent} times" if sent > 1 else "")


def _lines(journey: Journey) -> Iterator[str]:
    yield headline(journey)
    for attempt in journey.attempts:
        way = attempt.way
        again = "" if not way.rtx else f" again ({way.cause or 'cause not seen'})"
        yield f"  sent{again} at {_us(way.sent_ns)} us: {_by(way)}, {way.size} bytes"
        yield from _way(way)
        if attempt.copies:
            yield f"    and {attempt.copies} more of it: a fault had doubled it"
        for answer in attempt.answers:
            what = _said(answer)
            yield f"  answered at {_us(answer.sent_ns)} us: {what}, {_by(answer)}"
            yield from _way(answer)
    for one in journey.learnt:
        yield _learnt(one)


def _learnt(one: Hindsight) -> str:
    """When a switch on the way of a lost packet knew better."""
    head = f"  {one.node} sent it to {one.towards} (port {one.port}) at {_us(one.sent_ns)} us"
    if one.knew_ns is None or one.left_ns is None:
        return f"{head}, and has not left that way since"
    source = f" from {one.peer}" if one.peer and one.by == "update" else ""
    knew, left = _us(one.knew_ns - one.sent_ns), _us(one.left_ns - one.sent_ns)
    return f"{head}; it knew {knew} us later by {one.by}{source}, and had written its table {left} us later"


def _way(way: Way) -> Iterator[str]:
    yield _HEAD
    for hop in way.hops:
        yield _row(hop)
        for pause in hop.pauses:
            yield from _pause(hop, pause)
    yield f"    {_ending(way)}"


def _row(hop: Hop) -> str:
    ports = f"{_or_dash(hop.ingress):>3} {_or_dash(hop.port):>3}"
    ahead = f"{hop.data_bytes:>11} {hop.control_bytes:>8}"
    leaves = "-" if hop.start_ns is None else _us(hop.start_ns)
    notes = [hop.verdict] if hop.verdict != "queued" else []
    notes += ["marked"] if hop.marked else []
    notes += hop.touched
    if hop.traffic_class is not None:
        notes.append(f"class {hop.traffic_class}")
    if hop.ecmp_members:
        notes.append(f"by hash 0x{hop.ecmp_hash:x} of ports {', '.join(map(str, hop.ecmp_members))}")
    row = f"    {_us(hop.at_ns):>14}  {hop.node:<10} {ports}  {ahead}  {leaves:>14}"
    return f"{row}  {', '.join(notes)}".rstrip()


def _pause(hop: Hop, pause: Pause) -> Iterator[str]:
    """Who paused the class, for how long of the wait, and why."""
    told_ns = hop.pauses[-1].until_ns if hop.start_ns is None else hop.start_ns
    waited = f"{_us(told_ns - hop.at_ns)} us" + (" so far" if hop.start_ns is None else "")
    length = _us(pause.until_ns - pause.since_ns)
    who = f"class {hop.traffic_class} paused by {pause.by}"
    yield f"{_PAUSED}{who} for {length} of {waited}, from {_us(pause.since_ns)} us"
    if not pause.causes:
        yield f"{_PAUSED}  {pause.by} has not told why"
    for cause in pause.causes:
        yield f"{_PAUSED}{'  ' * (cause.depth + 1)}{cause.node}: {_reason(cause)}"


def _reason(cause: Backlog) -> str:
    """Why a node asked its neighbour to pause."""
    if cause.why == STORM:
        return f"pauses {cause.towards} without a reason"
    if cause.why == SLOW_RECEIVER:
        return f"{cause.bytes:,} bytes wait for its host, which takes them more slowly than they come"
    ports = [
        f"{one.bytes:,} of them for port {one.port} to {one.towards}"
        + ("" if one.paused_since_ns is None else f", paused by it since {_us(one.paused_since_ns)} us")
        for one in cause.waits
    ]
    over = f"{cause.bytes:,} bytes from {cause.towards} (port {cause.port}) over XOFF at {_us(cause.at_ns)} us"
    return "; ".join([over, *ports])


def _by(way: Way) -> str:
    """What names the path of a packet."""
    if way.dlid is not None:
        return f"LID {way.dlid}, port {way.plane}"
    if way.ev is None:
        return f"source port {way.sport}, port {way.plane}"
    return f"EV 0x{way.ev:08x}, plane {way.plane}"


def _ending(way: Way) -> str:
    at = "" if way.end_ns is None else f" at {_us(way.end_ns)} us"
    if way.outcome == "taken":
        return f"{'arrived' if way.what == 'taken' else way.what} at {way.where}{at}"
    if way.outcome == "unseen":
        return f"never seen at {way.where}"
    if way.outcome == "untold":
        return f"out of sight at {way.where}: {way.what}"
    if way.outcome == "waiting":
        return f"still waiting at {way.where}"
    if way.outcome == "under way":
        return f"on its way to {way.where}"
    place = "on" if way.outcome == "lost" else "at"
    return f"{way.outcome} {place} {way.where}{at}: {way.what}"


def _said(answer: Way) -> str:
    """Describe an acknowledgement in words."""
    says = answer.says
    if answer.kind == "nack" and "cack" in says:
        return f"NAK {says['reason']}: all before PSN {says['wanted']} has come"
    if answer.kind == "nack":
        return f"NACK {says['reason']} for PSN {says['wanted']}"
    if answer.kind == "ack" and answer.ev is None:
        return f"ACK up to PSN {says['cack']}, {says['msn']} messages"
    if answer.kind == "ack":
        return f"transport ACK up to PSN {says['cack']}, {says['msn']} messages"
    caused = "a probe" if says["caused"] is None else f"PSN {says['caused']}"
    return f"SACK up to PSN {says['cack']}, caused by {caused}"


def _us(at_ns: Instant) -> str:
    return f"{at_ns / NS_PER_US:.3f}"


def _or_dash(number: int | None) -> str:
    return "-" if number is None else str(number)
