"""What an InfiniBand switch tells its neighbours of its own ways: fast link fault notification and congestion.

Owns who is told what, and how often. A port that leads to another switch and is in no group is the only way to the LIDs
that the table sends there: what a T1 has towards each T0. When it loses its carrier the switch has no output left for
them and says so by every other port to a switch (FLFN); when it is back, so too. A notice may get lost, so each is said
`TIMES` times, at intervals that double, and says how things stand when it leaves. When more than `arn_bytes` wait at
such a port, whoever sends there is told (ARN), again after half of `arn_ns`, for as long as packets find it so.

Links to NICs have no part in this: where a NIC hangs by one link, nobody knows a better way. What a neighbour does
about a notice is `switchd.core.forwarding.lft`'s.

Sources: NVIDIA, SHIELD: fast link fault notification, adaptive routing notification; figures are ours.
"""

from collections.abc import Callable, Iterator
from typing import Final

from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.routing_notice import BACK, CONGESTED, LOST, RANGES_MAX, Ranges, encode, ranges_of
from switchd.core.events import WayLost
from switchd.core.forwarding.lft import LftForwarding
from switchd.core.settings_credits import ShieldConfig

TIMES: Final = 10
"""How often a change is said."""
AGAIN_NS: Final = 10_000
"""When it is said the second time; each interval is twice the one before."""


class Shield:
    """The notices of one switch. `tell(instant, port, frame)` sends one."""

    def __init__(
        self, config: ShieldConfig, forwarding: LftForwarding, tell: Callable[[Instant, int, ControlFrame], None]
    ) -> None:
        self.config = config
        self._forwarding = forwarding
        self._tell = tell
        self._outputs = frozenset(config.switches) - frozenset(forwarding.config.group)
        """Ports that are the only way to what lies behind them."""
        self._down: set[int] = set()
        """Ports to switches that have no carrier."""
        self._lost: set[int] = set()
        """Those of `_outputs` of which neighbours have been told so."""
        self._changes: list[tuple[Instant, int, bool]] = []
        self._again: dict[int, tuple[int, Instant]] = {}
        """By output: how often its state is to be said yet, and when next."""
        self._said: dict[tuple[int, int], Instant] = {}
        """By (port told, congested output): when that was said last."""
        self.events: list[WayLost] = []
        self.sent = {"lost": 0, "back": 0, "congested": 0}
        """Notices by kind."""

    @property
    def next_ns(self) -> Instant:
        """When something is to be said; NEVER: nothing is."""
        due = self._changes[0][0] if self._changes else NEVER
        return min((due, *(at_ns for _, at_ns in self._again.values())))

    def carrier(self, at_ns: Instant, port: int, up: bool) -> None:
        """A port has lost its carrier, or has it again. Instants never go back."""
        if self.config.flfn_ns < 0 or port not in self.config.switches:
            return
        (self._down.discard if up else self._down.add)(port)
        if port in self._outputs:
            self._changes.append((at_ns + self.config.flfn_ns, port, up))
        if up:
            # Who is behind it may have begun anew, and knows nothing.
            for output in self._lost - {port}:
                self._again[output] = TIMES, at_ns

    def run(self, at_ns: Instant) -> None:
        """Say what is due at this instant."""
        while self._changes and self._changes[0][0] <= at_ns:
            _, port, up = self._changes.pop(0)
            if up != (port in self._lost):
                continue
            (self._lost.discard if up else self._lost.add)(port)
            self._again[port] = TIMES, at_ns
            self.events.append(WayLost(at_ns, port, up, sum(count for _, count in self._ranges(port))))
        for port, (times, due_ns) in sorted(self._again.items()):
            if due_ns <= at_ns:
                self._say(at_ns, port)
                self._again[port] = times - 1, at_ns + (AGAIN_NS << TIMES - times)
                if times == 1:
                    del self._again[port]

    def congested(self, at_ns: Instant, in_port: int, port: int, waiting: int) -> None:
        """A packet that came by `in_port` waits at `port`, where there are so many bytes."""
        limit = self.config.arn_bytes
        if limit < 0 or waiting <= limit or port not in self._outputs or in_port not in self.config.switches:
            return
        if at_ns < self._said.get((in_port, port), -NEVER) + self.config.arn_ns // 2:
            return
        self._said[in_port, port] = at_ns
        self._send(at_ns, in_port, CONGESTED, port, self.config.arn_ns)

    def _say(self, at_ns: Instant, output: int) -> None:
        kind = LOST if output in self._lost else BACK
        for port in self.config.switches:
            if port != output and port not in self._down:
                self._send(at_ns, port, kind, output)

    def _send(self, at_ns: Instant, port: int, kind: int, output: int, hold_ns: int = 0) -> None:
        for part in _parts(self._ranges(output)):
            self.sent["lost" if kind == LOST else "back" if kind == BACK else "congested"] += 1
            self._tell(at_ns, port, encode(kind, part, hold_ns))

    def _ranges(self, output: int) -> Ranges:
        """The LIDs that the table sends by a port."""
        table = self._forwarding.table
        return ranges_of([lid for lid in range(1, len(table)) if table[lid] == output])


def _parts(ranges: Ranges) -> Iterator[Ranges]:
    for start in range(0, len(ranges), RANGES_MAX):
        yield ranges[start : start + RANGES_MAX]
