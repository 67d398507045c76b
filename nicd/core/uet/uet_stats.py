"""What a UET NIC counts beside `nicd.core.stats`. UEC PDS (contexts, NACK codes, control packets)."""

from typing import Final

from mrcfabric.wire.uet_layout import (
    NACK_INVALID_SYN,
    NACK_MODE,
    NACK_NO_PDC,
    NACK_NO_RESPONSE,
    NACK_OUT_OF_ORDER,
    NACK_OUT_OF_WINDOW,
    NACK_TRIMMED,
    NACK_TRIMMED_LAST_HOP,
    NACK_UNKNOWN_PDC,
)

OUT_OF_ORDER: Final = "uet_out_of_order"
"""Why an ordered context drops a packet behind a gap."""
UNKNOWN_CONTEXT: Final = "uet_unknown_context"
"""No context has the PDCID of a packet, or it belongs to another peer."""
NO_RESPONSE: Final = "uet_no_response"
"""A target keeps as many responses as it may: a packet behind a gap that would need another one."""
NO_CONTEXT: Final = "uet_no_context"
"""All contexts of a target are in use."""
INVALID_SYN: Final = "uet_invalid_syn"
"""A packet that would open a context contradicts one that is open."""
CONTROL_KIND: Final = "uet_control"
"""A control packet of a kind that means nothing here."""
UET_DROP_REASONS: Final = (OUT_OF_ORDER, UNKNOWN_CONTEXT, NO_CONTEXT, INVALID_SYN, CONTROL_KIND, NO_RESPONSE)
"""Reasons beside those of `nicd.core.stats.DROP_REASONS`."""

OTHER_NACK: Final = "other"
NACK_LABELS: Final = {
    NACK_TRIMMED: "trimmed",
    NACK_TRIMMED_LAST_HOP: "trimmed_last_hop",
    NACK_NO_PDC: "no_context",
    NACK_NO_RESPONSE: "no_response",
    NACK_OUT_OF_WINDOW: "out_of_window",
    NACK_OUT_OF_ORDER: "out_of_order",
    NACK_UNKNOWN_PDC: "unknown_context",
    NACK_INVALID_SYN: "invalid_syn",
    NACK_MODE: "mode",
}
"""Code -> what a counter calls it. NICs here send no others; those of a stranger count as `OTHER_NACK`."""

COUNTERS: Final = (
    "clears_asked", "clears_sent", "closes_asked", "contexts_closed", "contexts_opened", "contexts_refused",
    "contexts_taken", "controls_received", "controls_sent", "credit_requests", "early_packets", "freezes",
    "grants_received", "planes_left", "responses_refused", "responses_repeated", "responses_sent",
    "speculations_stopped", "syn_packets",
)  # fmt: skip
"""The attributes of `UetStats` that are plain numbers."""


class UetStats:
    """Counters of one NIC since its start."""

    __slots__ = (*COUNTERS, "nacks_received", "nacks_sent")

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
        self.responses_repeated = 0
        """Of both, those sent again because their request came again."""
        self.clears_asked = 0
        """Times that an initiator was asked to clear responses, by an acknowledgement or by a control packet."""
        self.clears_sent = 0
        """CLEARs sent: no request was there to say it."""
        self.early_packets = 0
        """Data packets received behind a gap."""
        self.controls_sent = 0
        """Control packets: probes, grants, requests for credit, CLEAR, CLOSE and requests for them."""
        self.controls_received = 0
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

        self.nacks_sent = _no_nacks()
        """By code."""
        self.nacks_received = _no_nacks()

    def nack_sent(self, code: int) -> None:
        """A NACK leaves."""
        self.nacks_sent[NACK_LABELS.get(code, OTHER_NACK)] += 1

    def nack_received(self, code: int) -> None:
        """A NACK has come, which belongs to a context of this NIC."""
        self.nacks_received[NACK_LABELS.get(code, OTHER_NACK)] += 1

    def record(self) -> dict[str, int | dict[str, int]]:
        """All counters."""
        found: dict[str, int | dict[str, int]] = {name: getattr(self, name) for name in COUNTERS}
        return found | {"nacks_sent": dict(self.nacks_sent), "nacks_received": dict(self.nacks_received)}


def _no_nacks() -> dict[str, int]:
    return dict.fromkeys((*NACK_LABELS.values(), OTHER_NACK), 0)
