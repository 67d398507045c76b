"""Which share of its turns each path of one plane gets: less when its packets are late and marked and others are not.

Owns the shares, and the verdict that a packet was late because of its path alone. `ev_deck` picks the next EV of the
scan; `ev_state` says what a mark does to the state of an EV.

The texts leave a marked EV out for about one turn (MRC 1.0 11.2.2), which halves the use of a path at most. That is too
little for a link that has lost more than half of its rate: its queue makes the whole plane late, and the window of the
plane shrinks because of one path. So a path that is marked while its round trips are longer than those of another path
of the plane by a margin keeps as much of its turns as the shortest of these round trips and the margin are of its own:
a path that takes ten times as long gets far fewer turns at once. It gets fewer only once in its own round trip, because
packets that left before tell of its old share. A trim inside the fabric does the same where another path lets whole
packets through, and halves the share of a path of which no round trip is known. To halve it each time is too much where
all paths of a plane have queues: two up-links then empty and fill in turn. A path that is not late on average keeps its
share at a trim, but is known to be late. With each round trip that is not marked a path gets a 64th of the whole back,
and, because packets of longer paths cause few SACKs, whenever nothing is heard of it for as long as it is later than
the shortest. In less time slow paths would get turns back faster than marks take them, and hold the window with their
queues; where all are late, nothing has to be waited for. A plane that is late as a whole has no such path: the
congestion window answers that.

A packet that is late by a margin while another path was quicker a moment ago met neither the receiver's queue nor that
of the plane. So the congestion window is told neither its mark nor its round trip.

A path may also be longer than others. `path_records` knows how long each path has been at least and at most. What a
path without marks is longer than the shortest one of its plane is taken off its round trips before the congestion
window sees them: it would take that for the receiver's queue. And the window is told the mean of it, so much longer is
a round trip. What is surely longer counts, by a large margin where few packets have shown it. Where links are slow, a
packet is known to have arrived long after it has: the bounds are far apart, and what is surely longer is little. There
the middle of the bounds counts, if many packets have come and it is far from that of the shortest path.

Data cannot tell length from a queue that is too short for marks, and at a tenth of the rate five packets take longer
than a round trip. So what seems longer is probed (`nicd.core.mrc.path_lengths`), and no longer than the probes say.
What it is late beyond that is a queue, and the path gets fewer of its turns without any mark. What is marked
has a queue, and seems longer than it is: it counts as longer only where a probe says nearly as much as data do. On a
slow link a packet takes longer without any queue, too, but the queue is most of what it is late there.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NEVER, Instant
from nicd.core.mrc.path_records import PathRecords

WHOLE: Final = 1024
_LEAST: Final = WHOLE // 64
_MORE: Final = WHOLE // 64
_KEPT_LEAST: Final = WHOLE // 4
"""The least that one reduction leaves of a share."""
_SMOOTH_SHIFT: Final = 3
"""A round trip moves the average of its path by 1/8 of the difference."""
_FRESH_MARGINS: Final = 16
"""Averages older than so many margins are ignored: the path may be out of use."""
_RECENT_MARGINS: Final = 6
"""Single round trips count for so many margins: queues may have grown since."""
_UNTRIMMED_MARGINS: Final = 2
"""And for so many where nobody trims."""
_LATE_MARGINS: Final = 3
_KNOWN_PARTS: Final = 8
"""A path that has all its turns is late alone by so many margins; one in `thinned` is known to be late: by one margin
in so many."""
_LONGER_HALVES: Final = 3
"""A path is longer than the shortest one if its shortest round trips are so by more than so many half margins. Less may
be a queue that one path happened to meet short."""
_CLOSE_PARTS: Final = 2
"""Where many packets have come, it is longer by more than one margin in so many: all of them will not have met it."""
_LENGTH_PARTS: Final = 8
"""Beside a queue a path is longer only if probes say so of all but one part in so many of what it is late."""
_LATE_SHARE: Final = WHOLE * 3 // 4
"""A path that gets fewer of its turns has a slow link. Less than this may be a queue that comes and goes."""
_SPAN_MARGINS: Final = 16
"""The shortest round trips of paths are compared once in so many margins: queues come and go in that time."""


class PathShares:
    """The paths of one plane of one QP. Bounded by their number."""

    __slots__ = (
        "_cards", "_changed_ns", "_close_ns", "_credit", "_fresh_ns", "_given_ns", "_heard_ns", "_known_ns", "_lags",
        "_last_ns", "_least_ns", "_longer_ns", "_margin_ns", "_marked", "_mean_ns", "_own_ns", "_path", "_probed",
        "_recent_ns", "_records", "_returned_ns", "_rtt_ns", "_span_end_ns", "on_uneven", "probed_ns", "thinned",
    )  # fmt: skip

    def __init__(self, path: list[int], margin_ns: int, records: PathRecords, cards: list[int]) -> None:
        """`path`: of each EV of the profile; `margin_ns`: a path that is so much later than another is late.

        `records` know how long paths are; `cards`: the EVs of the plane in use.
        """
        self._records = records
        self._cards = cards
        self._path = path
        self._margin_ns = margin_ns
        self._longer_ns = margin_ns * _LONGER_HALVES // 2
        self._close_ns = margin_ns // _CLOSE_PARTS
        self._known_ns = margin_ns // _KNOWN_PARTS
        self._fresh_ns = _FRESH_MARGINS * margin_ns
        self._recent_ns = _RECENT_MARGINS * margin_ns
        self._rtt_ns: dict[int, int] = {}
        self._last_ns: dict[int, int] = {}
        self._heard_ns: dict[int, Instant] = {}
        """By path: its average round trip, the last one, and when that was heard."""
        self._least_ns = NEVER
        """The shortest round trip so far."""
        self._lags: dict[int, tuple[int, int, bool]] = {}
        """By path: what `PathRecords.lags_of` last said."""
        self._own_ns: dict[int, int] = {}
        """Path -> by how much it is longer than the shortest one of the plane, for paths that are longer."""
        self.probed_ns: Callable[[Instant, int, int], int] | None = None
        """Says by how much the path of an EV is longer than the plane, if by data it seems to be so many ns. NEVER: not
        known yet. None: nobody can be asked.
        """
        self._probed: set[int] = set()
        """Paths of which it has said that. What else they are late is a queue, marked or not."""
        self._marked: set[int] = set()
        """Paths that were marked in the span under way."""
        self._span_end_ns: Instant = 0
        self._mean_ns = 0
        """The mean of these lengths over all paths."""
        self.on_uneven: Callable[[Instant, int, int], None] = lambda now, mean_ns, longest_ns: None
        """Is told this mean when it changes, and the longest of them."""
        self._changed_ns: dict[int, Instant] = {}
        """When each path last got fewer turns: packets that left before say nothing about its share now."""
        self._given_ns: Instant = 0
        """When silent paths were last looked for."""
        self._returned_ns: dict[int, Instant] = {}
        """When each path last got turns back because it was silent."""
        self._credit: dict[int, int] = {}
        self.thinned: dict[int, int] = {}
        """Path -> its share of its turns in 1/1024, for paths that are late: they get less than all, or will."""

    def untrimmed(self) -> None:
        """Nobody trims. A queue tells of itself by lateness alone, and losses that none explains accuse paths.

        So less counts as late because of a path alone, and what has a queue waits for news before it gets turns back.
        """
        self._given_ns = NEVER
        self._known_ns = self._margin_ns
        self._recent_ns = _UNTRIMMED_MARGINS * self._margin_ns

    def heard(self, now: Instant, card: int, rtt_ns: int, marked: bool) -> int | None:
        """A packet on this EV was acknowledged. Returns its round trip, less what its path is longer than others.

        None: it was late because of its path alone.
        """
        path = self._path[card]
        if now >= self._span_end_ns:
            self._span_end_ns = now + _SPAN_MARGINS * self._margin_ns
            self._compare(now)
        left_ns = now - rtt_ns
        rtt_ns = max(0, rtt_ns - self._own_ns.get(path, 0))
        average = self._rtt_ns.get(path, rtt_ns)
        self._rtt_ns[path] = average = average + (rtt_ns - average >> _SMOOTH_SHIFT)
        self._last_ns[path] = rtt_ns
        self._heard_ns[path] = now
        if marked:
            self._marked.add(path)
        queued = marked or path in self._probed
        free_ns = self._shortest(now, min(average, rtt_ns) - self._margin_ns) if queued else 0
        if free_ns:
            self._thin(now, path, left_ns, WHOLE * (free_ns + self._margin_ns) // rtt_ns)
        elif not marked and path in self.thinned:
            self._give_back(path)
        if self.thinned and now >= self._given_ns + self._margin_ns:
            self._given_ns = now
            for silent in self._silent(now):
                self._returned_ns[silent] = now
                self._give_back(silent)
        if rtt_ns < self._least_ns:
            self._least_ns = rtt_ns
        late_ns = rtt_ns - (self._known_ns if path in self.thinned else self._margin_ns * _LATE_MARGINS)
        return None if late_ns > self._least_ns and self._is_quicker(now, late_ns) else rtt_ns

    def is_late(self, path: int) -> bool:
        """Whether packets on it are known to take longer than on another path, without a queue or because of it."""
        return path in self._own_ns or self.thinned.get(path, WHOLE) < _LATE_SHARE

    def _give_back(self, path: int) -> None:
        """A path gets a part of its turns back."""
        share = self.thinned[path] + _MORE
        if share < WHOLE:
            self.thinned[path] = share
        else:
            del self.thinned[path]

    def _silent(self, now: Instant) -> list[int]:
        """Paths with fewer turns of which nothing was heard for as long as their packets are late, and for a margin."""
        heard, changed, returned = self._heard_ns, self._changed_ns, self._returned_ns
        shortest_ns = self._shortest(now, NEVER)
        return [
            path
            for path in self.thinned
            if max(heard.get(path, 0), changed.get(path, 0), returned.get(path, 0))
            + max(self._margin_ns, self._rtt_ns.get(path, 0) - shortest_ns)
            <= now
        ]

    def _compare(self, now: Instant) -> None:
        """A span has ended: see which paths are longer than the shortest one, and by how much all are on average."""
        lags_of = self._records.lags_of
        used = {self._path[card]: card for card in self._cards}
        # What is known of a path stays while it is out of use.
        lags = self._lags
        lags.update({path: found for path, card in used.items() if (found := lags_of(card)) is not None})
        # One path may cause all SACKs: of the others only bounds are known.
        shortest_ns = min((most_ns for _, most_ns, _ in lags.values()), default=0)
        middle_ns = min((lag_ns + most_ns >> 1 for lag_ns, most_ns, _ in lags.values()), default=0)
        own = {}
        for path, (lag_ns, most_ns, by_many) in lags.items():
            own_ns = lag_ns - shortest_ns
            least_ns = self._longer_ns
            if by_many:
                likely_ns = (lag_ns + most_ns >> 1) - middle_ns
                if likely_ns > least_ns:
                    own_ns = max(own_ns, likely_ns)
                least_ns = self._close_ns
            if path in self._marked or path in self.thinned:
                own_ns = self._beside_queue(now, path, used.get(path), own_ns)
            if own_ns > least_ns and path in used and self.probed_ns is not None:
                probed_ns = self.probed_ns(now, used[path], own_ns)
                if probed_ns != NEVER:
                    self._probed.add(path)
                    own_ns = min(probed_ns, max(own_ns, most_ns - shortest_ns))
            if own_ns > least_ns:
                own[path] = own_ns
        self._own_ns = own
        self._marked.clear()
        mean_ns = sum([own.get(path, 0) for path in used]) // max(1, len(used))
        if mean_ns != self._mean_ns:
            self._mean_ns = mean_ns
            self.on_uneven(now, mean_ns, max(own.values(), default=0))

    def _beside_queue(self, now: Instant, path: int, card: int | None, seems_ns: int) -> int:
        """By how much a path with a queue is longer than others, of the `seems_ns` that data say; `card`: its EV."""
        known_ns = min(seems_ns, self._own_ns.get(path, 0))
        if known_ns == seems_ns or seems_ns <= self._longer_ns or card is None or self.probed_ns is None:
            return known_ns
        probed_ns = self.probed_ns(now, card, seems_ns)
        is_length = probed_ns != NEVER and probed_ns * _LENGTH_PARTS >= seems_ns * (_LENGTH_PARTS - 1)
        return seems_ns if is_length else known_ns

    def trimmed(self, now: Instant, card: int, sent_ns: Instant) -> None:
        """A packet on this EV, which left at `sent_ns`, was trimmed inside the fabric."""
        # Its header took a round trip without the full queue. A packet on a free path takes about as long.
        if self._is_quicker(now, now - sent_ns + self._margin_ns):
            path = self._path[card]
            free_ns, average_ns = self._shortest(now, NEVER), self._rtt_ns.get(path, 0)
            known = free_ns and average_ns
            kept = WHOLE * (free_ns + self._margin_ns) // average_ns if known else WHOLE >> 1
            self._thin(now, path, sent_ns, min(WHOLE, kept))

    def _thin(self, now: Instant, path: int, sent_ns: Instant, kept: int) -> None:
        """Leave a path `kept` 1024ths of its share, because of a packet that left at `sent_ns`."""
        if sent_ns < self._changed_ns.get(path, sent_ns):
            return
        share = self.thinned.get(path, WHOLE)
        self.thinned[path] = max(_LEAST, share * max(kept, _KEPT_LEAST) // WHOLE)
        self._changed_ns[path] = now
        if len(self.thinned) >= len(self._rtt_ns):
            # Only what paths get beside each other matters: one of them has all its turns.
            most = max(self.thinned.values())
            self.thinned = {one: own * WHOLE // most for one, own in self.thinned.items() if own < most}

    def _shortest(self, now: Instant, late_ns: int) -> int:
        """The least average among paths with recent round trips shorter than `late_ns`; 0: there is none."""
        heard, fresh_ns = self._heard_ns, now - self._fresh_ns
        return min(
            [rtt for path, rtt in self._rtt_ns.items() if rtt < late_ns and heard[path] >= fresh_ns],
            default=0,
        )

    def _is_quicker(self, now: Instant, late_ns: int) -> bool:
        """Whether the last round trip of some path was shorter than `late_ns`, a moment ago."""
        heard, recent_ns = self._heard_ns, now - self._recent_ns
        return any(rtt < late_ns and heard[path] >= recent_ns for path, rtt in self._last_ns.items())

    def due(self, card: int) -> bool:
        """Whether this EV takes the turn that has come; only while something is thinned."""
        path = self._path[card]
        share = self.thinned.get(path)
        if share is None:
            return True
        credit = self._credit.get(path, 0) + share
        self._credit[path] = credit % WHOLE
        return credit >= WHOLE
