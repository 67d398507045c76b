"""What the public descriptions of MRC leave open, contradict each other on, or say and we do differently: by hand.

One row each: the subject, what kind of gap it is, what this project does, the settings that hold the choice, and why.
`spec_map` looks up the defaults and prints the table; a setting that is renamed breaks it, on purpose.
"""

from typing import Final

from tests.checks.choice import CONFLICT, DEVIATION, DSCP, NIC, OPTION, SWITCH, TOPOLOGY, UNKNOWN, WIRE, Choice
from tests.checks.choice import of as _of
from tests.checks.spec_choices_bgp import BGP
from tests.checks.spec_choices_congestion import CONGESTION
from tests.checks.spec_choices_frames import FRAMES
from tests.checks.spec_choices_lid import LID
from tests.checks.spec_choices_rc import RC
from tests.checks.spec_choices_routed import ROUTED
from tests.checks.spec_choices_state import STATE
from tests.checks.spec_choices_uet import UET

_FORMATS = (
    Choice(
        "UDP destination port: RoCEv2's 4791, or 4971 as printed",
        CONFLICT,
        "Sends the first, takes both.",
        _of(WIRE, "udp_port", "udp_ports_accepted"),
    ),
    Choice(
        "Which half of the EV rides in the UDP source port",
        CONFLICT,
        "Source port low, flow label high.",
        _of(WIRE, "ev_order"),
    ),
    Choice(
        "Position of `op` in the endpoint response",
        CONFLICT,
        "Bits 3:2 of the second byte, as two of four descriptions; the others have bits 1:0 and 5:4.",
        _of(WIRE, "eeth_op_shift"),
    ),
    Choice("`cc_type` of a NACK: 0 or 2", CONFLICT, "0.", _of(WIRE, "nack_cc_type")),
    Choice("Order of the BTH's M and SE bits", CONFLICT, "Both are sent as 0 and not read."),
    Choice("UDP checksum", UNKNOWN, "Sent as 0, not read; the ICRC counts it as ones either way."),
    Choice("Flow label of the outer header", UNKNOWN, "The same as the inner one; receivers read the inner one."),
    Choice(
        "Direction of spdcid and dpdcid",
        CONFLICT,
        "spdcid is the sender's own QP, dpdcid the receiver's, low 16 bits; nobody reads them.",
    ),
    Choice("Bit order of the port status mask", UNKNOWN, "Bit 0 is the first port; a set bit is a reachable port."),
    Choice(
        "PSN and MSN of a transport ACK",
        UNKNOWN,
        "PSN is cack, MSN the number of completed messages; syndrome 0x1F, or 0x61 for an invalid request.",
    ),
    Choice(
        "P_Key",
        OPTION,
        "One fabric is one partition; a packet of another one is dropped by name.",
        _of(WIRE, "p_key"),
    ),
    Choice(
        "What the one segment of an SRH is for",
        UNKNOWN,
        "Equal to the container it is a copy of the path (Segments Left 0); anything else prolongs the container "
        "(Segments Left 1, RFC 8754's reduced form). A NIC takes a packet whose SRH is at its end, and drops others.",
    ),
    Choice(
        "Time stamps: on the wire, or a sender's own send times",
        OPTION,
        "TSETH on every data packet, tsr 0 (128 ns); the stamp is the instant its port begins with the packet. A wrap "
        "is resolved by the sender's own clock, an echo that cannot be true is no sample.",
        _of(NIC, "timestamps"),
    ),
    Choice(
        "Service time: the SACK has no field for it",
        UNKNOWN,
        "The responder moves the echoed stamp on by the time that its packet has waited for the SACK.",
        _of(NIC, "service_time"),
    ),
    Choice(
        "Code points of the six traffic classes",
        OPTION,
        "Those of public encoders.",
        _of(DSCP, "trimmable", "no_trim", "trimmable_retx", "trimmed", "trimmed_lasthop", "control"),
    ),
    Choice(
        "How much a trim leaves",
        OPTION,
        "Counted from the outer IPv6 header; every header fits in 128 bytes.",
        _of(SWITCH, "trim_bytes"),
    ),
)

_PATHS = (
    Choice(
        "How a QP uses its paths",
        OPTION,
        "State per EV; to compare with, oblivious spraying and one EV per QP. A port that is known to be down carries "
        "nothing under any of them.",
        _of(NIC, "path_policy"),
    ),
    Choice(
        "Size of the EV profile and its reserve",
        OPTION,
        "128 active, the usual figure; a quarter as many in reserve; an eighth of the active ones is kept, unless "
        "a path is dead while another one lives.",
        (*_of(TOPOLOGY, "evs_per_qp", "reserve_evs_per_qp"), *_of(NIC, "ev_min_active")),
    ),
    Choice(
        "How long SKIP lasts",
        OPTION,
        "Until the scan, which is drawn anew for every turn, has passed the EV once; one base RTT and half a turn at "
        "most, because a mark tells of a queue of one round trip ago, and of one queue many marks tell.",
        _of(NIC, "skip_ns", "skip_turn_ppt"),
    ),
    Choice(
        "A path that is marked again and again while others of its plane are free",
        UNKNOWN,
        "Gets fewer of its turns, by how often it is late and marked: SKIP alone halves its use at most.",
        _of(NIC, "path_shares", "path_late_ns"),
    ),
    Choice(
        "When a path is dead, and what that means for the EVs that share it",
        UNKNOWN,
        "So many packets of the path were lost in a row, by whichever EVs: all that use it are left at once, and sent "
        "again is what could have been acknowledged, unless the plane is crowded. The texts judge each EV alone.",
        _of(NIC, "path_dead_losses"),
    ),
    Choice(
        "Reorder threshold before a packet is lost",
        UNKNOWN,
        "So many packets that left later on the same path have arrived: packets of one path stay in order, and a path "
        "that turns out to reorder needs more. Or a packet sent this much later on any path has arrived, and this "
        "many lie between; where nothing more arrives, as long "
        "after its round trip was due: above the largest difference of two paths whose queues are below the trim "
        "threshold, so that a healthy fabric shows no loss. A path that is longer than the base RTT is given so much "
        "more; a packet that comes after it was held to be lost lengthens both at once, and frees its EV.",
        _of(NIC, "reorder_ns", "reorder_ns_min", "reorder_packets", "reorder_path_packets"),
    ),
    Choice(
        "What was in flight when a port went down",
        UNKNOWN,
        "Lost, unless it is acknowledged within this time; no EV is accused for it.",
        _of(NIC, "port_down_grace_ns"),
    ),
    Choice(
        "Retransmission timeout and retries",
        OPTION,
        "Linear tries, then doubled ones, 25 of which mean for ever; NACKs, gaps and timeouts use one budget. A QP may "
        "be given timers of its own when it becomes RTS.",
        _of(NIC, "rto_ns", "retry_linear", "retry_exponential"),
    ),
    Choice(
        "How a bad link is told from what all NICs' probes found, and what is denied for it",
        UNKNOWN,
        "The fewest links that explain the losses, each likelier by a ratio and by odds than what lacks it; silence of "
        "all links of a switch is its death. Deny lists are kept off floors of half the planes and half the paths.",
        (
            "orchestrator.mapper.t0_view:MapperSettings.silent_probes",
            "orchestrator.mapper.t0_view:MapperSettings.tolerated",
            "orchestrator.mapper.t0_view:MapperSettings.false_alarm",
            "orchestrator.mapper.t0_view:MapperSettings.odds",
        ),
    ),
    Choice(
        "Packet, period and time-out of the probes that a NIC addresses to itself",
        UNKNOWN,
        "A full-size trimmable WRITE to the endpoint QP of its sender, which nobody else looks at; off until asked "
        "for, because a fabric that probes never sleeps. Each T0-T1 link is tried by this many NICs per round.",
        _of(
            NIC,
            "self_probe_bytes",
            "self_probe_period_ns",
            "self_probe_timeout_ns",
            "self_probe_testers",
            "self_probes_outstanding_max",
        ),
    ),
    Choice(
        "Period of probes, and how many bring an EV back",
        UNKNOWN,
        "Fixed period, doubled while unanswered up to a factor; answers in a row, twice as many each time the path "
        "fails again, up to a bound.",
        _of(NIC, "probe_period_ns", "probe_backoff_max", "probe_successes", "probe_successes_max", "path_forget_ns"),
    ),
    Choice(
        "A plane of which every path loses packets",
        UNKNOWN,
        "This share of its EVs stays in use as long as packets come through: another EV of the plane loses as many. "
        "Where all paths in use have failed of late, none twice as often as another, every EV stays: to leave some "
        "would only fill the others' paths.",
        _of(NIC, "plane_keep_ppt"),
    ),
    Choice(
        "When a receiver says ALWAYS_SKIP",
        UNKNOWN,
        "After so many marked packets in a row on one EV; never by default. Received, it makes the EV ASSUMED_BAD.",
        _of(NIC, "always_skip_marks", "marked_evs_max"),
    ),
    Choice(
        "Where the port state rides: a bitmap in SACKs, or an endpoint request",
        CONFLICT,
        "The endpoint request, repeated with doubled waits until it is answered.",
        _of(NIC, "port_update_retry_ns", "port_update_tries"),
    ),
    Choice(
        "The set of reverse paths",
        DEVIATION,
        "One EV per plane and *peer*, shared by the QPs to it; the EVs in use are probed, plane by plane, while data "
        "arrive. The paper probes a random EV, whose silence would say nothing of the one in use. Eight turns per port "
        "and base RTT for all peers together: one per peer costs a receiver of 63 senders 4 % of its rate. An EV of "
        "our own data that was acknowledged becomes the EV in use, unless its path is longer than another one of its "
        "plane.",
        _of(NIC, "reverse_candidates", "reverse_refresh_ns", "reverse_turns", "reverse_idle_ns"),
    ),
    Choice(
        "A plane on which no reverse path answers",
        UNKNOWN,
        "Left out of the turn of acknowledgements after so many probes in a row of the EV in use, each waited for so "
        "long, until something comes through again. With no plane left every acknowledgement takes another path. A "
        "plane that probes or our own data find longer than another by half a base RTT is left out, too.",
        _of(NIC, "reverse_silent_probes", "reverse_wait_ns", "reverse_lag_ns"),
    ),
    Choice(
        "Which way the answer to a probe takes",
        UNKNOWN,
        "Two ways: the one it came, turned round, and the one proved last; more where no way is known to live.",
    ),
    Choice(
        "What a sender does that hears nothing",
        UNKNOWN,
        "It asks by one probe, then on more and more paths per base RTT until every path has been asked, and goes on, "
        "more rarely. As long as nothing is known to live, one answer brings an EV back.",
    ),
    Choice(
        "Limits of the controller's EV probes",
        OPTION,
        "One batch per command; what is not answered in time is lost. An answer changes no state.",
        _of(NIC, "ev_probe_timeout_ns", "ev_probe_evs_max", "ev_probe_batches_max"),
    ),
    Choice(
        "Form of a deny list",
        UNKNOWN,
        "A standing list of (plane, path or all, peer or all) per NIC, for data, probes and acknowledgements of all "
        "its QPs; paths through one T1 say nothing about peers below the same T0.",
        _of(NIC, "deny_entries_max"),
    ),
    Choice(
        "Layout of a uSID",
        UNKNOWN,
        "tier 2, plane 3, index 11 bits (`mrcfabric/naming.py`) behind one block.",
        _of(TOPOLOGY, "usid_block"),
    ),
    Choice(
        "Meaning of an EV's bits",
        UNKNOWN,
        "Plane, up-link, then bits that only tell EVs of one path apart (`mrcfabric/paths.py`).",
    ),
    Choice(
        "What travels for an EV that is an address",
        UNKNOWN,
        "The number of the EV in its profile in the draw bits, the T1 of its container and its plane below "
        "(`nicd/core/mrc/ev_format.py`); profiles number what they hold, senders do not agree on it.",
        _of(NIC, "profile_evs_max"),
    ),
    Choice(
        "ECMP and structured-EV modes of switches",
        DEVIATION,
        "No switch hashes or reads EV bits: the NIC expands such EVs into SRv6 containers itself, an ECMP value by a "
        "fixed hash of it and the peer, a structured one by its bits.",
    ),
    Choice(
        "Controller operations on EV profiles: numbers, and what an unset attribute means",
        UNKNOWN,
        "Profile 0 is built in, online, and draws EVs for every QP; others are listed or generated once and shared by "
        "their QPs. Unset figures are those of the NIC.",
        _of(NIC, "ev_profiles_max"),
    ),
    Choice(
        "Loss of EV events",
        OPTION,
        "A bounded queue per NIC; each event says how many were lost just before it.",
        _of(NIC, "ev_events_max"),
    ),
)

_RELIABILITY = (
    Choice(
        "A PSN outside the window: silence, or a NACK",
        CONFLICT,
        "NACK PSN_OOR_WINDOW, for trimmed packets too.",
        _of(NIC, "window_nack"),
    ),
    Choice("Base of the SACK bitmap", CONFLICT, "max(PSN - 63, cack + 1).", _of(NIC, "sack_base_recent")),
    Choice(
        "When a SACK is due by bytes",
        UNKNOWN,
        "16 KiB, each packet counting 1024 at least.",
        _of(NIC, "sack_bytes"),
    ),
    Choice(
        "Packets further apart than the 64 PSNs of a bitmap",
        UNKNOWN,
        "They wait side by side, in spans of which one SACK shows each (`nicd/core/mrc/sack_spans.py`); the one opened "
        "first goes first, and A or rtx calls for all of them.",
    ),
    Choice(
        "The longest wait for a SACK, and for asking after silence",
        DEVIATION,
        "Two timers that the text does not have: without them the tail of a burst waits for its RTO.",
        _of(NIC, "sack_delay_ns", "tail_probe_ns"),
    ),
    Choice(
        "One probe, several SACKs",
        DEVIATION,
        "A bitmap shows 64 PSNs and the asker wants to know of all; the transport ACK is repeated too.",
        _of(NIC, "probe_sacks_max"),
    ),
    Choice("NACKs for trimmed packets", OPTION, "Sent.", _of(NIC, "trim_nack")),
    Choice(
        "Tracking window and immediates",
        OPTION,
        "Agreed when a QP is connected.",
        _of(NIC, "mpr_units", "max_wimm"),
    ),
    Choice(
        "What a responder advertises under dynamic MPR",
        UNKNOWN,
        "What its bounds of packets out of order leave, in whole units, one at least; without a bound its static "
        "window. The option is offered only when asked for.",
        _of(NIC, "dynamic_mpr", "ooo_packets_max", "bitmap_psns"),
    ),
    Choice(
        "When NO_BITMAP, NO_PKT_BUFFER and NO_RESOURCE are due",
        UNKNOWN,
        "Beyond the bitmap; with all packets held that a NIC holds out of order; with all records of messages in use. "
        "By default the bounds are those of the tracking window, so that none of them is ever due.",
        _of(NIC, "bitmap_psns", "ooo_packets_max", "messages_open_max"),
    ),
    Choice(
        "How a transport ACK speaks of a WRITE that overtook another",
        UNKNOWN,
        "BTH.A is set: the message MSN - 1 alone, whose last PSN is PSN, is complete. Without A all before MSN "
        "are. It is sent when its turn has not come for a while; one that is lost is not repeated: the next cumulative "
        "one covers it.",
        _of(NIC, "completion_in_order", "ack_early_ns"),
    ),
    Choice(
        "What ends a QP at once: NACK UNEXP_EVENT, or an ACK with syndrome 0x61",
        UNKNOWN,
        "The NACK for packets that contradict their message (place, length, key, PSNs, MSN, RQMSN); the ACK for a key "
        "or bounds that are wrong and for too many early immediates. Either way both ends go to ERROR. Neither is "
        "believed where it names a PSN that this QP has not sent: it was for one that had its number before.",
    ),
    Choice(
        "Class of a retransmission: a higher one than new data, or the data class",
        CONFLICT,
        "The data class, by a code point of its own; at its sender the oldest lost PSN leaves before all new data.",
        _of(DSCP, "trimmable_retx"),
    ),
    Choice(
        "A QP number that is used again while packets of the QP before are under way",
        UNKNOWN,
        "Nothing but first PSNs tells the two apart: they have to lie further apart than the windows, and it is for "
        "the application to draw them so. The core itself gives numbers out in turn.",
    ),
    Choice(
        "How soon a packet that found no room is sent again",
        UNKNOWN,
        "At once, as after a trim; each NACK is one of the packet's tries, so that bounds smaller than a window want a "
        "larger budget.",
        _of(NIC, "retry_linear", "retry_exponential"),
    ),
    Choice(
        "How long a QP may take to become RTS",
        OPTION,
        "For ever, unless set: a QP goes with its application, and a timer would keep an idle fabric awake. One that "
        "has received something is not in set-up any more.",
        _of(NIC, "setup_timeout_ns"),
    ),
    Choice(
        "What hints are used for",
        OPTION,
        "QPs per peer and expected incast divide the tracking window that a QP offers; never below 8 units.",
    ),
    Choice("NACK reasons nobody knows", UNKNOWN, "Like NO_RESOURCE: the packet is sent again, the EV keeps its state."),
)

CHOICES: Final = {
    "Packets": _FORMATS,
    "Packets of RoCE, and pauses": FRAMES,
    "Paths and ports": _PATHS,
    "Reliability": _RELIABILITY,
    "Congestion and switches": CONGESTION,
    "RoCE and DCQCN": RC,
    "UET": UET,
    "Switches of other fabrics": ROUTED,
    "Switches that route for themselves": BGP,
    "InfiniBand": LID,
    "State and memory": STATE,
}
