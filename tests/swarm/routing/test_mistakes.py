"""A routing core with a mistake is found: each of these breaks a rule of a random fabric."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.units import NEVER
from swarm.invariant import InvariantError
from swarm.routing.run import run
from switchd.core.routing.liveness import Liveness
from switchd.core.routing.outbound import Outbound
from switchd.core.routing.rib import Choice, Rib
from switchd.core.routing.router import Router
from switchd.core.routing.session import Session
from switchd.core.routing.stream import Stream
from switchd.core.routing.timetable import Kind
from switchd.core.routing.trouble import State
from switchd.core.routing.work import Task, Work
from switchd.core.routing.writer import FibWriter
from switchd.core.routing.zombies import Zombies
from tests.support.corners import corners


def _takes_one_path(self: Any, prefix: Any, without: Any = frozenset(), _choose: Any = Rib.choose) -> Choice:
    choice: Choice = _choose(self, prefix, without)
    return choice._replace(ports=choice.ports[:1])


def _forgets_withdrawals(self: Any, prefix: Any, offer: Any, _offer: Any = Outbound.offer) -> None:
    if offer is not None:
        _offer(self, prefix, offer)


def _keeps_routes_of_lost_sessions(self: Any, at_ns: int, work: Work, _work: Any = Router._work) -> None:
    if work.task != Task.LOST:
        _work(self, at_ns, work)


def _tells_new_sessions_nothing(self: Any, port: int) -> None:
    return None


def _believes_loops(
    self: Any, at_ns: int, port: int, update: Any, touched: Any, _take: Any = Router._take_update
) -> None:
    if update.attributes is not None:
        path = tuple(asn for asn in update.attributes.as_path if asn != self.config.asn)
        update = replace(update, attributes=update.attributes._replace(as_path=path)) if path else update
    _take(self, at_ns, port, update, touched)


def _writes_what_was_first(self: Any, at_ns: int, prefix: Any, ports: Any, _settle: Any = FibWriter.settle) -> None:
    if prefix not in self.waiting:
        _settle(self, at_ns, prefix, ports)


def _writes_all_at_once(self: Any, at_ns: int, _expire: Any = FibWriter.expire) -> None:
    while self.waiting:
        _expire(self, at_ns)
    self._timetable.set(Kind.FIB, 0, NEVER)


def _never_lets_back_in(self: Any, at_ns: int, port: int, out: bool, _mask: Any = FibWriter.mask) -> None:
    if out:
        _mask(self, at_ns, port, out)


def _forgets_what_was_swallowed(self: Any, at_ns: int, stuck: bool) -> None:
    self._stuck = stuck


def _has_no_hold_timer(self: Any, at_ns: int) -> None:
    return None


def _never_dials_again(self: Any, at_ns: int, why: str, said: Any, _end: Any = Session._end) -> None:
    _end(self, at_ns, why, said)
    self._host.timer(Kind.RETRY, self.neighbor.port, NEVER)


def _stays_shut(self: Any, at_ns: int, down: bool, usable: bool, _hold: Any = Session.hold_down) -> None:
    if down:
        _hold(self, at_ns, down, usable)


def _never_misses_bfd(self: Any, at_ns: int) -> bool:
    self.detect_ns = NEVER
    return False


def _never_uses_again(self: Any, at_ns: int) -> None:
    return None


def _never_lets_go(self: Any, state: State) -> dict[Any, Any]:
    self._state = state
    return {}


def _forgets_what_was_due(self: Any, at_ns: int) -> None:
    for session in self.sessions.values():
        session.catch_up(at_ns)
    self._silent.clear()
    self._deferred.clear()


def _never_resends(self: Any, at_ns: int) -> None:
    self.due_ns = NEVER


def _keeps_stale_routes(self: Any, at_ns: int, work: Work, _work: Any = Router._work) -> None:
    if work.task != Task.STALE:
        _work(self, at_ns, work)


def _says_nothing_new_of_itself(self: Any) -> int:
    return 0


MISTAKES = {
    "takes-one-path": (Rib, "choose", _takes_one_path),
    "forgets-withdrawals": (Outbound, "offer", _forgets_withdrawals),
    "keeps-routes-of-lost-sessions": (Router, "_work", _keeps_routes_of_lost_sessions),
    "tells-new-sessions-nothing": (Router, "_offer_all", _tells_new_sessions_nothing),
    "believes-loops": (Router, "_take_update", _believes_loops),
    "writes-what-was-first": (FibWriter, "settle", _writes_what_was_first),
    "writes-all-at-once": (FibWriter, "expire", _writes_all_at_once),
    "never-lets-back-in": (FibWriter, "mask", _never_lets_back_in),
    "forgets-what-was-swallowed": (FibWriter, "stick", _forgets_what_was_swallowed),
    "has-no-hold-timer": (Session, "_hold", _has_no_hold_timer),
    "never-dials-again": (Session, "_end", _never_dials_again),
    "stays-shut": (Session, "hold_down", _stays_shut),
    "never-misses-bfd": (Liveness, "expire", _never_misses_bfd),
    "never-uses-again": (Router, "_use_again", _never_uses_again),
    "never-lets-go": (Zombies, "keep", _never_lets_go),
    "forgets-what-was-due": (Router, "_wake", _forgets_what_was_due),
    "never-resends": (Stream, "expire", _never_resends),
    "keeps-stale-routes": (Router, "_work", _keeps_stale_routes),
    "says-nothing-new-of-itself": (State, "told", _says_nothing_new_of_itself),
}


FOUND_BY = {
    "takes-one-path": 0,
    "forgets-withdrawals": 1,
    "keeps-routes-of-lost-sessions": 2,
    "tells-new-sessions-nothing": 0,
    "believes-loops": 1,
    "writes-what-was-first": 39,
    "writes-all-at-once": 2,
    "never-lets-back-in": 2,
    "forgets-what-was-swallowed": 38,
    "has-no-hold-timer": 0,
    "never-dials-again": 2,
    "stays-shut": 3,
    "never-misses-bfd": 3,
    "never-uses-again": 53,
    "never-lets-go": 111,
    "forgets-what-was-due": 28,
    "never-resends": 1,
    "keeps-stale-routes": 7,
    "says-nothing-new-of-itself": 1,
}
"""A seed that finds each of them; without the mistake it holds."""


@pytest.mark.slow
@pytest.mark.parametrize("name", corners(MISTAKES, "believes-loops", "forgets-withdrawals", "keeps-stale-routes"))
def test_a_mistake_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    kind, method, wrong = MISTAKES[name]
    monkeypatch.setattr(kind, method, wrong)
    with pytest.raises(InvariantError):
        run(FOUND_BY[name])
