"""A node that asks others by directed routes, one request at a time, for tests of their agents."""

from collections.abc import Callable
from typing import Any

from mrcfabric.node import Input, Transmit
from mrcfabric.units import NEVER
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.smp import SELF_PORT, Smp, encode, parse, request, step
from tests.support.credit_hosts import CreditHost

LATE_NS = 100_000


class SubnetProber(CreditHost):
    """A host that also asks: `asking` has the requests, and `told` what came back for each; None: nothing did."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.asking: list[tuple[int, int, tuple[int, ...], int, bytes]] = []
        """(method, attribute, path, modifier, data)."""
        self.told: list[Smp | None] = []
        self.next: Callable[[], None] = lambda: None
        """Called when nothing is left to ask; may ask for more."""
        self._since_ns = NEVER
        self._number = 0

    def ask(self, method: int, attribute: int, path: tuple[int, ...], modifier: int = 0, data: bytes = b"") -> None:
        """One more request."""
        self.asking.append((method, attribute, path, modifier, data))

    def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
        """As `CreditHost`; requests leave as soon as the one before is answered or late."""
        rest, answers = [], []
        for one in inputs:
            at_ns, _, _, _, body = one  # compiled cores hand over plain tuples
            smp = None if isinstance(body, ControlFrame) or body[0] >> 4 != 15 else parse(body)
            (rest if smp is None else answers).append(one if smp is None else (at_ns, smp))
        out = super().advance(rest, until)
        for _, smp in answers:
            # Requests of its own that come back to it, or of others, it leaves without an answer.
            if not smp.d:
                continue
            found = step(smp, 1)
            assert found is not None
            assert found[0] == SELF_PORT
            if smp.transaction_id == self._number:
                self.told.append(smp)
                self._since_ns = NEVER
        if self._since_ns != NEVER and until >= self._since_ns + LATE_NS:
            self.told.append(None)
            self._since_ns = NEVER
        if self._since_ns == NEVER:
            if not self.asking:
                self.next()
            if self.asking:
                self._send(until, out)
        return out

    def next_timeout(self) -> int | None:
        """Also when a request is late, and the next instant when there is one to send."""
        due = super().next_timeout()
        own = self._since_ns + LATE_NS if self._since_ns != NEVER else self.now_ns + 1 if self.asking else NEVER
        soonest = min(own, NEVER if due is None else due)
        return None if soonest == NEVER else soonest

    def _send(self, now: int, out: list[Transmit]) -> None:
        method, attribute, path, modifier, data = self.asking.pop(0)
        self._number += 1
        found = step(request(method, attribute, path, self._number, modifier, data), SELF_PORT)
        assert found is not None
        self._since_ns = now
        self.port.offer(now, encode(found[1]), 15, out)
