"""Every rule of UET catches what it is there for: a planted mistake is found, by its own check."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from nicd.core.board import Board
from nicd.core.uet.credits import CreditSource, Grantor
from nicd.core.uet.initiator import Initiator
from nicd.core.uet.outstanding import Outstanding
from nicd.core.uet.qp import UetLink
from nicd.core.uet.silence import Silence
from nicd.core.uet.target import Target
from nicd.core.uet.transport import UetTransport
from swarm.case import Case
from swarm.run import run
from tests.swarm.cases import flow
from tests.swarm.systems.cases import fabric, lossy, pair
from tests.swarm.test_invariants import Patch, Plant, wrapped


def shared(**nic: Any) -> Case:
    """Two QPs between the same NICs, so that they share windows and credit."""
    flows = [flow(0, "h000", "h002", [4_000, 200_000]), flow(1, "h000", "h002", [300_000, 3])]
    return Case("shared", fabric("uet", nic), flows, series="systems")


def small_packets(nic: dict[str, Any]) -> Case:
    """So many that the target's window ends before the congestion window."""
    topology = replace(fabric("uet", nic), mtu_bytes=256, planes=1)
    return Case("small", topology, [flow(0, "h000", "h002", [200_000])], series="systems")


def forgets_a_completion(patch: Patch) -> None:
    def make(complete: Any) -> Any:
        def mistaken(self: Any, event: Any) -> None:
            if (event.qpn, event.wr_id, event.opcode) != (18, 1, "write"):
                complete(self, event)

        return mistaken

    wrapped(patch, Board, "complete", make)


def completes_twice(patch: Patch) -> None:
    def make(complete: Any) -> Any:
        def mistaken(self: Any, event: Any) -> None:
            complete(self, event)
            if (event.qpn, event.wr_id, event.opcode) == (18, 1, "write"):
                complete(self, event)

        return mistaken

    wrapped(patch, Board, "complete", make)


def notes_no_arrival(patch: Patch) -> None:
    patch.setattr(Target, "_arrived", lambda self, ahead: None)


def acknowledges_what_never_came(patch: Patch) -> None:
    def make(free: Any) -> Any:
        def mistaken(self: Any, cack: int, base: int, bitmap: int) -> Any:
            whole = free(self, cack, base, bitmap)
            return whole + free(self, self.cack, max(self.by_psn), 1) if len(self.by_psn) > 4 else whole

        return mistaken

    wrapped(patch, Outstanding, "free", make)


def takes_too_much_for_arrived(patch: Patch) -> None:
    def make(free: Any) -> Any:
        def mistaken(self: Any, cack: int, base: int, bitmap: int) -> Any:
            return free(self, max(cack, max(self.by_psn, default=cack) - 2), base, bitmap)

        return mistaken

    wrapped(patch, Outstanding, "free", make)


def has_no_timer(patch: Patch) -> None:
    patch.setattr(Silence, "begin", lambda self, now: None)
    patch.setattr(Silence, "_watch", lambda self, now: None)


def is_not_woken(patch: Patch) -> None:
    patch.setattr(UetLink, "window_moved", lambda self: self._board.scheduler.wake(self))


def ignores_its_window(patch: Patch) -> None:
    patch.setattr(Initiator, "_has_new", lambda self: bool(self._queue))


def tells_of_no_loss(patch: Patch) -> None:
    def make(lose: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            lose(self, *arguments)
            self._stats.packets_lost -= 1

        return mistaken

    wrapped(patch, Outstanding, "lose", make)


def sends_again_unasked(patch: Patch) -> None:
    def make(judge: Any) -> Any:
        def mistaken(self: Any, now: int) -> None:
            judge(self, now)
            self.lose(now, self._initiator.table.in_flight()[:1], "gap")

        return mistaken

    wrapped(patch, Silence, "judge", make)


def counts_acks_twice(patch: Patch) -> None:
    def make(on_ack: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> str:
            self.board.stats.acks_received += 1
            return str(on_ack(self, *arguments))

        return mistaken

    wrapped(patch, UetTransport, "_on_ack", make)


def forgets_what_was_in_flight(patch: Patch) -> None:
    def make(emit: Any) -> Any:
        def mistaken(self: Any, now: int, plane: int, port: int) -> bytearray:
            packet = bytearray(emit(self, now, plane, port))
            self._peer.windows.of[plane].inflight_bytes -= 1
            return packet

        return mistaken

    wrapped(patch, Initiator, "emit", make)


def takes_more_credit(patch: Patch) -> None:
    wrapped(patch, CreditSource, "grant", lambda grant: lambda self, count24: grant(self, count24 + 8 & 0xFFFFFF))


def grants_nothing(patch: Patch) -> None:
    patch.setattr(Grantor, "_grant", lambda self, now: None)
    patch.setattr(Grantor, "repeat", lambda self, now, sender: None)


CASES: list[tuple[Plant, Callable[[], Case], str]] = [
    (forgets_a_completion, lambda: pair("uet"), "verdict"),
    (completes_twice, lambda: pair("uet-reps"), "completion"),
    (notes_no_arrival, lambda: lossy("uet"), "windows"),
    (acknowledges_what_never_came, lambda: pair("uet"), "windows"),
    (takes_too_much_for_arrived, lambda: pair("uet-reps"), "windows"),
    (has_no_timer, lambda: pair("uet"), "progress"),
    (is_not_woken, lambda: shared(cwnd_bytes=9_000), "progress"),
    (ignores_its_window, lambda: small_packets({"mpr_units": 1, "cwnd_bytes": 1 << 18}), "windows"),
    (tells_of_no_loss, lambda: lossy("uet"), "counters"),
    (sends_again_unasked, lambda: pair("uet"), "health"),
    (counts_acks_twice, lambda: pair("uet-rccc"), "conservation"),
    (forgets_what_was_in_flight, lambda: pair("uet"), "windows"),
    (takes_more_credit, lambda: pair("uet-rccc"), "credit"),
    (grants_nothing, lambda: pair("uet-rccc", {"uet_speculation_ppt": 0, "retry_linear": 1, "retry_exponential": 1}),
     "verdict"),
]  # fmt: skip


@pytest.mark.parametrize(("plant", "case", "invariant"), CASES, ids=[plant.__name__ for plant, _, _ in CASES])
@pytest.mark.pure
def test_a_planted_mistake_is_found(monkeypatch: Patch, plant: Plant, case: Callable[[], Case], invariant: str) -> None:
    plant(monkeypatch)
    outcome = run(case())
    assert outcome.violation is not None, outcome.reason
    assert outcome.violation.invariant == invariant, outcome.reason


@pytest.mark.parametrize("system", ["uet", "uet-rccc", "uet-reps"])
def test_without_a_mistake_none_is_found(system: str) -> None:
    for case in (pair(system), lossy(system)):
        outcome = run(case)
        assert not outcome.failed, outcome.reason
