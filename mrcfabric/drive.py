"""One core on real UDP: its held frames, its place in the clock page, and the tick under the horizon rule.

A tick does, in this order:

1. It reads the clock page: the smallest `horizon + link delay` over the neighbours, and the wall-clock bound.
2. It takes from the sockets exactly the frames that the page says were sent. The order matters: a neighbour sends
   frames before it publishes them.
3. It advances the core to that instant with the frames and commands that are due, in the order of `mrcfabric.node`.
4. It sends the resulting frames, in trains.
5. It publishes frames sent and taken, then the horizon, and rings the neighbours that wait for this horizon.

So a process may be as late in wall time as it likes: no node overtakes it in fabric time, and the fabric gets slower,
never wrong. A drive whose step would be shorter than its shortest link delay waits instead. It writes into the page
which horizon it needs, and the neighbour rings its doorbell when it publishes that horizon. The node that is furthest
behind can always make a full step, so the rule cannot deadlock.
"""

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final, Protocol

from mrcfabric.brake import Brake
from mrcfabric.clock import LIMIT_WORD, ClockPage
from mrcfabric.link_port import Fidelity, LinkEnd, LinkPort
from mrcfabric.node import Input, Node, Rank, split_due
from mrcfabric.orders import Orders
from mrcfabric.sim.trace import Trace
from mrcfabric.tally import FIDELITY, TOTALS, together
from mrcfabric.tap import Tap
from mrcfabric.udp import Endpoint
from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S, Instant

NOTHING: Final = (0,) * len(TOTALS)
TELL_WALL_NS: Final = 10 * NS_PER_MS
"""How old the tally of a busy node in the page may be: adding it up at every step would cost a switch too much."""


class Turns(Protocol):
    """The interface of the runner that a drive uses."""

    page: ClockPage
    shared: bool
    """False: the page is private to this process, and only the wall clock binds."""
    furthest_ns: Instant
    """No drive goes beyond this before it has looked at the slowest node of the whole page."""

    def look_ahead(self) -> Instant:
        """Look at the slowest node again; returns the new `furthest_ns`."""
        ...

    def kick(self) -> None:
        """Ask for a turn soon: there is something to do."""
        ...

    def ring(self, doorbell: int) -> None:
        """Wake the process behind an eventfd, soon."""
        ...

    def retry_soon(self) -> None:
        """Ask for another turn in a moment: a published frame is not yet in the socket."""
        ...

    def crashed(self, drive: "Drive") -> None:
        """End this node as SIGKILL does: it has reached the instant of its crash, and published it."""
        ...


class Drive:
    """One core under a runner. Made by `Runner.add`."""

    def __init__(
        self,
        turns: Turns,
        core: Node,
        slot: int,
        links: Sequence[LinkEnd],
        *,
        incarnation: int = 0,
        trace: Trace | None = None,
        offload: bool = True,
    ) -> None:
        """Binds the sockets of `links`; raises ConfigError when a port is taken."""
        self.core = core
        self.slot = slot
        self.trace = trace
        self.fidelity = Fidelity()
        self.on_events: Callable[[list[Any]], None] = lambda _events: None
        """Called after a tick with the events of the core, if there are any."""
        self.on_late: Callable[[Any, int], None] = lambda _command, _late_ns: None
        """Called with a command whose instant had passed, and how late it was."""
        self.totals: Callable[[], Sequence[int]] = lambda: NOTHING
        """The counts of the core, as `tally.TOTALS`."""
        self.taps: tuple[Tap, ...] | None = None
        """The taps; they see what the core sends before it is sent."""
        self.brake = Brake()
        """Which share of wall time the node may use; the runner keeps to it."""
        self.resumes_s = 0.0
        """Until when the brake holds it, by the monotonic clock."""
        self.wait_word, self.wait_ns = LIMIT_WORD, 0
        """While the first word of the page is below the second figure, a neighbour has not come far enough for a step;
        valid while the limit stays and the wall clock does not bind."""
        self.step_ns = min((end.delay_ns for end in links), default=NS_PER_S)
        """The shortest step worth taking while neighbours limit it."""
        self._turns = turns
        self._slowest: LinkPort | None = None
        """The neighbour that binds it most, as of the latest tick."""
        self._dropped = False
        self._live_from = core.now_ns
        self._crash_ns = NEVER
        self._awake_until: Instant = 0
        self._held: list[Input] = []
        """Frames are plain tuples of the same: they are made and sorted in less time."""
        self._soon: list[Any] = []
        self.commands_taken = 0  # in this life, those that wait for their instant among them
        self._scripted: set[int] = set()
        """Held commands, by sequence, that do not keep fabric time running."""
        self._orders = Orders()
        page = turns.page
        self._words = page.words
        self._tally_words = page.tally_words(slot)
        self._tally_before = page.tally(slot)
        """The node's tally of the lives before this one."""
        self._tally_due_ns = 0
        """When to write the tally again, by the monotonic clock; 0: at once."""
        self._untold = self._idle = False
        """It has made a step since the tally was written; it had nothing to do in any: only the time has changed."""
        self._horizon_word = page.horizon_word(slot)
        self._pending_word = page.pending_word(slot)
        self.now_ns: Instant = min(core.now_ns, page.horizon(slot)) if turns.shared else core.now_ns
        """The fabric time this node has reached; before its start instant while it is being restarted."""
        self._ports = [
            LinkPort(
                end, Endpoint(end.local, end.peer, offload=offload, path_mtu=end.path_mtu), page, slot, incarnation,
                self._live_from, self.fidelity, shared=turns.shared,
            )
            for end in links
        ]  # fmt: skip
        self._by_number = {port.number: port for port in self._ports}
        self.outward = any(port.doorbell is not None for port in self._ports)
        """Whether nodes of other processes wait for this one."""

    # Called by the daemon.

    def command(self, command: Any, at_ns: Instant | None = None) -> None:
        """Hand a command to the core, at `at_ns` or as soon as possible. A late one runs at once and is counted."""
        if self._dropped:
            return  # an application's end may be noticed after its NIC has died
        if at_ns is None:
            self._soon.append(command)
        else:
            self._hold_command(command, at_ns)
        self._words[self._pending_word] = 1
        self._turns.kick()

    def script(self, command: Any, at_ns: Instant) -> None:
        """The same, but fabric time may stop before `at_ns`: the caller must see to it that time gets there. Of several
        for one instant that set the same thing the last counts.

        The end of a fault that somebody has already healed is such a command: it must not keep a fabric awake.
        """
        self.command(command, at_ns)
        self._scripted.add(self.commands_taken)
        self._orders.note(at_ns, self.commands_taken, command)

    def stay_awake(self, until: Instant) -> None:
        """Keep fabric time running until `until`, because something outside the core waits for that instant."""
        self._awake_until = until
        self._words[self._pending_word] = 1
        self._turns.kick()

    def crash_at(self, at_ns: Instant) -> None:
        """Advance to `at_ns` exactly, send and publish, then die as by SIGKILL; NEVER: live on."""
        self._crash_ns = at_ns
        self._words[self._pending_word] = 1
        self._turns.kick()

    def fidelity_record(self) -> dict[str, Any]:
        """The counts of `Fidelity` and of the sockets.

        `ports` has [late frames, host drops] of each port that had any.
        """
        record: dict[str, Any] = asdict(self.fidelity)
        losses = {port.number: [port.late_frames, port.host_drops] for port in self._ports}
        record["ports"] = {number: counts for number, counts in losses.items() if any(counts)}
        endpoints = [port.endpoint for port in self._ports]
        record["refused"] = sum(endpoint.refused for endpoint in endpoints)
        record["unsent_trains"] = sum(endpoint.unsent for endpoint in endpoints)
        record["receive_buffer_bytes"] = min((endpoint.receive_buffer_bytes for endpoint in endpoints), default=0)
        return record

    def tell(self) -> None:
        """Write the node's tally into the page, where the agent still finds it after the process is killed."""
        counted = self.fidelity
        life = [self.now_ns, counted.late_ns_max, *(getattr(counted, name) for name in FIDELITY), *self.totals()]
        self._words[self._tally_words] = array("Q", together(self._tally_before, life))
        self._untold, self._idle = False, True

    def tell_in_time(self, mono_ns: int) -> None:
        """Write the tally if `TELL_WALL_NS` have passed since the last time.

        Write at once if nothing is pending or the node stands at the limit.
        """
        if self._untold and (mono_ns >= self._tally_due_ns or not self._words[self._pending_word] or self.stands):
            self._tally_due_ns = mono_ns + TELL_WALL_NS
            if self._idle:
                self._words[self._tally_words.start] = max(self.now_ns, self._tally_before[0])
                self._untold = False
            else:
                self.tell()

    def close(self) -> None:
        self.tell()
        self.drop()

    def drop(self) -> None:
        """Close the sockets as they are, and take no more commands."""
        self._dropped = True
        for port in self._ports:
            port.endpoint.close()

    # One tick.

    def tick(self, wall_bound: Instant, wall_step_ns: int) -> bool:
        """Advance as far as neighbours and wall clock allow; False when that is not (yet) a step worth taking."""
        until = self._bound(wall_bound)
        limit = self._words[LIMIT_WORD]
        if until >= self._crash_ns and limit >= self._crash_ns:
            until = self._crash_ns
        elif until >= limit:
            # The last step before the limit may be short: there is nothing beyond it.
            until = limit
            if until <= self.now_ns:
                return False
        elif until - self.now_ns < (wall_step_ns if wall_bound - self.now_ns < self.step_ns else self.step_ns):
            slowest = self._slowest
            if slowest is not None:
                self.wait_word = slowest.horizon_word
                self.wait_ns = min(self.now_ns + self.step_ns, limit) - slowest.delay_ns
            return False
        if until > self.now_ns:
            if not self._take_frames():
                return False
            self.fidelity.ticks += 1
            self._idle = self._idle and self._turns.shared and not (self._words[self._pending_word] or self._held)
            self._advance(until)
            self._publish(until)
        if until == self._crash_ns:
            self.tell()
            self._turns.crashed(self)
        return True

    def _bound(self, wall_bound: Instant) -> Instant:
        """How far the horizon rule lets this node go."""
        until = wall_bound
        slowest: LinkPort | None = None
        if self._turns.shared:
            words = self._words
            for port in self._ports:
                limit = words[port.horizon_word] + port.delay_ns
                if limit < until:
                    until = limit
                    slowest = port
        self._slowest = slowest
        if until > self._turns.furthest_ns:
            until = min(until, self._turns.look_ahead())
        return until

    def _take_frames(self) -> bool:
        """Take every published frame from the sockets; False when one is still on its way through the kernel."""
        held = self._held
        if not self._turns.shared:
            for port in self._ports:
                port.receive(NEVER, held)
            return True
        words = self._words
        complete = True
        lives = self.now_ns >= self._live_from
        for port in self._ports:
            published = words[port.published_word]
            if published > port.taken:
                # Set this before the frames are counted as taken: otherwise the fabric looks idle between the two.
                words[self._pending_word] = 1
                port.receive(published, held)
                if port.taken < published and not port.give_up(published, lives=lives):
                    self._turns.retry_soon()
                    complete = False
                words[port.taken_word] = port.taken
        return complete

    def _advance(self, until: Instant) -> None:
        """Hand the core what is due up to `until`, and queue what comes out per port."""
        if until <= self._live_from:
            return  # the node is restarting, and fabric time has not reached its start
        for command in self._soon:
            self._hold_command(command, max(self.now_ns, self._live_from) + 1)
        self._soon.clear()
        core = self.core
        transmits: Any = core.advance(self._due(until), until)
        events = core.drain_events()
        if self.trace is not None:
            self.trace.add(transmits, events)
        if self.taps is not None:
            for tap in self.taps:
                tap.take(transmits)
        by_number = self._by_number
        for transmit in transmits:
            by_number[transmit[0]].outgoing.append(transmit)
        if events:
            self.on_events(events)

    def _due(self, until: Instant) -> list[Input]:
        if not self._held:
            return []
        inputs, self._held, _ = split_due(self._held, until)
        if self._scripted:
            self._scripted.difference_update(one[3] for one in inputs if one[1] == Rank.COMMAND)
            inputs = self._orders.counting(inputs)
        if inputs and inputs[0][0] <= self.core.now_ns:
            self._mend_late(inputs)
        return inputs

    def _mend_late(self, inputs: list[Input]) -> None:
        """Move inputs whose instant has passed to the next possible instant, and count them."""
        earliest = self.core.now_ns + 1
        for index, one in enumerate(inputs):
            late = Input(*one)
            if late.at_ns >= earliest:
                break
            if late.rank == Rank.FRAME:
                self.fidelity.late_frames += 1
                self._by_number[late.port].late_frames += 1
                self.fidelity.late_ns_max = max(self.fidelity.late_ns_max, earliest - late.at_ns)
            else:
                self.fidelity.late_commands += 1
                self.on_late(late.body, earliest - late.at_ns)
            inputs[index] = late._replace(at_ns=earliest)
        inputs.sort()

    def _hold_command(self, command: Any, at_ns: Instant) -> None:
        self.commands_taken += 1
        self._held.append(Input(at_ns, Rank.COMMAND, 0, self.commands_taken, command))

    def _publish(self, until: Instant) -> None:
        """Send; then write counts, pending work and horizon into the page; then ring those who wait for it."""
        words = self._words
        for port in self._ports:
            if port.outgoing:
                port.send()
                words[port.sent_word] = port.sent
        self.now_ns = until
        self._untold = True
        words[self._pending_word] = self._pending()
        words[self._horizon_word] = until
        if not self._turns.shared:
            return
        for port in self._ports:
            wanted = words[port.wanted_word]
            if wanted <= until:
                words[port.wanted_word] = NEVER
                if port.doorbell is not None and not port.hand_over(wanted):
                    self._turns.ring(port.doorbell)

    def _pending(self) -> int:
        awaited = len(self._held) > len(self._scripted) or self._soon or self._crash_ns < NEVER
        busy = awaited or self.now_ns < max(self._live_from, self._awake_until)
        return int(bool(busy) or self.core.next_timeout() is not None)

    @property
    def pauses(self) -> bool:
        """Whether the brake holds it now."""
        return bool(self.brake.spells) and time.monotonic() < self.resumes_s

    @property
    def stands(self) -> bool:
        """Whether the node stands at the limit. Raising the limit rings, and then it goes on."""
        return self.now_ns >= self._words[LIMIT_WORD] < self._crash_ns

    def must_wait(self) -> bool:
        """Write into the page which horizon this node waits for; False when every neighbour is already there."""
        words = self._words
        need = min(self.now_ns + self.step_ns, words[LIMIT_WORD])
        least = need
        slowest: LinkPort | None = None
        for port in self._ports:
            limit = words[port.horizon_word] + port.delay_ns
            if limit < least:
                least = limit
                slowest = port
        if slowest is None:
            return False
        wanted = need - slowest.delay_ns
        words[slowest.want_word] = wanted
        # The neighbour may have published between our look and our wish, and then it does not ring: look again.
        if words[slowest.horizon_word] < wanted:
            return True
        words[slowest.want_word] = NEVER
        return False
