"""One session of BFD with one neighbour: each side sends at a steady pace, and notices when the other falls silent.

Owns the states, the pace and the time-out; asynchronous mode, without echo and without demand. The session is at one
hop. A change is said at once and not only in its turn.

Sources: RFC 5880 6.8.2 (timers), 6.8.3 (changing them), 6.8.4 (time-out), 6.8.6 (packets that come), 6.8.7 (those that
go).
"""

from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, NS_PER_S, NS_PER_US, Instant
from mrcfabric.wire.bfd import (
    ADMIN_DOWN,
    DOWN,
    INIT,
    NEIGHBOR_SAYS_DOWN,
    NO_DIAGNOSTIC,
    PATH_DOWN,
    TIME_EXPIRED,
    UP,
    Bfd,
)
from switchd.core.settings_bfd import BfdKnobs

SLOW_NS: Final = NS_PER_S
"""Nobody sends more often before the session is up (RFC 5880 6.8.3)."""


class Liveness:
    """One session. `out` has the packets to send; its owner empties it."""

    def __init__(self, knobs: BfdKnobs, discriminator: int, rng: Rng) -> None:
        self.state = DOWN
        self.out: list[Bfd] = []
        self.send_ns: Instant = NEVER
        """When the next packet goes."""
        self.detect_ns: Instant = NEVER
        """When the neighbour counts as silent."""
        self._knobs = knobs
        self._mine = discriminator
        self._rng = rng
        self._yours = 0
        self._peer_required_ns = 0
        """How often at most the neighbour wants packets; 0: not at all, as far as it has said."""
        self._peer_known = False
        self._diagnostic = NO_DIAGNOSTIC
        self._poll = False

    def start(self, at_ns: Instant) -> None:
        """The port can be used: begin to send."""
        if self.send_ns == NEVER:
            self._say(at_ns)

    def stop(self) -> bool:
        """The port cannot be used: send nothing and wait for nothing. Whether the session was up."""
        was, self.state = self.state, DOWN
        self.send_ns = self.detect_ns = NEVER
        self._yours, self._poll, self._diagnostic = 0, False, PATH_DOWN
        self._peer_known = False
        return was == UP

    def hear(self, at_ns: Instant, said: Bfd) -> None:
        """Take a packet from the neighbour."""
        if said.yours not in (0, self._mine) or self.send_ns == NEVER:
            return
        before = self.state
        self._yours = said.mine
        self._peer_known, self._peer_required_ns = True, said.required_us * NS_PER_US
        if said.final:
            self._poll = False
        pace_ns = max(self._knobs.bfd_receive_interval_ns, said.desired_us * NS_PER_US)
        self.detect_ns = at_ns + said.multiplier * pace_ns
        self._follow(said.state)
        if self.state == UP != before:
            # From now on the pace is another one, and the neighbour is asked to say that it knows.
            self._poll = True
        if self.state != before:
            self._say(at_ns)
        if said.poll:
            self._say(at_ns, final=True)

    def expire(self, at_ns: Instant) -> bool:
        """The neighbour has been silent for too long. Whether the session was up."""
        was = self.state
        self.detect_ns = NEVER
        self._yours = 0
        if was in (INIT, UP):
            self.state, self._diagnostic, self._poll = DOWN, TIME_EXPIRED, False
            self._say(at_ns)
        return was == UP

    def send(self, at_ns: Instant) -> None:
        """Send the packet that is due."""
        self._say(at_ns)

    def _follow(self, theirs: int) -> None:
        if theirs == ADMIN_DOWN:
            if self.state != DOWN:
                self.state, self._diagnostic = DOWN, NEIGHBOR_SAYS_DOWN
        elif self.state == DOWN:
            if theirs == DOWN:
                self.state = INIT
            elif theirs == INIT:
                self.state, self._diagnostic = UP, NO_DIAGNOSTIC
        elif self.state == INIT:
            if theirs in (INIT, UP):
                self.state, self._diagnostic = UP, NO_DIAGNOSTIC
        elif theirs == DOWN:
            self.state, self._diagnostic = DOWN, NEIGHBOR_SAYS_DOWN

    def _say(self, at_ns: Instant, *, final: bool = False) -> None:
        knobs = self._knobs
        desired_ns = knobs.bfd_transmit_interval_ns
        if self.state != UP:
            desired_ns = max(desired_ns, SLOW_NS)
        self.out.append(
            Bfd(
                self.state, knobs.bfd_detect_multiplier, self._mine, self._yours, desired_ns // NS_PER_US,
                knobs.bfd_receive_interval_ns // NS_PER_US, self._poll and not final, final, self._diagnostic,
            )
        )  # fmt: skip
        if final:
            return
        if self._peer_known and not self._peer_required_ns:
            self.send_ns = at_ns + SLOW_NS
            return
        pace_ns = max(desired_ns, self._peer_required_ns)
        # RFC 5880 6.8.7: 0 to 25 % less, and at least 10 % less where one packet that is lost ends the session.
        least_ns = 0 if knobs.bfd_detect_multiplier > 1 else pace_ns // 10
        self.send_ns = at_ns + pace_ns - least_ns - self._rng.below(pace_ns // 4 - least_ns + 1)
