"""What a routing core has to show: counters, its sessions, and its routes one by one.

Owns the names. Plain data, for metrics and for people; reading it changes nothing.
"""

from collections import Counter
from typing import Any

from switchd.core.routing.rib import OWN
from switchd.core.routing.router import Router
from switchd.core.routing.session import ESTABLISHED, STATES


def routing_counters(router: Router) -> dict[str, Any]:
    """Sessions by state, and those that are up, of BGP and of BFD; routes, those that are damped, prefixes that wait to
    be written, when the table was changed last (-1: never), updates, withdrawals, batches, packets."""
    sessions = router.sessions.values()
    states = Counter(session.state for session in sessions)
    return {
        "sessions": {state: states[state] for state in STATES},
        "established": sum(session.state == ESTABLISHED for session in sessions),
        "bfd_up": router.watch.up,
        "bfd": {"up": router.watch.up, "down": router.watch.count - router.watch.up} if router.watch.count else {},
        "prefixes": len(router.choices),
        "routes": sum(len(routes) for routes in router.rib.heard.values()),
        "fib_waiting": len(router.writer.waiting),
        "damped": 0 if router.dampening is None else len(router.dampening.damped),
        "changed_ns": router.writer.changed_ns,
        "updates_heard": sum(session.updates_heard for session in sessions),
        "updates_sent": sum(session.updates_sent for session in sessions),
        "withdrawals_heard": sum(session.withdrawals_heard for session in sessions),
        "withdrawals_sent": sum(outbound.withdrawals for outbound in router.outbound.values()),
        "batches": router.processor.batches,
        "packets_heard": router.packets_heard,
        "packets_sent": router.packets_sent,
        "bad": dict(router.bad),
    }


def session_rows(router: Router) -> list[dict[str, Any]]:
    """A row for each neighbour: `port`, `neighbor`, `asn`, `state`, `bfd` (true, false, or None), `established` (how
    often), `updates_heard`, `updates_sent`, `prefixes` (heard from it)."""
    return [
        {
            "port": port,
            "neighbor": session.neighbor.name,
            "asn": session.neighbor.asn,
            "state": session.state,
            "bfd": router.watch.is_up(port),
            "established": session.established,
            "updates_heard": session.updates_heard,
            "updates_sent": session.updates_sent,
            "prefixes": len(router.rib.prefixes_of(port)),
        }
        for port, session in sorted(router.sessions.items())
    ]


def route_rows(router: Router) -> list[dict[str, Any]]:
    """A row for each prefix: `prefix`, `ports` (the group; none for what is the switch's own), `own`, `as_path` of the
    best route, `paths` (all that were heard), `written` (the ports in the table), `waiting` (to be written)."""
    table = router.writer.fib.table
    found = []
    for prefix in sorted({*router.choices, *table, *router.rib.heard}):
        choice = router.choices.get(prefix)
        own = choice is not None and choice.best == OWN
        ports = [] if choice is None or own else list(choice.ports)
        path = [] if choice is None or choice.route is None else list(choice.route.as_path)
        found.append(
            {
                "prefix": str(prefix),
                "ports": ports,
                "own": own,
                "as_path": path,
                "paths": len(router.rib.heard.get(prefix, ())),
                "written": list(table.get(prefix, ())),
                "waiting": prefix in router.writer.waiting,
            }
        )
    return found
