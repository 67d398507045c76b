"""What the sending end of a link counts: plain integers, each from the port's beginning on.

Owns the names and what each means. `egress` counts, and says what they add up to; metrics are made of them elsewhere.
"""

from collections.abc import Iterable


class PortCounts:
    """The counters of one port."""

    __slots__ = (
        "control_bytes_peak", "control_held", "control_packets", "control_sent_bytes", "data_bytes_peak",
        "data_packets", "data_sent_bytes", "drops", "marks", "refused_bytes", "trim_admitted", "trim_dropped",
        "trimmed",
    )  # fmt: skip

    def __init__(self, drop_reasons: Iterable[str]) -> None:
        self.data_packets = 0
        """Departures of the data class, also of packets that a fault then loses."""
        self.data_sent_bytes = 0
        self.control_packets = 0
        """Those of the control class, trimmed packets included."""
        self.control_sent_bytes = 0
        self.control_held = 0
        """Departures of data while control waited and had used up its share."""
        self.marks = 0
        self.refused_bytes = 0
        """Of packets that were dropped at admission, and what trimming cut off."""
        self.trimmed = 0
        """Packets cut because the data queue was full."""
        self.trim_admitted = 0
        """Of them, those admitted to the control queue; they leave when their turn comes, or wait while the port stands
        still."""
        self.trim_dropped = 0
        """Of them, those for which the control queue had no room."""
        self.data_bytes_peak = 0
        self.control_bytes_peak = 0
        self.drops: dict[str, int] = dict.fromkeys(drop_reasons, 0)
        """Packets that did not get into a queue, or that a fault lost, by reason."""

    @property
    def packets(self) -> int:
        """Departures, also of packets that a fault then loses."""
        return self.data_packets + self.control_packets

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return self.data_sent_bytes + self.control_sent_bytes

    def sums(self) -> dict[str, int | dict[str, int]]:
        """The counters by name; peaks are gauges and not among them."""
        return {
            "packets": self.packets,
            "bytes": self.bytes,
            "control_packets": self.control_packets,
            "control_sent_bytes": self.control_sent_bytes,
            "control_held": self.control_held,
            "marks": self.marks,
            "trimmed": self.trimmed,
            "trim_admitted": self.trim_admitted,
            "trim_dropped": self.trim_dropped,
            "refused_bytes": self.refused_bytes,
            "drops": dict(self.drops),
        }
