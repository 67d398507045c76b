"""Every invariant catches what it is there for: a core with a planted mistake is found, by the check that it breaks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from mrcfabric.egress import Egress
from mrcfabric.wire.templates import ControlTemplate
from nicd.core.board import Board
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.ev_state import EvState
from nicd.core.events import RECV_WITH_IMM, Completion, EvTransition
from nicd.core.memory import MemoryTable
from nicd.core.mrc.ev_deck import PlaneDeck
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.mrc.inflight import InflightTable
from nicd.core.mrc.path_policy import MrcPolicy
from nicd.core.mrc.probe import Prober
from nicd.core.mrc.recovery import Recovery
from nicd.core.mrc.requestor import Requestor
from nicd.core.mrc.responder import Responder
from nicd.core.mrc.sack import DUPLICATE, NEW, ReceiveWindow
from nicd.core.mrc.transport import MrcTransport
from nicd.core.nic import Nic
from swarm import world
from swarm.batch import cut_otherwise
from swarm.case import Case
from swarm.run import run
from switchd.core.switch import Switch
from tests.swarm.cases import broken_link, calm, incast, lossy

Patch: TypeAlias = pytest.MonkeyPatch
Plant: TypeAlias = Callable[[Patch], None]


def wrapped(patch: Patch, owner: type, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    """Replace a method by what `make` makes of it."""
    patch.setattr(owner, name, make(getattr(owner, name)))


def writes_duplicates(patch: Patch) -> None:
    def make(classify: Any) -> Any:
        def mistaken(self: Any, psn24: int) -> tuple[int, int]:
            verdict, psn = classify(self, psn24)
            return (NEW if verdict == DUPLICATE and psn > self.expected else verdict), psn

        return mistaken

    wrapped(patch, ReceiveWindow, "classify", make)


def sends_other_bytes(patch: Patch) -> None:
    def make(post: Any) -> Any:
        return lambda self, now, work, region, view: post(self, now, work, region, memoryview(bytes(view)[::-1]))

    wrapped(patch, Requestor, "post", make)


def writes_beside(patch: Patch) -> None:
    def make(place: Any) -> Any:
        def mistaken(self: Any, r_key: int, va: int, payload: Any) -> bool:
            self.by_key[r_key].view[-1] = 0
            return bool(place(self, r_key, va, payload))

        return mistaken

    wrapped(patch, MemoryTable, "place", make)


def completes_at_once(patch: Patch) -> None:
    def make(post: Any) -> Any:
        def mistaken(self: Any, now: int, work: Any, region: Any, view: Any) -> None:
            post(self, now, work, region, view)
            self._stats.completions += 1
            self._board.tell(Completion(now, self._qp.qpn, work.wr_id, "ok", "write", work.length, work.imm))

        return mistaken

    wrapped(patch, Requestor, "post", make)


def completes_twice(patch: Patch) -> None:
    def make(finish: Any) -> Any:
        def mistaken(self: Any, now: int, message: Any, status: str) -> None:
            finish(self, now, message, status)
            finish(self, now, message, status)

        return mistaken

    wrapped(patch, Requestor, "_finish", make)


def swaps_immediates(patch: Patch) -> None:
    held: list[Any] = []

    def make(tell: Any) -> Any:
        def mistaken(self: Any, event: Any) -> None:
            if isinstance(event, Completion) and event.opcode == RECV_WITH_IMM and not held:
                held.append(event)
                return
            tell(self, event)
            if isinstance(event, Completion) and event.opcode == RECV_WITH_IMM:
                tell(self, replace(held[0], at_ns=event.at_ns))

        return mistaken

    wrapped(patch, Board, "tell", make)


def ignores_states(patch: Patch) -> None:
    patch.setattr(PlaneDeck, "pick", lambda self, now: self.cards[self._rng.below(len(self.cards))])


def sends_again_on_the_same(patch: Patch) -> None:
    def mistaken(self: Any, now: int, profile: Any, plane: int, index: int) -> int:
        deck = profile.decks[plane]
        return index if index in deck.cards else int(deck.pick(now))

    patch.setattr(MrcPolicy, "resend", mistaken)


def prefers_a_plane(patch: Patch) -> None:
    patch.setattr(EvProfile, "pick_plane", lambda self, mask: (mask & -mask).bit_length() - 1)


def comes_back_by_itself(patch: Patch) -> None:
    def make(tell: Any) -> Any:
        def mistaken(self: Any, event: Any) -> None:
            tell(self, event)
            if isinstance(event, EvTransition) and event.target == "assumed_bad":
                tell(self, replace(event, source="assumed_bad", target="good", cause="scan"))

        return mistaken

    wrapped(patch, Board, "tell", make)


def swallows_packets(patch: Patch) -> None:
    count = 0

    def make(offer: Any) -> Any:
        def mistaken(self: Any, now: int, packet: Any, control: bool, out: Any) -> bool:
            nonlocal count
            count += 1
            return count % 50 == 0 or bool(offer(self, now, packet, control, out))

        return mistaken

    wrapped(patch, Egress, "offer", make)


def loses_departures(patch: Patch) -> None:
    wrapped(patch, Switch, "advance", lambda advance: lambda self, inputs, until: advance(self, inputs, until)[:1])


def queues_without_end(patch: Patch) -> None:
    def make(init: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            init(self, *arguments)
            self._limits = (self._limits[0] * 100, *self._limits[1:])
            self._data_max = self._limits[0]

        return mistaken

    wrapped(patch, Egress, "__init__", make)


def ignores_windows(patch: Patch) -> None:
    for name in ("left", "_check"):
        wrapped(patch, PlaneWindows, name, _opening)


def _opening(check: Any) -> Any:
    def mistaken(self: Any, *arguments: Any) -> None:
        check(self, *arguments)
        self.open = (1 << len(self.of)) - 1

    return mistaken


def acknowledges_too_much(patch: Patch) -> None:
    def make(sack: Any) -> Any:
        def mistaken(self: Any, ev: int, outer: bytes, entropy: int, m: int, offset: int, cack: int, *rest: Any) -> Any:
            return sack(self, ev, outer, entropy, m, offset, (cack + 3) & 0xFFFFFF, *rest)

        return mistaken

    wrapped(patch, ControlTemplate, "sack", make)


def hoards(patch: Patch) -> None:
    def make(receive: Any) -> Any:
        def mistaken(self: Any, now: int, port: int, packet: Any) -> None:
            self.__dict__.setdefault("hoard", []).append([packet])
            receive(self, now, port, packet)

        return mistaken

    patch.setattr(world, "GENERAL_MAX", 40)
    wrapped(patch, MrcTransport, "receive", make)


def is_always_due(patch: Patch) -> None:
    patch.setattr(Nic, "next_timeout", lambda self: self.now_ns if self.now_ns > 11_000 else 11_001)


def reports_the_past(patch: Patch) -> None:
    wrapped(
        patch, Board, "tell", lambda tell: lambda self, event: tell(self, replace(event, at_ns=event.at_ns - 5_000))
    )


def counts_losses_twice(patch: Patch) -> None:
    def make(lose: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            lose(self, *arguments)
            self._stats.packets_lost += 1

        return mistaken

    wrapped(patch, InflightTable, "lose", make)


def forgets_a_loss(patch: Patch) -> None:
    wrapped(patch, Requestor, "_emit_lost", lambda emit: lambda self, now, plane: _unmarked(emit(self, now, plane)))


def _unmarked(packet: bytearray) -> bytearray:
    packet[96] &= ~0x20
    return packet


def counts_sacks_twice(patch: Patch) -> None:
    def make(send: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            self._stats.sacks_sent += 1
            send(self, *arguments)

        return mistaken

    wrapped(patch, Responder, "_send_sack", make)


def miscounts_evs(patch: Patch) -> None:
    def make(set_state: Any) -> Any:
        def mistaken(self: Any, index: int, state: EvState) -> None:
            set_state(self, index, state)
            self._tally[self.plane[index]][state] += 1

        return mistaken

    wrapped(patch, EvProfile, "_set_state", make)


def never_sends_again(patch: Patch) -> None:
    patch.setattr(Recovery, "_on_timer", lambda self, now: None)
    patch.setattr(InflightTable, "gaps", lambda self: [])


def never_trusts_again(patch: Patch) -> None:
    patch.setattr(Prober, "on_answer", lambda self, *arguments: True)


def is_impatient(patch: Patch) -> None:
    def make(gaps: Any) -> Any:
        def mistaken(self: Any) -> list[Any]:
            found: list[Any] = gaps(self)
            if not found and self._order:
                found.append(self._order.popleft())
            return found

        return mistaken

    wrapped(patch, InflightTable, "gaps", make)


ONE_WINDOW = {"congestion": "fixed", "congestion_scope": "destination"}
MARKED = {"ecn_min": 0.0, "ecn_max": 0.001, "ecn_last_hop": True}
SMALL_QUEUES = {"data": 0.3, "data_last_hop": 0.3}


@pytest.mark.parametrize(
    ("plant", "case", "invariant"),
    [
        (writes_duplicates, calm(copies_ppm=300_000), "placement"),
        (sends_other_bytes, calm(), "placement"),
        (writes_beside, calm(), "memory"),
        (completes_at_once, calm(), "completion"),
        (completes_twice, calm(), "completion"),
        (swaps_immediates, calm(), "completion"),
        (ignores_states, incast(MARKED, {"cwnd_bytes": 40_000}, 400_000), "paths"),
        (sends_again_on_the_same, incast(SMALL_QUEUES), "paths"),
        (comes_back_by_itself, broken_link(), "paths"),
        (prefers_a_plane, incast({}, {**ONE_WINDOW, "cwnd_bytes": 4_096}, 500_000), "balance"),
        (swallows_packets, calm(), "conservation"),
        (loses_departures, calm(), "conservation"),
        (queues_without_end, incast(SMALL_QUEUES), "bounds"),
        (hoards, calm(), "bounds"),
        (ignores_windows, incast({}, {"congestion": "fixed", "cwnd_bytes": 20_000}), "windows"),
        (acknowledges_too_much, lossy(), "windows"),
        (is_always_due, calm(), "time"),
        (reports_the_past, calm(), "time"),
        (counts_losses_twice, lossy(), "retransmission"),
        (forgets_a_loss, lossy(), "retransmission"),
        (is_impatient, calm(), "health"),
        (counts_sacks_twice, calm(), "counters"),
        (miscounts_evs, broken_link(), "counters"),
        (never_sends_again, lossy(), "verdict"),
        (never_trusts_again, lossy(), "rest"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.pure
def test_a_planted_mistake_is_found(monkeypatch: Patch, plant: Plant, case: Case, invariant: str) -> None:
    plant(monkeypatch)
    outcome = run(case)
    assert outcome.violation is not None, outcome.reason
    assert outcome.violation.invariant == invariant, outcome.reason


@pytest.mark.parametrize(
    "case",
    [calm(), calm(copies_ppm=300_000), incast(MARKED), incast(SMALL_QUEUES), broken_link(), lossy()],
    ids=["calm", "copies", "marked", "small-queues", "broken-link", "lossy"],
)
def test_without_one_nothing_is_found(case: Case) -> None:
    outcome = run(case)
    assert not outcome.failed, outcome.reason
    assert not cut_otherwise(outcome)


@pytest.mark.pure
def test_a_core_that_depends_on_how_time_is_cut_is_found(monkeypatch: Patch) -> None:
    def make(advance: Any) -> Any:
        def mistaken(self: Any, inputs: Any, until: int) -> Any:
            for egress in self.egress:
                egress._red_rng.bits64()
            return advance(self, inputs, until)

        return mistaken

    wrapped(monkeypatch, Switch, "advance", make)
    outcome = run(incast({"ecn_min": 0.0, "ecn_max": 0.5}))
    assert not outcome.failed, outcome.reason
    assert "instant by instant" in cut_otherwise(outcome)


@pytest.mark.pure
def test_a_core_that_raises_is_a_finding(monkeypatch: Patch) -> None:
    def broken(self: Any, *arguments: Any) -> None:
        raise KeyError("planted")

    monkeypatch.setattr(Responder, "on_probe", broken)
    outcome = run(broken_link())
    assert isinstance(outcome.crash, KeyError)
    assert "KeyError" in outcome.reason
