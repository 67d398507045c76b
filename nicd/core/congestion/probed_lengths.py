"""The lengths of planes, as probes tell them that pass the queues of data.

Owns when a peer is asked, and what its answers mean. `nicd.core.mrc.length_probes` sends the probes.

Round trips of data cannot tell a longer plane from one whose queue never empties: where a rack sends more than its
up-links carry, all round trips of a plane are late by that queue, for as long as it lasts. A flow that takes the queue
for a length keeps its window, and those that do not give way to it. A probe in the control class waits for no data but
the packet that is on the wire. So data only raise a suspicion, and probes decide. A shorter round trip of data is true
without asking.

A probe is short. A full packet takes longer by its time on each wire, by more where links are slow; there a probe has
waited for half a packet at each, on average, and a full one takes about twice as much longer than that. Where packets
are marked links are full, and a probe waits at each, there and back: that is as long as a full packet takes on them.
All this counts at low rates, where a packet takes longer on the wires than planes differ that are alike.

One answer is no proof that a plane is longer: where a link is slow, a packet on each wire makes a probe as late as a
plane that is longer by some us. A window that is too large for its plane then keeps the queue that agrees with the
answer. So the peer is asked twice more, and the least of answers that are about alike counts. At low rates that would
be a probe that met no packet at all, and a plane with slow links would seem to have a queue: there they are averaged.

All planes may be longer alike, or the only one: then nothing is late beside another plane, and windows close for a
delay that no smaller window makes shorter. So round trips are also compared with the base RTT. Mostly that finds a
queue, and a queue that is known to be full, by marks or by what overflowed, is no reason to ask. Where every plane is
longer, acknowledgements come back on longer planes, too, and a round trip is longer twice: the shortest plane says by
how much any acknowledgement is late at least.

A deliberate addition: MRC 1.0 4 has one base RTT for all planes. The probes are its endpoint EV probes (2.6), which may
travel in any class.
"""

from collections.abc import Callable, Sequence
from typing import Final

from mrcfabric.units import NEVER, Instant
from nicd.core.congestion.plane_lengths import SAMPLES_LEAST, IsLonger, PlaneLengths

_FIRST_RTTS: Final = 2
"""The first span is so many base RTTs: a plane of which nothing was heard by then may be a long one."""
_QUESTIONS: Final = 2
"""So often it is asked again after an answer that made a plane longer."""
_SLOW_WIRES: Final = 2
"""A full packet takes longer on slow links than a probe waits there, by so many times its time on all wires at most."""
_MARKED_PARTS: Final = 4
"""Links are full where one packet in so many is marked."""
_WAIT_SPANS: Final = 4
"""Answers are waited for in so many spans. The longest plane of which anything is learnt takes as long."""
_REST_SPANS: Final = 16
"""While answers change nothing, the next probes leave after twice the time, at most after so many spans."""


class ProbedLengths(PlaneLengths):
    """The lengths of the contexts towards one destination."""

    __slots__ = (
        "_answer_ns", "_ask", "_asked_ns", "_before_ns", "_busy", "_due_ns", "_is_exact", "_known_ns", "_marks",
        "_own_ns", "_packet_ns", "_questions", "_rest_ns", "_sent_ns", "_suspected_ns", "_waiting", "_wires_ns",
    )  # fmt: skip

    def __init__(
        self,
        count: int,
        base_ns: int,
        fabric_ns: int,
        is_longer: IsLonger,
        ask: Callable[[Instant], int],
        sent_ns: Sequence[Instant],
        packet_ns: Sequence[int],
    ) -> None:
        """`ask` sends probes over all planes, and returns how many answers to expect, 0 if none left.

        `sent_ns`: when the last packet of each context left, 0 if none has. `packet_ns`: how long a full packet of
        each takes on all wires, more than a probe.
        """
        super().__init__(count, base_ns, fabric_ns, is_longer)
        self._first_ns = fabric_ns * _FIRST_RTTS
        self._ask = ask
        self._sent_ns = sent_ns
        # Less than a margin settles nothing.
        self._packet_ns = [wires_ns if wires_ns > self._margin_ns else 0 for wires_ns in packet_ns]
        self._is_exact = not any(self._packet_ns)
        """Whether packets are short beside a margin. Where they are not, acknowledgements wait for those on the wires,
        some for long and some not at all: the shortest round trips of data lack what a probe has waited."""
        self._marks = [0] * count
        """Round trips of the span under way that were marked, by context."""
        self._busy = 0
        """Bit n: a queue of context n overflowed in the span under way."""
        self._wires_ns = list(self._packet_ns)
        """What a full packet takes longer than a probe, by context: nothing where links are full."""
        self._own_ns = [NEVER] * count
        """The shortest round trip of data in the last span that had enough of them, by context; NEVER: none had."""
        self._suspected_ns = [0] * count
        """By how much a context seemed longer than the shortest when it was last suspected for a new reason."""
        self._answer_ns = [NEVER] * count
        """By how much the probes that were sent last took longer, at least, by context."""
        self._known_ns = [NEVER] * count
        """What all probes took longer since one did so by more than a margin, by context: see `_agreed`."""
        self._before_ns = list(self._known_ns)
        """The same before these probes were sent."""
        self._questions = 0
        """How often more the peer is asked, whatever data say."""
        self._waiting = 0
        """Answers that are still to come."""
        self._asked_ns: Instant = 0
        self._due_ns: Instant = 0
        """When probes may leave again."""
        self._rest_ns = self._span_ns

    def busy(self, number: int) -> None:
        self._busy |= 1 << number

    def measured(self, now: Instant, number: int, rtt_ns: int, marked: bool) -> bool:
        if marked:
            self._marks[number] += 1
        return super().measured(now, number, rtt_ns, marked)

    def _compare(self, now: Instant) -> None:
        if self._waiting and now >= self._asked_ns + _WAIT_SPANS * self._span_ns:
            self._waiting = 0
            self._believe(now)
        least = self._least_ns
        shortest_ns = min(least)
        # If all planes have become shorter, ways back have, too.
        back_ns = min(self.back_ns, max(0, shortest_ns - self._base_ns) >> 1)
        own_base_ns = self._base_ns + (back_ns if self._is_exact else 0)
        suspected = False
        for number, rtt_ns in enumerate(least):
            overflows = self._busy >> number & 1
            # A late plane causes few SACKs: keep its samples until there are enough. So does one that trims.
            if self._samples[number] < SAMPLES_LEAST:
                suspected |= self._own_ns[number] == NEVER and self._sent_ns[number] > 0 and not overflows
                continue
            is_full = self._marks[number] * _MARKED_PARTS >= self._samples[number]
            self._wires_ns[number] = 0 if is_full else self._packet_ns[number]
            self._samples[number] = self._marks[number] = 0
            self._own_ns[number] = rtt_ns
            self._shorten(rtt_ns - own_base_ns, number)
            # Where no queue is known to be full, what is late on all planes alike may be their length, too.
            expected_ns = shortest_ns if is_full or overflows else min(shortest_ns, self._base_ns + back_ns)
            suspected |= self._is_suspect(now, number, rtt_ns - expected_ns)
        self._busy = 0
        self._least_ns = [rtt_ns if self._samples[number] else NEVER for number, rtt_ns in enumerate(least)]
        self._tell(now)
        if (suspected or self._questions) and now >= self._due_ns and not self._waiting:
            self._begin(now)

    def _shorten(self, own_ns: int, number: int) -> None:
        """A context is no longer than its own round trips of data say."""
        if own_ns < self.extra_ns[number]:
            self.extra_ns[number] = self._beyond_margin(own_ns)
            self._suspected_ns[number] = 0

    def _is_suspect(self, now: Instant, number: int, surplus_ns: int) -> bool:
        """Whether a context seems longer than is known, now that its data take longer than expected by `surplus_ns`."""
        if surplus_ns <= self.extra_ns[number] + self._margin_ns:
            return False
        if surplus_ns > self._suspected_ns[number] + self._margin_ns:
            self._suspected_ns[number] = surplus_ns
            self._rest_ns = self._span_ns
            self._due_ns = now
        return True

    def _begin(self, now: Instant) -> None:
        """Ask how long planes are, if the NIC asks nobody else just now."""
        self._waiting = self._ask(now)
        if not self._waiting:
            self._questions = max(1, self._questions)
            return
        self._asked_ns = now
        self._questions = max(0, self._questions - 1)
        self._answer_ns, self._before_ns = [NEVER] * len(self._answer_ns), list(self._known_ns)
        self._due_ns = now + self._rest_ns
        self._rest_ns = min(2 * self._rest_ns, _REST_SPANS * self._span_ns)

    def answered(self, now: Instant, number: int, rtt_ns: int, same: bool) -> bool:
        """A probe that passed the queues was answered, on the `same` plane or another. True: all answers are here."""
        if not self._waiting:
            return False
        self._waiting -= 1
        longer_ns = rtt_ns + self._wires_ns[number] - self._base_ns
        if same and longer_ns > 0:
            # What the plane is longer is in it twice.
            longer_ns >>= 1
        self._answer_ns[number] = min(self._answer_ns[number], longer_ns)
        if self._waiting and NEVER in self._answer_ns:
            return False
        self._believe(now)
        return True

    def _believe(self, now: Instant) -> None:
        """Take from the answers so far how long the contexts are."""
        known = self._known_ns
        for number, longer_ns in enumerate(self._answer_ns):
            if longer_ns != NEVER:
                known[number] = self._agreed(self._before_ns[number], longer_ns)
        all_known = self._is_exact and NEVER not in known
        back_ns = self._least_back(known) if all_known else 0
        half_ns = self._margin_ns >> 1
        all_longer = all_known and min(known) > half_ns
        for number, longer_ns in enumerate(known):
            if self._answer_ns[number] == NEVER:
                continue
            # A plane that is longer stays so down to half a margin: answers are later and less late by chance. All that
            # are later, though nothing else is known of them, have slow links, on which a full packet takes longer.
            extra_ns = (
                longer_ns if longer_ns > (half_ns if self.extra_ns[number] or all_longer else self._margin_ns) else 0
            )
            if extra_ns:
                extra_ns += max(self._margin_ns, min(longer_ns, _SLOW_WIRES * self._wires_ns[number]))
                extra_ns = self._beyond_margin(min(extra_ns, self._own_ns[number] - self._base_ns - back_ns))
            if extra_ns > self.extra_ns[number]:
                self._questions = _QUESTIONS
            if extra_ns != self.extra_ns[number]:
                self.extra_ns[number] = self._suspected_ns[number] = extra_ns
                self._rest_ns = self._span_ns
        self._tell(now)

    def _agreed(self, known_ns: int, longer_ns: int) -> int:
        """What is known after an answer: of answers that are about alike the least, and at low rates their average."""
        if longer_ns > known_ns + self._margin_ns or known_ns == NEVER:
            return longer_ns
        return min(known_ns, longer_ns) if self._is_exact else known_ns + longer_ns >> 1

    def _beyond_margin(self, longer_ns: int) -> int:
        """A length; 0 if it is within the margin."""
        return longer_ns if longer_ns > self._margin_ns else 0

    def _least_back(self, longer_ns: Sequence[int]) -> int:
        """By how much any acknowledgement is late at least, where contexts are longer by so much: less by chance."""
        return max(0, min(longer_ns) - self._margin_ns)

    def _tell(self, now: Instant) -> None:
        """Tell each context how long its round trips are."""
        self.back_ns = self._least_back([min(pair) for pair in zip(self.extra_ns, self._known_ns, strict=True)])
        for number, extra_ns in enumerate(self.extra_ns):
            self._is_longer(now, number, extra_ns + self.back_ns)
