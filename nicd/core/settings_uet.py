"""Knobs of UET: delivery, congestion control, choice of entropies, credits, contexts.

UEC 1.0 gives the packets and the two congestion controls; how a NIC chooses entropies it leaves open, and the values
are those of the consortium's simulator. Owns names, units, defaults and bounds; relations are `nicd.core.settings`'.
UET shares what MRC has for packet size, base RTT, time-outs, retries, acknowledgements, and the windows of NSCC. The
number of entropies of a QP is the topology's `evs_per_qp`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class UetKnobs:
    """How a UET NIC delivers, chooses paths, and is granted credit."""

    uet_mode: str = "rud"
    """"rud": packets in any order, each sent again by itself; "rod": packets in order on one path per QP, and the
    sender goes back to the first that is missing."""
    uet_cc: str = "nscc"
    """What limits a sender: "nscc", a window per plane and destination (`congestion` names it); "rccc", credits that
    the receiver grants to its senders in turn; "both"; or "none"."""
    uet_path: str = "reps"
    """How entropies are chosen: "oblivious", one after another whatever happens; "bitmap", those that were marked,
    trimmed or lost sit out turns; "reps", those of clean acknowledgements are used once more."""
    uet_crc: str = "crc32"
    """The sum at the end of packets: "crc32", "crc32c" as the public layout has it, which costs a hundred times the
    computing time here, or "none", as with other protection: then damage is not noticed."""
    uet_penalty_mark: int = 1
    """With "bitmap": turns that an entropy sits out after a mark."""
    uet_penalty_nack: int = 4
    """After a packet of it was trimmed inside the fabric."""
    uet_penalty_timeout: int = 15
    """After a packet of it was lost without a word."""
    uet_penalty_max: int = 15
    """And at most, however often that happens."""
    uet_reps_ring: int = 8
    """With "reps": entropies of clean acknowledgements that are kept per plane."""
    uet_reps_explore: int = 16
    """Packets with entropies drawn anew, at the start and whenever freezing ends."""
    uet_reps_freeze_ns: int = 10_000_000
    """After a loss without a word a sender draws nothing new for so long, and uses kept entropies again and again."""
    uet_leave_planes: bool = True
    """A QP leaves a plane that was silent while others delivered: UET has no word for the loss of a peer's port."""
    uet_plane_leave_ns: int = 0
    """For so long, and for twice as long each time that the plane is silent again. Default 8 base RTT, a time-out."""
    uet_reorder_ns: int = 0
    """A packet is lost when one sent this much later has arrived, and `reorder_packets` were sent between the two.
    Default 2.5 base RTT: above the largest difference of two paths whose queues trim at one bandwidth-delay product.
    Packets that come later lengthen it for a while, up to nine times (`nicd.core.uet.patience`)."""
    uet_speculation_ppt: int = 1500
    """With credits: what a sender that was idle may send before it is granted any, in thousandths of the
    bandwidth-delay product; what is left of it is void at the first grant or NACK."""
    uet_idle_ppt: int = 1000
    """Credit that a receiver lets a sender have that wants none, while nobody wants more, in thousandths of the
    bandwidth-delay product; 0: none."""
    uet_grant_packets: int = 4
    """Full packets that a receiver grants to a sender before it turns to the next one."""
    uet_occc: bool = False
    """With credits: a receiver grants more slowly while packets are marked or trimmed inside the fabric (OCCC)."""
    uet_occc_target_ppt: int = 300
    """While more of the packets that come whole are marked than this, the rate of grants falls, in thousandths."""
    uet_occc_increase_ppt: int = 10
    """By what it rises in a base RTT with fewer and without trims, in thousandths of the rate of the ports."""
    uet_occc_doublings: int = 0
    """So often that step doubles from one base RTT to the next, while nothing at all is marked. The consortium's
    simulator doubles without end; here that overshoots."""
    uet_occc_decrease_ppt: int = 500
    """By what it falls in one with more, in thousandths of what is above the target."""
    uet_occc_gain_ppt: int = 500
    """Weight of the latest base RTT in the share of marked packets, in thousandths."""
    uet_occc_floor_ppt: int = 10
    """It never falls below this, in thousandths of the rate of the ports."""
    uet_responses_max: int = 1024
    """Responses that a target keeps per context until they are cleared; from half of it on it asks for that. A packet
    behind a gap that would need one more is answered by NO_GTD_DEL_AVAIL."""
    uet_contexts_max: int = 4096
    """Contexts (PDCs) that a NIC holds as a target; a further one is answered by NO_PDC_AVAIL, and the initiator whose
    context was silent longest is asked to close it."""


DERIVED: Final[dict[str, float]] = {"uet_reorder_ns": 2.5, "uet_plane_leave_ns": 8}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = dict.fromkeys(
    (
        "uet_penalty_mark", "uet_penalty_nack", "uet_penalty_timeout", "uet_reps_explore", "uet_reps_freeze_ns",
        "uet_speculation_ppt", "uet_idle_ppt", "uet_occc_target_ppt", "uet_occc_increase_ppt", "uet_occc_decrease_ppt",
        "uet_occc_doublings",
    ), 0,
)  # fmt: skip
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "uet_reps_ring": 1024,
    "uet_penalty_max": 1 << 16,
    "uet_grant_packets": 1024,
    "uet_contexts_max": 60_000,
    "uet_responses_max": 1 << 20,
    "uet_occc_doublings": 20,
    **dict.fromkeys(
        (
            "uet_occc_target_ppt",
            "uet_occc_increase_ppt",
            "uet_occc_decrease_ppt",
            "uet_occc_gain_ppt",
            "uet_occc_floor_ppt",
        ),
        1_000,
    ),
    "uet_speculation_ppt": 1_000_000,
    "uet_idle_ppt": 1_000_000,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, Collection[str]]] = {
    "uet_mode": ("rud", "rod"),
    "uet_cc": ("nscc", "rccc", "both", "none"),
    "uet_path": ("oblivious", "bitmap", "reps"),
    "uet_crc": ("crc32", "crc32c", "none"),
}
"""What a knob that is a name may be."""
