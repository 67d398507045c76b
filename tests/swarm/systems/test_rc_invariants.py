"""Every rule of RC catches what it is there for: a planted mistake is found, by its own check."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nicd.core.board import Board
from nicd.core.events import RECV_WITH_IMM
from nicd.core.rc.dcqcn import ReactionPoint
from nicd.core.rc.qp import RcLink
from nicd.core.rc.requestor import NACK, Requestor
from nicd.core.rc.responder import Responder
from nicd.core.rc.selective import SelectiveRequestor
from nicd.core.rc.transport import RcTransport
from nicd.core.rc.ways import Ways
from swarm.case import Case
from swarm.run import run
from tests.swarm.systems.cases import DEAD, MARKED, incast, lossy, pair
from tests.swarm.test_invariants import Patch, Plant, wrapped


def places_early_packets(patch: Patch) -> None:
    """A packet behind a gap is put where it belongs, and what is missing is taken for arrived."""

    def make(on_data: Any) -> Any:
        def mistaken(self: Any, now: int, port: int, packet: Any, opcode: int, psn24: int, *rest: Any) -> str:
            ahead = (psn24 - self.expected) & 0xFFFFFF
            if ahead * self._mtu < self._left:
                self.expected += ahead
                self._va += ahead * self._mtu
                self._left -= ahead * self._mtu
            return str(on_data(self, now, port, packet, opcode, psn24, *rest))

        return mistaken

    wrapped(patch, Responder, "on_data", make)


def completes_out_of_order(patch: Patch) -> None:
    held: list[Any] = []

    def make(complete: Any) -> Any:
        def mistaken(self: Any, event: Any) -> None:
            if event.qpn != 16 or event.opcode == RECV_WITH_IMM or len(held) > 1:
                complete(self, event)
                return
            held.append(event)
            if len(held) == 2:
                complete(self, event)
                complete(self, replace(held[0], at_ns=event.at_ns))

        return mistaken

    wrapped(patch, Board, "complete", make)


def forgets_a_completion(patch: Patch) -> None:
    def make(complete: Any) -> Any:
        def mistaken(self: Any, event: Any) -> None:
            if (event.qpn, event.wr_id, event.opcode) != (18, 1, "write"):
                complete(self, event)

        return mistaken

    wrapped(patch, Board, "complete", make)


def acknowledges_too_much(patch: Patch) -> None:
    def make(ack: Any) -> Any:
        def mistaken(self: Any, now: int, port: int, psn24: int, *rest: Any) -> bool:
            return bool(ack(self, now, port, psn24 + 1 & 0xFFFFFF, *rest))

        return mistaken

    wrapped(patch, Ways, "ack", make)


def ignores_its_window(patch: Patch) -> None:
    patch.setattr(Requestor, "_fits", lambda self: True)


def never_gives_up(patch: Patch) -> None:
    def make(on_timer: Any) -> Any:
        def mistaken(self: Any, now: int) -> None:
            retries, self._retry_cnt = self._retry_cnt, 100
            on_timer(self, now)
            self._retry_cnt = retries

        return mistaken

    wrapped(patch, Requestor, "_on_timer", make)


def has_no_timer(patch: Patch) -> None:
    patch.setattr(Requestor, "_arm", lambda self, now: None)


def is_not_woken(patch: Patch) -> None:
    patch.setattr(RcLink, "window_moved", lambda self: None)


def sends_again_unasked(patch: Patch) -> None:
    def make(on_ack: Any) -> Any:
        def mistaken(self: Any, now: int, *arguments: Any) -> bool:
            good = bool(on_ack(self, now, *arguments))
            if self._next > self._una + 1:
                self._go_back(now, self._next - 1, NACK)
            return good

        return mistaken

    wrapped(patch, Requestor, "on_ack", make)


def tells_of_no_loss(patch: Patch) -> None:
    def make(go_back: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            go_back(self, *arguments)
            self._stats.packets_lost -= 1

        return mistaken

    wrapped(patch, Requestor, "_go_back", make)


def counts_acks_twice(patch: Patch) -> None:
    def make(on_ack: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> str:
            self.board.stats.acks_received += 1
            return str(on_ack(self, *arguments))

        return mistaken

    wrapped(patch, RcTransport, "_on_ack", make)


def forgets_what_is_lost(patch: Patch) -> None:
    def make(judge: Any) -> Any:
        def mistaken(self: Any, now: int) -> None:
            judge(self, now)
            self._lost.update({psn: (message, NACK) for psn, (_, message) in list(self._sent.items())[:1]})

        return mistaken

    wrapped(patch, SelectiveRequestor, "_judge", make)


def outruns_its_port(patch: Patch) -> None:
    def make(on_cnp: Any) -> Any:
        def mistaken(self: Any, now: int) -> bool:
            changed = bool(on_cnp(self, now))
            self.rate_bps = 2 * self.line_bps
            return changed

        return mistaken

    wrapped(patch, ReactionPoint, "on_cnp", make)


def waits_for_ever(patch: Patch) -> None:
    def make(sent: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            sent(self, *arguments)
            self._gate.cancel()

        return mistaken

    wrapped(patch, ReactionPoint, "sent", make)


def uses_another_port(patch: Patch) -> None:
    wrapped(patch, RcLink, "emit", lambda emit: lambda self, now, ports: _beside(emit(self, now, ports)))


def _beside(emitted: tuple[int, bytearray]) -> tuple[int, bytearray]:
    return emitted[0] ^ 1, emitted[1]


CASES: list[tuple[Plant, Callable[[], Case], str]] = [
    (forgets_a_completion, lambda: pair("roce"), "verdict"),
    (places_early_packets, lambda: lossy("roce-no-pfc"), "order"),
    (completes_out_of_order, lambda: pair("roce"), "completion"),
    (acknowledges_too_much, lambda: lossy("roce-no-pfc"), "windows"),
    (ignores_its_window, lambda: pair("irn", {"rc_window_bytes": 8_192}), "windows"),
    (never_gives_up, lambda: pair("roce-no-pfc", {"rc_timeout": 3, "rc_retry_cnt": 2}, faults=DEAD), "bounds"),
    (has_no_timer, lambda: pair("roce-no-pfc"), "progress"),
    (is_not_woken, lambda: pair("irn", {"rc_window_bytes": 8_192}), "progress"),
    (sends_again_unasked, lambda: pair("roce-no-pfc", {"rc_timeout": 14}), "health"),
    (tells_of_no_loss, lambda: lossy("roce-no-pfc"), "counters"),
    (counts_acks_twice, lambda: pair("irn"), "conservation"),
    (forgets_what_is_lost, lambda: lossy("irn"), "windows"),
    (outruns_its_port, lambda: incast("roce-no-pfc", switch=MARKED), "rate"),
    (waits_for_ever, lambda: incast("roce-no-pfc", switch=MARKED, sizes=(200_000,)), "progress"),
    (uses_another_port, lambda: pair("roce"), "paths"),
]


@pytest.mark.parametrize(("plant", "case", "invariant"), CASES, ids=[plant.__name__ for plant, _, _ in CASES])
@pytest.mark.pure
def test_a_planted_mistake_is_found(monkeypatch: Patch, plant: Plant, case: Callable[[], Case], invariant: str) -> None:
    plant(monkeypatch)
    outcome = run(case())
    assert outcome.violation is not None, outcome.reason
    assert outcome.violation.invariant == invariant, outcome.reason
