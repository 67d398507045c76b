"""Makes lines of a fabric's event log from what NICs and the agent report: who, what, why, and which section says so.

Pure. Owns the keys that every line has, and adds cause and section to reports that lack them. The facts come from NICs
(`nicd.core.events`), from switches (`switchd.core.events`) and from the agent (`orchestrator.fabric.journal`).
docs/schema/event_log.json describes a line.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

Line: TypeAlias = dict[str, Any]
"""`n` (from 1; the log sets it), `at_ns`, `wall_s` (when the agent heard of it), `node` ("" for the fabric), `kind`,
`cause` ("" when there is no more to say), `section` ("" for what the emulator or its operator does), then the fields of
the kind."""

SECTIONS: Final[Mapping[str, str]] = {
    # MRC 1.0 section 3: a QP goes up one state at a time, ERROR ends it; completions tell how a message ended.
    "qp_change": "MRC 1.0 3",
    "completion": "MRC 1.0 3",
    "retransmit": "MRC 1.0 3",
    # arXiv 2605.04333 section 2: a NIC that loses a port tells its peers.
    "port_change": "arXiv 2605.04333 2",
    # MRC 1.0 2.6: Port Status Update.
    "peer_port_change": "MRC 1.0 2.6",
    # IEEE 802.1Q 36: priority-based flow control.
    "pause_begun": "IEEE 802.1Q 36",
    "pause_ended": "IEEE 802.1Q 36",
    # RFC 4271 8.2: states of a session; 4.3: updates; RFC 2439 4.2: routes that flap.
    "routing_session": "RFC 4271 8.2",
    "route_damped": "RFC 2439 4.2",
    "routes_heard": "RFC 4271 4.3",
    # RFC 2992: equal-cost multipath, what a change of the group does to flows.
    "ecmp_member": "RFC 2992",
    # IBTA 14.2.5.6: linear forwarding tables; 17.2.8: automatic path migration.
    "lft_written": "IBTA 14.2.5.6",
    "path_migrated": "IBTA 17.2.8",
}
"""Sections for kinds whose events do not name one themselves."""
_SECTIONS_OF_RC: Final[Mapping[str, str]] = {
    **SECTIONS,
    # IBTA 10.3.1: states of a QP; 9.7: reliable connections, acknowledgements and time-outs.
    "qp_change": "IBTA 10.3.1",
    "completion": "IBTA 9.7",
    "retransmit": "IBTA 9.7",
    "port_change": "",
    "peer_port_change": "",
}
"""The same for NICs with the RC transport, which nobody tells of ports."""
_SECTIONS_OF_UET: Final[Mapping[str, str]] = {
    **SECTIONS,
    # UEC 1.0: packet delivery (losses, contexts) and semantics (completions); a QP is this project's face of both.
    "qp_change": "UEC PDS",
    "completion": "UEC SES",
    "retransmit": "UEC PDS",
    "port_change": "",
    "peer_port_change": "",
}
KINDS: Final = (
    "ev_transition", *SECTIONS, "watchdog_fired", "watchdog_restored", "hash_change",
    "fib_written", "fib_repaired", "rank_change", "way_lost", "way_avoided", "subnet_swept",
    "ready", "fault", "ended", "healed", "unhealed", "died", "returned", "lost", "refused", "stalled", "fenced",
    "lease_lost", "host_lost", "host_restarted", "links", "work", "work_over", "unstopped", "unwritten", "forgotten",
    "untold",
)  # fmt: skip

_OF_PEERS: Final[Mapping[str, str]] = {
    "pause_begun": "paused by {peer}",
    "pause_ended": "no more pauses by {peer}",
    "watchdog_fired": "paused too long by {peer}",
    "watchdog_restored": "no more pauses by {peer}",
}
"""Causes of events whose port says who is meant."""
_OF_PORTS: Final = frozenset({"routing_session", "routes_heard", "route_damped", "fib_repaired"})
"""Events of a routing core that are about the neighbour of a port."""
_CAUSES: Final = ("cause", "reason", "status", "why", "fault", "how")
"""Keys that say why something happened; the first one present is used."""


def sections_of(transport: str) -> Mapping[str, str]:
    """Sections for the events of NICs with this transport."""
    return {"rc": _SECTIONS_OF_RC, "uet": _SECTIONS_OF_UET}.get(transport, SECTIONS)


def of_nic(
    node: str,
    wall_s: float,
    event: Mapping[str, Any],
    sections: Mapping[str, str] = SECTIONS,
    peers: Sequence[str] = (),
) -> Line:
    """Make a line of an event from the op `events` of a NIC or a switch.

    `sections`: those of the transport; `peers`: who is at the other end of each of its ports.
    """
    line = _line(node, wall_s, event)
    if event["kind"] in _OF_PEERS and event["port"] < len(peers):
        line["peer"] = peers[event["port"]]
        line["cause"] = _OF_PEERS[event["kind"]].format(peer=line["peer"])
    elif event["kind"] in _OF_PORTS:
        if event["port"] < len(peers):
            line["peer"] = peers[event["port"]]
        # RFC 5880 6.8: elements of procedure.
        line["section"] = "RFC 5880 6.8" if event.get("protocol") == "bfd" else ""
    elif event["kind"] in ("ecmp_member", "way_lost", "way_avoided"):
        line["cause"] = "routing_notice" if event["kind"] == "way_avoided" else "carrier"
        if event["port"] < len(peers):
            line["peer"] = peers[event["port"]]
    if event["kind"] in ("port_change", "peer_port_change"):
        line["cause"] = "port_status_update" if event["kind"] == "peer_port_change" else "carrier"
    line["section"] = line["section"] or sections.get(event["kind"], "")
    return line


def of_agent(note: Mapping[str, Any]) -> Line:
    """Make a line of a note from the agent's journal."""
    return _line(str(note.get("node", note.get("nic", ""))), note["wall_s"], note)


def forgotten(node: str, at_ns: int, wall_s: float, count: int) -> Line:
    """Make a line that says how many events of a NIC were dropped before they were fetched."""
    told = {"at_ns": at_ns, "kind": "forgotten", "cause": "the daemon's list was full", "count": count}
    return _line(node, wall_s, told)


def untold(node: str, died_ns: int, wall_s: float, since_ns: int) -> Line:
    """Make a line that says that it is unknown what happened in a NIC from `since_ns` until it died."""
    told = {"at_ns": died_ns, "kind": "untold", "cause": "it died before it was asked", "since_ns": since_ns}
    return _line(node, wall_s, told)


def end_of(note: Mapping[str, Any]) -> Line | None:
    """Make a line for the end of the fault in a note of kind `fault`; None when the fault does not end by itself."""
    if note["until_ns"] is None:
        return None
    told = {"kind": "ended", "cause": "its time was over", "id": note["id"], "fault": note["fault"]}
    return _line("", note["wall_s"], {"at_ns": note["until_ns"], **told})


def text(line: Mapping[str, Any]) -> str:
    """Format a line for people: fabric time, node, what, why, and the section."""
    known = ("n", "at_ns", "wall_s", "node", "kind", "cause", "section")
    fields = " ".join(f"{key}={value}" for key, value in line.items() if key not in known and value is not None)
    parts = [f"{line['at_ns'] / 1000:14,.3f} us", f"{line['node'] or '-':9}", f"{line['kind']:16}", line["cause"]]
    parts += [fields, f"[{line['section']}]" if line["section"] else ""]
    return "  ".join(part for part in parts if part).rstrip()


def _line(node: str, wall_s: float, told: Mapping[str, Any]) -> Line:
    key = next((key for key in _CAUSES if key in told), None)
    head: Line = {
        "n": 0, "at_ns": told["at_ns"], "wall_s": round(wall_s, 3), "node": node, "kind": told["kind"],
        "cause": "" if key is None else str(told[key]), "section": told.get("section", ""),
    }  # fmt: skip
    return {**head, **{name: value for name, value in told.items() if name not in (*head, key, "nic")}}
