"""Where the packets wait that came in on one (port, class): which sending ports hold a buffer full. Pure arithmetic.

Owns the account of bytes by (ingress pair, sending port), and how often which sending port was the reason to pause a
neighbour: the one that held most of the pair's bytes at that instant. `switchd.core.buffer` decides when to pause; here
is only why.
"""


class Waiting:
    """The account. A pair is `port * CLASSES + class` of ingress; a port is one of egress."""

    __slots__ = ("held", "reasons")

    def __init__(self, pairs: int) -> None:
        self.held: list[dict[int, int]] = [{} for _ in range(pairs)]
        """By pair: bytes that wait at each port; no entry for a port with none."""
        self.reasons: list[dict[int, int]] = [{} for _ in range(pairs)]
        """By pair: how often each port was the reason."""

    def enter(self, pair: int, port: int, size: int) -> None:
        """`size` bytes that came in on this pair wait at a port."""
        held = self.held[pair]
        held[port] = held.get(port, 0) + size

    def leave(self, pair: int, port: int, size: int) -> None:
        """`size` of them have left it."""
        held = self.held[pair]
        left = held[port] - size
        if left:
            held[port] = left
        else:
            del held[port]

    def asked(self, pair: int) -> None:
        """The neighbour of this pair is asked to pause now: count the port that holds most, of equals the first."""
        held = self.held[pair]
        if held:
            most = max(held.values())
            port = min(port for port, size in held.items() if size == most)
            self.reasons[pair][port] = self.reasons[pair].get(port, 0) + 1

    def rows(self, pair: int) -> list[tuple[int, int, int]]:
        """(port, times it was the reason, bytes that wait there now), by port, of ports that have either."""
        held, reasons = self.held[pair], self.reasons[pair]
        return [(port, reasons.get(port, 0), held.get(port, 0)) for port in sorted({*held, *reasons})]
