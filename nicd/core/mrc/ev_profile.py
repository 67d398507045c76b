"""The EVs of one QP, as its EV profile gives them: their states, and which one carries the next packet.

Owns the active set (a deck per plane), the reserve, and replacement inside a plane. `ev_deck` picks in a plane. The
`path_policy` decides what a trigger does to a state, for MRC by the table in `ev_state`. `probe` probes bad EVs,
`inflight` judges that a packet is lost, and the ports and the peer say which planes can be used at all.

MRC 1.0 11.2 (states, scan), arXiv 2605.04333 section 2 (equal planes, reserve).
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from nicd.core.ev_state import EvState, EvTrigger
from nicd.core.events import EvTransition
from nicd.core.mrc.deny_list import DenyList
from nicd.core.mrc.ev_deck import PlaneDeck
from nicd.core.mrc.ev_format import EvEntry
from nicd.core.mrc.ev_universe import EvSet
from nicd.core.mrc.path_policy import PathPolicy
from nicd.core.mrc.path_records import PathRecords
from nicd.core.mrc.path_shares import PathShares
from nicd.core.stats import NicStats

_SKIP: Final = EvState.SKIP
_LOSSES: Final = (EvTrigger.GAP, EvTrigger.TIMEOUT)
_QUEUES: Final = (EvTrigger.ECN, EvTrigger.TRIM)
"""They tell of a queue on the path."""
_ALIKE: Final = 2
"""Two paths lose packets alike if one has failed at most so many times as often as the other."""
BY_EV: Final = 1
"""The controller named this EV."""
BY_PATH: Final = 2
"""The NIC's list of denied paths covers it."""
BY_PROFILE: Final = 4
"""The controller named this EV of the profile, for all QPs that use it."""


class EvProfile:
    """All EVs of one QP, by index: first the active ones as drawn, then the reserve."""

    __slots__ = (
        "_barred", "_dead_losses", "_events", "_keep", "_min_active", "_on_bad", "_plane_order", "_plane_scan",
        "_policy", "_qpn", "_rng", "_since_ns", "_skipped_ns", "_stats", "_tally", "_target", "active", "bad_on",
        "decks", "down_ns", "evs", "filled", "index_of", "on_dead", "outer", "path", "plane", "records",
        "resends_elsewhere", "states",
    )  # fmt: skip

    def __init__(
        self,
        qpn: int,
        evs: EvSet,
        planes: int,
        policy: PathPolicy,
        rng: Rng,
        stats: NicStats,
        events: Callable[[EvTransition], None],
        on_bad: Callable[[Instant, int], None],
        skip_ns: int = NEVER,
        tally: list[list[int]] | None = None,
        late_ns: int = 0,
        base_rtt_ns: int = 1,
        forget_ns: int = 1,
        keep_ppt: int = 0,
        dead_losses: int = 3,
        turn_ppt: int = 0,
    ) -> None:
        """`on_bad` is called with each EV that enters ASSUMED_BAD: (now, index). `skip_ns` and `turn_ppt`: as in
        `PlaneDeck`. `tally`: numbers of EVs by plane and state, which count these EVs until `leave`. `late_ns`: a path
        that is so much later than another gets fewer turns (0: none does). `dead_losses` in a row make a path dead.
        """
        active, reserve = policy.keep(evs.active, evs.reserve, rng)
        entries = active + reserve
        self._qpn = qpn
        self._policy = policy
        self.resends_elsewhere = policy.elsewhere
        self._rng = rng
        self._stats, self._events = stats, events
        self._on_bad = on_bad
        self.on_dead: Callable[[Instant, int, int], None] | None = None
        """Is told of each path that is found dead while another one lives: (now, plane, number of its record)."""
        self._min_active, self._dead_losses = evs.min_active, dead_losses
        self.evs = [entry.ev for entry in entries]
        self.index_of = {ev: index for index, ev in enumerate(self.evs)}
        self.plane = [entry.path.plane for entry in entries]
        self.path = [entry.path.number for entry in entries]
        self.outer = [entry.path.outer for entry in entries]
        self.records = PathRecords(self.plane, self.path, base_rtt_ns, forget_ns)
        self.states: list[int] = [EvState.GOOD] * len(entries)
        self._barred = bytearray(len(entries))
        """Why each EV is barred: the sum of BY_EV, BY_PATH and BY_PROFILE; 0: it is not."""
        self._since_ns: dict[int, Instant] = {}
        """When the controller put another EV at an index: losses of packets sent until then do not concern it."""
        self.active = [True] * len(active) + [False] * len(reserve)
        self._tally = rows = [[0] * len(EvState) for _ in range(planes)] if tally is None else tally
        for plane in self.plane:
            self._tally[plane][EvState.GOOD] += 1
        self._skipped_ns: list[Instant] = [0] * len(entries)  # when each last went into SKIP
        of = [[index for index in range(len(active)) if self.plane[index] == plane] for plane in range(planes)]
        self.decks = [
            PlaneDeck(cards, self.states, rng, row, self.path, self._skipped_ns, skip_ns, turn_ppt)
            for cards, row in zip(of, rows, strict=False)
        ]
        if late_ns and policy.judge(EvState.GOOD, EvTrigger.ECN).target == _SKIP:
            for each in self.decks:
                each.shares = PathShares(self.path, late_ns, self.records, each.cards)
        self._target = [len(deck.cards) for deck in self.decks]
        """Active EVs that each plane should have."""
        self._keep = [-(-target * keep_ppt // 1000) for target in self._target]
        """Active EVs of each plane that stay active when they lose packets but still deliver."""
        self.filled = sum(1 << plane for plane, deck in enumerate(self.decks) if deck.cards)  # bit p: it has active EVs
        self.down_ns: list[Instant] = [-1] * planes
        """When plane p was last found down at either end: losses of packets sent until then accuse no EV."""
        self.bad_on: list[dict[int, int]] = [{} for _ in range(planes)]
        """Number of ASSUMED_BAD EVs by path, plane by plane."""
        self._plane_order = list(range(planes))
        rng.shuffle(self._plane_order)
        self._plane_scan = 0

    def is_late(self, index: int) -> bool:
        """Whether packets on the path of this EV are known to take longer than on another one of its plane."""
        shares = self.decks[self.plane[index]].shares
        return shares is not None and shares.is_late(self.path[index])

    def pick_plane(self, mask: int) -> int:
        """The next plane of the scan among the bits of `mask`, which must not be zero."""
        if not mask & (mask - 1):
            return mask.bit_length() - 1
        order = self._plane_order
        scan = self._plane_scan
        while True:
            if scan == len(order):
                scan = 0
                # One exchange per turn is enough to keep senders from locking in step.
                swap = self._rng.below(len(order))
                order[0], order[swap] = order[swap], order[0]
            plane = order[scan]
            scan += 1
            if mask >> plane & 1:
                self._plane_scan = scan
                return plane

    def pick_other(self, now: Instant, plane: int, index: int) -> int:
        """An EV of `plane` for a packet that was lost on the EV `index`."""
        return self._policy.resend(now, self, plane, index)

    def feedback(self, now: Instant, index: int, trigger: EvTrigger, sent_ns: Instant = 0) -> None:
        """Apply a trigger to the EV with this index. `sent_ns`: when the packet left, if the trigger is a loss."""
        state = EvState(self.states[index])
        if trigger in _LOSSES and (
            sent_ns <= self.down_ns[self.plane[index]] or sent_ns <= self._since_ns.get(index, -1)
        ):
            return
        misses = self.records.missed(index, sent_ns) if trigger in _LOSSES else 0
        if misses >= self._dead_losses:
            self.leave_path(now, index, trigger, self.delivered_ns() > sent_ns)
            return
        if trigger in _QUEUES:
            self.records.queued(now, index)
        rule = self._policy.judge(state, trigger)
        target = rule.target
        if target == state:
            return
        if target == EvState.ASSUMED_BAD and self._is_needed(index):
            return
        if trigger in _LOSSES and target == EvState.ASSUMED_BAD:
            if self._is_kept(now, index):
                return
            common = self._loses_alike(now, index)
            self.records.struck(now, index)
            if common:
                return
        self._enter(now, index, target, trigger, rule.section)

    def leave_path(self, now: Instant, failed: int, trigger: EvTrigger, others: bool) -> None:
        """The path of this EV is dead: all active EVs that use it leave it. `others`: another path is known to live."""
        way = self.records.way
        if others and self.on_dead is not None:
            self.on_dead(now, self.plane[failed], way[failed])
        sharing = [index for index in self.decks[self.plane[failed]].cards if way[index] == way[failed]]
        for index in dict.fromkeys((failed, *sharing)):
            cause = trigger if index == failed else EvTrigger.PATH
            state = EvState(self.states[index])
            rule = self._policy.judge(state, cause)
            # With too few active EVs left it must stay, unless another path is known to live.
            if rule.target == state or (self._is_needed(index) and not others):
                continue
            self.records.struck(now, index)
            self._enter(now, index, rule.target, cause, rule.section)

    def _enter(self, now: Instant, index: int, target: EvState, trigger: EvTrigger, section: str) -> None:
        """An EV gets another state, with all that follows from it."""
        state = EvState(self.states[index])
        self._set_state(index, target)
        if EvState.ASSUMED_BAD in (state, target):
            bad = self.bad_on[self.plane[index]]
            bad[self.path[index]] = bad.get(self.path[index], 0) + (1 if target == EvState.ASSUMED_BAD else -1)
        if target == EvState.SKIP:
            self._stats.ev_skips += 1
            self._skipped_ns[index] = now
        if target in (EvState.ASSUMED_BAD, EvState.DENIED):
            self._take_out(index)
        elif state in (EvState.ASSUMED_BAD, EvState.DENIED):
            self._take_in(index)
        if state > EvState.SKIP or target > EvState.SKIP:
            self._tell(now, index, state, target, trigger, section)
        if target == EvState.ASSUMED_BAD:
            self._on_bad(now, index)

    def bar(self, now: Instant, index: int, by: int, barred: bool) -> bool:
        """The controller bars an EV for one reason, or lifts that bar. The EV is free when no bar is left.

        `by` is BY_EV, BY_PATH or BY_PROFILE. False: nothing changes.
        """
        if bool(self._barred[index] & by) == barred:
            return False
        before = self._barred[index]
        self._barred[index] = before ^ by
        if not before or not self._barred[index]:
            self.feedback(now, index, EvTrigger.DENY if barred else EvTrigger.ALLOW)
        return True

    def follow_denied(self, now: Instant, denied: DenyList, peer: int, through_t1: bool, plane: int) -> int:
        """Bar the EVs of `plane` that the list of denied paths covers, free the rest. Returns how many changed."""
        changed = 0
        # Start with the reserve, so that no reserve EV becomes active that is barred a moment later.
        for index in reversed(range(len(self.evs))):
            if self.plane[index] == plane:
                barred = denied.covers(plane, self.path[index], peer, through_t1)
                changed += self.bar(now, index, BY_PATH, barred)
        return changed

    def replace(self, now: Instant, index: int, entry: EvEntry) -> None:
        """The controller puts another EV of the same plane in the place of this one; it begins GOOD."""
        path = entry.path
        assert path.plane == self.plane[index]
        state = EvState(self.states[index])
        if state == EvState.ASSUMED_BAD:
            self.bad_on[path.plane][self.path[index]] -= 1
        del self.index_of[self.evs[index]]
        self.index_of[entry.ev] = index
        self.evs[index] = entry.ev
        self.path[index] = path.number
        self.records.move(index, path.plane, path.number)
        self.outer[index] = path.outer
        self._set_state(index, EvState.GOOD)
        self._barred[index] = 0
        self._since_ns[index] = now
        if state > EvState.SKIP:
            self._take_in(index)
            self._tell(now, index, state, EvState.GOOD, EvTrigger.ALLOW, "controller")

    def leave(self) -> None:
        """The QP has ended: take its EVs out of the tally. Safe to repeat."""
        own = self.counts()
        for row, counts in zip(self._tally, own, strict=True):
            for state, count in enumerate(counts):
                row[state] -= count
        self._tally = own
        for deck, counts in zip(self.decks, own, strict=True):
            deck.tally = counts

    def counts(self) -> list[list[int]]:
        """Number of EVs by plane and state, the reserve included, counted one by one."""
        table = [[0] * len(EvState) for _ in self.decks]
        for index, state in enumerate(self.states):
            table[self.plane[index]][state] += 1
        return table

    def table(self) -> list[dict[str, int | str | bool]]:
        """One row per EV, in the order of the profile."""
        return [
            {
                "ev": ev,
                "plane": self.plane[index],
                "path": self.path[index],
                "state": EvState(self.states[index]).name,
                "active": self.active[index],
            }
            for index, ev in enumerate(self.evs)
        ]

    def _set_state(self, index: int, state: EvState) -> None:
        row = self._tally[self.plane[index]]
        row[self.states[index]] -= 1
        row[state] += 1
        self.states[index] = state

    def _is_needed(self, index: int) -> bool:
        """Controller API, ev_min_active: whether the NIC has so few active EVs that this one must stay in use."""
        return self.active[index] and sum(len(deck.cards) for deck in self.decks) <= self._min_active

    def _is_kept(self, now: Instant, index: int) -> bool:
        """Whether an EV stays in use although it loses packets: the others have no room, or would lose as many.

        They would where so many EVs of its plane are out that the plane itself loses packets.
        """
        if not self.active[index]:
            return False
        plane = self.plane[index]
        few = len(self.decks[plane].cards) <= self._keep[plane] and self._substitute(index) is None
        # Had another path in use a queue lately, then to leave this one would cost the plane more than it loses.
        return few or self.records.queues_elsewhere(now, index, self.decks[plane].cards)

    def _loses_alike(self, now: Instant, index: int) -> bool:
        """Whether every other path in use of the plane has failed lately, too, and this one not far more often.

        Then no path is better, and to leave this one would only load the others beyond their share.
        """
        least = self._least_elsewhere(now, index)
        return self.active[index] and least > 0 and self.records.strikes(now, index) <= _ALIKE * least

    def relapses(self, now: Instant, index: int) -> int:
        """How often the path of this EV failed again lately, beyond what all paths in use of its plane did."""
        return max(0, self.records.strikes(now, index) - 1 - self._least_elsewhere(now, index))

    def _least_elsewhere(self, now: Instant, index: int) -> int:
        """Fewest recent failures among the other paths in use of its plane; 0 without another."""
        records, way = self.records, self.records.way
        others = {way[card]: card for card in self.decks[self.plane[index]].cards}
        others.pop(way[index], None)
        return min([records.strikes(now, card) for card in others.values()], default=0)

    def delivered_ns(self) -> Instant:
        """When the latest packet left that is known to have arrived by the path of an active EV; -1: none."""
        return max(self.records.latest(deck.cards) for deck in self.decks)

    def _tell(
        self, now: Instant, index: int, source: EvState, target: EvState, trigger: EvTrigger, section: str
    ) -> None:
        cause = trigger.name.lower()
        key = f"{target.name.lower()}:{cause}:{self.plane[index]}"
        transitions = self._stats.ev_transitions
        transitions[key] = transitions.get(key, 0) + 1
        source_name, target_name = source.name.lower(), target.name.lower()
        ev, plane, path = self.evs[index], self.plane[index], self.path[index]
        self._events(EvTransition(now, self._qpn, ev, plane, path, source_name, target_name, cause, section))

    def _take_out(self, index: int) -> None:
        """Take an EV that must not be used any more out of its deck, and put in a reserve EV of the same plane."""
        if not self.active[index]:
            return
        self.active[index] = False
        deck = self.decks[self.plane[index]]
        deck.cards.remove(index)
        substitute = self._substitute(index)
        if substitute is not None:
            self.active[substitute] = True
            deck.cards.append(substitute)
            self._stats.ev_replacements += 1
        deck.change()
        self._refill(self.plane[index])

    def _take_in(self, index: int) -> None:
        """An EV may be used again: put it into its deck if that is short, or in place of one on a crowded path."""
        plane = self.plane[index]
        deck = self.decks[plane]
        if len(deck.cards) >= self._target[plane]:
            load = self._load(plane)
            most = max(deck.cards, key=lambda card: (load.get(self.path[card], 0), card))
            if load[self.path[most]] < load.get(self.path[index], 0) + 2:
                return
            deck.cards.remove(most)
            self.active[most] = False
        self.active[index] = True
        deck.cards.append(index)
        deck.change()
        self._refill(plane)

    def _substitute(self, failed: int) -> int | None:
        """A reserve EV for a failed one: same plane, another path that has not failed, the least loaded first."""
        plane = self.plane[failed]
        load = self._load(plane)
        bad = {
            self.path[index]
            for index, state in enumerate(self.states)
            if state == EvState.ASSUMED_BAD and self.plane[index] == plane
        }
        bad.add(self.path[failed])
        best: tuple[int, int] | None = None
        for index, state in enumerate(self.states):
            if self.plane[index] != plane or self.active[index] or state > _SKIP or self.path[index] in bad:
                continue
            rank = (load.get(self.path[index], 0), index)
            if best is None or rank < best:
                best = rank
        return None if best is None else best[1]

    def _load(self, plane: int) -> dict[int, int]:
        """Number of active EVs by path of one plane."""
        load: dict[int, int] = {}
        for card in self.decks[plane].cards:
            load[self.path[card]] = load.get(self.path[card], 0) + 1
        return load

    def _refill(self, plane: int) -> None:
        bit = 1 << plane
        self.filled = self.filled | bit if self.decks[plane].cards else self.filled & ~bit
