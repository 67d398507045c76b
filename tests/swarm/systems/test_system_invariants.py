"""Every invariant of the second series catches what it is there for: a planted mistake is found, by its own check."""

from collections.abc import Callable
from typing import Any

import pytest

from mrcfabric.class_egress import ClassEgress
from mrcfabric.units import NEVER
from mrcfabric.wire.pfc import parse
from nicd.core.class_ports import ClassPorts, PauseReceiver
from swarm.batch import cut_otherwise
from swarm.case import Case, Fault
from swarm.run import run
from swarm.systems.pauses import Pauses
from switchd.core.buffer import SharedBuffer
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.lossless import LosslessSwitch
from switchd.core.routed import RoutedSwitch
from switchd.core.waiting import Waiting
from switchd.core.watchdog import PauseWatchdog
from tests.swarm.systems.cases import DEAD, MARKED, TIGHT, incast, lossy, pair, paused
from tests.swarm.test_invariants import Patch, Plant, wrapped


def forgets_bytes(patch: Patch) -> None:
    """Every tenth packet leaves without leaving the account."""
    count = 0

    def make(release: Any) -> Any:
        def mistaken(self: Any, pair: int, size: int) -> bool:
            nonlocal count
            count += 1
            return bool(release(self, pair, size)) if count % 10 else False

        return mistaken

    wrapped(patch, SharedBuffer, "release", make)


def charges_another(patch: Patch) -> None:
    wrapped(patch, SharedBuffer, "admit", lambda admit: lambda self, pair, size: admit(self, pair ^ 8, size))
    wrapped(patch, SharedBuffer, "release", lambda release: lambda self, pair, size: release(self, pair ^ 8, size))


def says_it_waits_elsewhere(patch: Patch) -> None:
    wrapped(patch, Waiting, "enter", lambda enter: lambda self, pair, port, size: enter(self, pair, port, size + 1))


def reckons_too_little_headroom(patch: Patch) -> None:
    patch.setattr("switchd.compose.exact_headroom", lambda rate_bps, delays_ns, frame_bytes, classes: frame_bytes)


def never_lets_go(patch: Patch) -> None:
    patch.setattr(LosslessSwitch, "_let_go", lambda self, at_ns, out: self._let.clear())


def lets_go_twice(patch: Patch) -> None:
    def make(ask: Any) -> Any:
        def mistaken(self: Any, at_ns: int, pair: int, quanta: int, out: Any) -> None:
            ask(self, at_ns, pair, quanta, out)
            if not quanta:
                ask(self, at_ns, pair, quanta, out)

        return mistaken

    wrapped(patch, LosslessSwitch, "_ask", make)


def repeats_at_once(patch: Patch) -> None:
    def make(init: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            init(self, *arguments)
            self._refresh_ns = [500 for _ in self._refresh_ns]

        return mistaken

    wrapped(patch, LosslessSwitch, "__init__", make)


def repeats_too_late(patch: Patch) -> None:
    def make(init: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> None:
            init(self, *arguments)
            self._refresh_ns = [4 * ns for ns in self._refresh_ns]

        return mistaken

    wrapped(patch, LosslessSwitch, "__init__", make)


def is_deaf_to_pauses(patch: Patch) -> None:
    patch.setattr(ClassPorts, "pause", lambda self, now, port, frame: None)


def pauses_too_long(patch: Patch) -> None:
    wrapped(
        patch, ClassEgress, "pause",
        lambda pause: lambda self, now, cls, until, out: pause(self, now, cls, until + 5 * (until > now), out),
    )  # fmt: skip


def sends_through_a_pause(patch: Patch) -> None:
    """The port keeps the pause in its account, and starts packets all the same."""
    wrapped(patch, ClassEgress, "pause", _not_paused)


def _not_paused(pause: Any) -> Any:
    def mistaken(self: Any, *arguments: Any) -> None:
        pause(self, *arguments)
        self._pausing = 0

    return mistaken


def takes_pauses_for_packets(patch: Patch) -> None:
    def make(receive: Any) -> Any:
        def mistaken(self: Any, now: int, port: int, packet: Any) -> str:
            if parse(packet) is not None:
                self._onward(now, port, packet)
            return str(receive(self, now, port, packet))

        return mistaken

    wrapped(patch, PauseReceiver, "receive", make)


def swallows_packets(patch: Patch) -> None:
    count = 0

    def make(offer: Any) -> Any:
        def mistaken(self: Any, *arguments: Any) -> bool:
            nonlocal count
            count += 1
            return count % 50 == 0 or bool(offer(self, *arguments))

        return mistaken

    wrapped(patch, ClassEgress, "offer", make)


def shortens_packets(patch: Patch) -> None:
    def make(take: Any) -> Any:
        def mistaken(self: Any, at_ns: int, in_port: int, packet: Any, out: Any) -> None:
            self.received += 1
            port, packet = self._forwarding.route(at_ns, in_port, packet)
            egress = self.egress[port]
            egress.offer(at_ns, packet[:-4], 0, out)
            self._visit(egress)

        return mistaken

    wrapped(patch, RoutedSwitch, "_take", make)


def changes_the_way(patch: Patch) -> None:
    def make(find: Any) -> Any:
        def mistaken(self: Any, packet: Any) -> Any:
            found = find(self, packet)
            self._flows.clear()
            if not isinstance(found, str) and found[0] in self.config.up:
                return self.config.up[sum(self._routed) % len(self.config.up)], found[1]
            return found

        return mistaken

    wrapped(patch, EcmpForwarding, "_find", make)


def stays_paused(patch: Patch) -> None:
    """A NIC takes every pause for one without end, and hears no XON."""

    def mistaken(self: Any, now: int, port: int, frame: Any) -> None:
        if any(frame.quanta):
            self._classed[port].pause(now, 3, NEVER, self.out)
            if self.tracking:
                self.track(now)

    patch.setattr(ClassPorts, "pause", mistaken)
    patch.setattr(Pauses, "_agree", lambda self, at_ns: None)


def stands_still_for_good(patch: Patch) -> None:
    """A switch that was stopped never goes on."""

    def make(set_forwarding: Any) -> Any:
        def mistaken(self: Any, at_ns: int, on: bool, out: Any) -> None:
            if not on:
                set_forwarding(self, at_ns, on, out)

        return mistaken

    wrapped(patch, LosslessSwitch, "_set_forwarding", make)


def has_no_watchdog(patch: Patch) -> None:
    patch.setattr(PauseWatchdog, "due", lambda self, pair: NEVER)


def stormy() -> Case:
    """A NIC pauses its switch for longer than the watchdog allows."""
    watched = {**TIGHT, "pfc_watchdog_ns": 9_000, "pfc_watchdog_restore_ns": 4_000}
    return incast("roce-pfc-only", switch=watched, faults=[Fault("pause_storm", "h003", 15_000, 60_000)])


SHORT_PAUSES = {**TIGHT, "pfc_quanta": 300}


def stopped() -> Case:
    """The switch before the receiver of an incast is stopped for a while, and senders are impatient."""
    fault = Fault("frozen", "p0-t0-1", 20_000, 25_000)
    return incast("roce-pfc-only", {"rc_timeout": 3, "rc_retry_cnt": 1}, TIGHT, faults=[fault])


CASES: list[tuple[Plant, Callable[[], Case], str]] = [
    (forgets_bytes, paused, "buffer"),
    (charges_another, paused, "buffer"),
    (says_it_waits_elsewhere, paused, "buffer"),
    (reckons_too_little_headroom, paused, "lossless"),
    (never_lets_go, lambda: incast("roce-pfc-only", switch=SHORT_PAUSES), "pauses"),
    (stays_paused, lambda: incast("roce-pfc-only", {"rc_timeout": 2, "rc_retry_cnt": 0}, TIGHT), "rest"),
    (stands_still_for_good, stopped, "rest"),
    (has_no_watchdog, stormy, "pauses"),
    (lets_go_twice, paused, "pauses"),
    (repeats_at_once, paused, "pauses"),
    (repeats_too_late, lambda: incast("roce-pfc-only", switch=SHORT_PAUSES), "pauses"),
    (is_deaf_to_pauses, paused, "pauses"),
    (pauses_too_long, paused, "pauses"),
    (sends_through_a_pause, paused, "pauses"),
    (takes_pauses_for_packets, paused, "conservation"),
    (swallows_packets, paused, "conservation"),
    (shortens_packets, lambda: pair("irn"), "conservation"),
    (changes_the_way, lambda: pair("irn"), "paths"),
]


@pytest.mark.parametrize(("plant", "case", "invariant"), CASES, ids=[plant.__name__ for plant, _, _ in CASES])
@pytest.mark.pure
def test_a_planted_mistake_is_found(monkeypatch: Patch, plant: Plant, case: Callable[[], Case], invariant: str) -> None:
    plant(monkeypatch)
    outcome = run(case())
    assert outcome.violation is not None, outcome.reason
    assert outcome.violation.invariant == invariant, outcome.reason


SOUND = {
    "paused": paused,
    "stopped": stopped,
    "stormy": stormy,
    "short-pauses": lambda: incast("roce-pfc-only", switch=SHORT_PAUSES),
    "marked": lambda: incast("roce-no-pfc", switch=MARKED, sizes=(200_000,)),
    "go-back-n": lambda: lossy("roce-no-pfc"),
    "go-back-0": lambda: lossy("roce-no-pfc", {"rc_recovery": "go_back_0"}),
    "selective": lambda: lossy("irn"),
    "dead": lambda: pair("roce-no-pfc", {"rc_timeout": 3, "rc_retry_cnt": 2}, faults=DEAD),
}


@pytest.mark.parametrize("name", SOUND)
def test_without_one_nothing_is_found(name: str) -> None:
    outcome = run(SOUND[name]())
    assert not outcome.failed, outcome.reason
    assert not cut_otherwise(outcome)
    assert run(SOUND[name]()).digest == outcome.digest, "two runs are equal"
