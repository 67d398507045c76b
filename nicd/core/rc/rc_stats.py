"""What an RC NIC counts beside `nicd.core.stats`. IBTA 9.7 (acknowledgements), annex A17.9 (notifications)."""

from typing import Final

OUT_OF_SEQUENCE: Final = "out_of_sequence"
"""Why a packet behind a gap is dropped."""
RESERVED: Final = "rc_syndrome"
"""Why an acknowledgement with a reserved syndrome is dropped."""
RC_DROP_REASONS: Final = (OUT_OF_SEQUENCE, RESERVED)
"""Reasons beside those of `nicd.core.stats.DROP_REASONS`."""


COUNTERS: Final = (
    "access_naks_sent", "cnps_ignored", "cnps_received", "cnps_sent", "naks_received", "naks_sent",
    "out_of_sequence", "paced_packets", "passes_begun", "rate_cuts", "rate_steps", "rnr_naks_received",
    "selective_kept",
)  # fmt: skip
"""The attributes of `RcStats`."""


class RcStats:
    """Counters of one NIC since its start."""

    __slots__ = COUNTERS

    def __init__(self) -> None:
        self.naks_sent = 0
        """NAKs for a gap."""
        self.naks_received = 0
        self.access_naks_sent = 0
        """NAKs that end a QP: an invalid request, or memory that may not be written."""
        self.rnr_naks_received = 0
        """Answers of a receiver that is not ready; no NIC here sends them, so a QP ends by one."""
        self.cnps_sent = 0
        self.cnps_received = 0
        self.cnps_ignored = 0
        """Those of them that came too soon after another, or with `cc: none`."""
        self.out_of_sequence = 0
        """Data packets received behind a gap."""
        self.selective_kept = 0
        """Those of them that were placed at once ("selective")."""
        self.passes_begun = 0
        """Times that a sender went back."""
        self.rate_cuts = 0
        """Times that a notification lowered a rate."""
        self.rate_steps = 0
        """Steps of increase."""
        self.paced_packets = 0
        """Packets after which a QP had to wait for its rate."""

    def record(self) -> dict[str, int]:
        """All counters."""
        return {name: getattr(self, name) for name in COUNTERS}
