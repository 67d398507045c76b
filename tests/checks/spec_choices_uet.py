"""The rows of `spec_choices` that are about UET: no MRC, but the same daemons."""

from tests.checks.choice import DEVIATION, NIC, NOT_DONE, OPTION, UNKNOWN, Choice
from tests.checks.choice import of as _of

UET = (
    Choice(
        "UET: where its layouts come from",
        UNKNOWN,
        "The text of UEC 1.0 was not at hand. Three public layouts agree on every field that is used here; UDP port "
        "4793 is the dissector's. Stock dissectors of this project's tests do not know UET, so that no outside program "
        "checks the bytes.",
    ),
    Choice(
        "UET: delivery",
        OPTION,
        "Unordered (RUD); ordered (ROD) goes back to the first that is missing, on one plane and one entropy.",
        _of(NIC, "uet_mode"),
    ),
    Choice(
        "UET: the sum at the end of a packet",
        DEVIATION,
        "CRC-32 over everything behind UDP. The public layout has CRC-32C in that place, which is a value of the "
        "setting and costs a hundred times as much in Python.",
        _of(NIC, "uet_crc"),
    ),
    Choice(
        "UET: which contexts QPs use",
        DEVIATION,
        "Each QP opens one of its own with its first data packet, and closes it when it is destroyed or when its "
        "target asks; a target takes so many. UEC lets the requests of several endpoints between two NICs share one. "
        "Not built: events, traces and state are told by QP here, and a context of many would fail them all at once. "
        "What would differ is state (a context and its PSNs once per pair of NICs, not per QP) and order, of PSNs "
        "among QPs; window and credit are shared by destination all the same. A QP number is PIDonFEP and resource "
        "index; all NICs are one job.",
        _of(NIC, "uet_contexts_max"),
    ),
    Choice(
        "UET: responses that are kept until they are cleared",
        OPTION,
        "A target keeps the response of a whole message, and that of a packet it refuses, until the initiator clears "
        "it: by the cumulative PSN that every request carries, or by a CLEAR where there is no request to send, which "
        "the target asks for from half of its room on. A request that comes again has the same answer. Without room, "
        "a packet behind a gap is answered by NO_GTD_DEL_AVAIL; the one that all wait for is taken, for the "
        "cumulative PSN says the same as its response. A refused packet never counts as arrived. That the last PSN "
        "cleared is the payload of CLEAR is a guess.",
        _of(NIC, "uet_responses_max"),
    ),
    Choice(
        "UET: when a message is complete",
        DEVIATION,
        "At the initiator with its response, or when all its packets are acknowledged. At the target immediates are "
        "handed over in the order of PSNs, on which programs rely; UET orders nothing between messages.",
    ),
    Choice(
        "UET: what limits a sender",
        OPTION,
        "NSCC, the same windows as MRC's; credits (RCCC) that a receiver grants in turn at the rate of its ports, some "
        "packets at a time, in bytes on the wire; or both. A sender that was idle begins with speculative credit, of "
        "which the rest is void at the first grant or NACK. While nobody wants more, senders that want nothing are "
        "granted something to begin with.",
        _of(NIC, "uet_cc", "uet_speculation_ppt", "uet_idle_ppt", "uet_grant_packets"),
    ),
    Choice(
        "UET: credits where the fabric is short, and not the receiver (OCCC)",
        UNKNOWN,
        "Off, as it is optional. On, a receiver grants at a part of its rate. Once per base RTT, drawn, the share of "
        "packets trimmed before their last hop is taken off; marks above a target lower the rate in proportion; "
        "without either it rises by a step. Law and constants are those of the consortium's simulator, but for the "
        "step's doubling, which is off. Receivers behind one link share it evenly and leave a part of it unused.",
        _of(
            NIC, "uet_occc", "uet_occc_target_ppt", "uet_occc_increase_ppt", "uet_occc_doublings",
            "uet_occc_decrease_ppt", "uet_occc_gain_ppt", "uet_occc_floor_ppt",
        ),
    ),
    Choice(
        "UET: how entropies are chosen",
        OPTION,
        "UEC leaves it to the NIC. Figures are those of the consortium's simulator and of REPS. Each plane has a "
        "choice of its own.",
        _of(
            NIC, "uet_path", "uet_penalty_mark", "uet_penalty_nack", "uet_penalty_timeout", "uet_penalty_max",
            "uet_reps_ring", "uet_reps_explore", "uet_reps_freeze_ns",
        ),
    ),
    Choice(
        "UET: a plane that is silent while others deliver",
        UNKNOWN,
        "Left for a time-out, and for twice as long each time again. UET has no word for the loss of a peer's port and "
        "knows no planes: all entropies of a plane lead to one dead port. Off, each entropy has to be found out.",
        _of(NIC, "uet_leave_planes", "uet_plane_leave_ns"),
    ),
    Choice(
        "UET: when a packet is lost",
        UNKNOWN,
        "When one that left so much later has arrived, when the answer to a probe does not show it, or after the time "
        "of MRC's time-outs, whose retries it also has. Packets that come later, as acknowledgements tell, lengthen "
        "both for a while.",
        _of(NIC, "uet_reorder_ns"),
    ),
    Choice(
        "UET: READ, SEND, atomics, RUDI, UUD, encryption, rendezvous, CLEAR, negotiation, the receiver's penalty",
        NOT_DONE,
        "No document uses them. Small and medium requests are parsed, and no NIC here sends them.",
    ),
)  # fmt: skip
