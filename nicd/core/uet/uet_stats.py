"""What a UET NIC counts beside `nicd.core.stats`. UEC PDS (contexts, NACK codes, control packets)."""

from typing import Final

OUT_OF_ORDER: Final = "uet_out_of_order"
"""Why an ordered context drops a packet behind a gap."""
UNKNOWN_CONTEXT: Final = "uet_unknown_context"
"""No context has the PDCID of a packet, or it belongs to another peer."""
NO_CONTEXT: Final = "uet_no_context"
"""All contexts of a target are in use."""
INVALID_SYN: Final = "uet_invalid_syn"
"""A packet that would open a context contradicts one that is open."""
CONTROL_KIND: Final = "uet_control"
"""A control packet of a kind that means nothing here."""
UET_DROP_REASONS: Final = (OUT_OF_ORDER, UNKNOWN_CONTEXT, NO_CONTEXT, INVALID_SYN, CONTROL_KIND)
"""Reasons beside those of `nicd.core.stats.DROP_REASONS`."""


class UetStats:
    """Counters of one NIC since its start."""

    __slots__ = (
        "closes_asked", "contexts_closed", "contexts_opened", "contexts_refused", "contexts_taken", "credit_requests",
        "early_packets", "freezes", "grants_received", "planes_left", "responses_refused",
        "responses_sent", "speculations_stopped", "syn_packets",
    )  # fmt: skip

    def __init__(self) -> None:
        self.contexts_opened = 0
        """Contexts opened as an initiator."""
        self.contexts_taken = 0
        """Contexts opened by peers."""
        self.contexts_refused = 0
        """Packets that would have opened one too many."""
        self.contexts_closed = 0
        """Contexts closed, as an initiator."""
        self.closes_asked = 0
        """Times that an initiator was asked to close one."""
        self.syn_packets = 0
        """Data packets sent before the peer's PDCID was known."""
        self.responses_sent = 0
        """Responses that complete a message."""
        self.responses_refused = 0
        """Responses with an error, sent."""
        self.early_packets = 0
        """Data packets received behind a gap."""
        self.credit_requests = 0
        """Times that a sender without credit asked for it by a packet of its own."""
        self.grants_received = 0
        """Those of them that brought more."""
        self.speculations_stopped = 0
        """Times that speculative credit became void."""
        self.freezes = 0
        """Times that a sender froze its choice of entropies."""
        self.planes_left = 0
        """Times that a sender left a plane that was silent while others delivered."""

    def record(self) -> dict[str, int]:
        """All counters."""
        return {name: getattr(self, name) for name in self.__slots__}
