"""Why packets are dropped: every reason that a node can count, and what it means.

Pure. Owns the words for people, and the order in which measures and reports name reasons. The nodes own the counting:
`nicd.core.stats`, `nicd.core.rc.rc_stats`, `nicd.core.uet.uet_stats`, `switchd.core.stats`, `mrcfabric.egress_queues`,
`mrcfabric.impairment`. A test compares both.
"""

from collections.abc import Mapping
from typing import Final

from switchd.core.buffer import FULL, NO_HEADROOM

DROP_REASONS: Final[Mapping[str, str]] = {
    # What a NIC cannot read, or is not meant for it.
    "truncated": "A NIC got fewer bytes than the headers say.",
    "ip_version": "A NIC got something else than IPv6.",
    "outer_next_header": "Neither UDP nor another IPv6 header follows the outer one.",
    "inner_next_header": "No UDP follows the inner IPv6 header.",
    "inner_destination": "The packet is for another NIC.",
    "udp_port": "The UDP port is not that of the fabric.",
    "length": "The lengths in the headers contradict each other.",
    "opcode": "The opcode is not one of the transport's.",
    "tver": "The version of the transport headers is unknown.",
    "padding": "The padding does not fit the payload.",
    "p_key": "The partition key is another.",
    "link_control": "A link control frame (PFC) came to a node that has no use for it, or cannot read it.",
    "srh": "The segment routing header is malformed, or has a segment left.",
    "icrc": "The checksum of the packet is wrong.",
    "no_carrier": "It came by a port that has no carrier.",
    # QPs.
    "unknown_qp": "The NIC has no such QP, or no more.",
    "qp_not_ready": "The QP is not ready to receive yet.",
    "qp_state": "The QP has failed or is closed.",
    "inner_source": "It is not from the NIC to which the QP is connected.",
    "unknown_peer": "It is from a NIC with which this one has no QP.",
    "endpoint_op": "The operation between endpoints is unknown.",
    "trimmed_control": "A control packet came trimmed.",
    "psn_window": "Its number is beyond the packets that the receiver keeps track of.",
    "no_bitmap": "It is out of order by more than the receiver's bitmap holds.",
    "no_pkt_buffer": "The receiver may keep no further packet that is out of order.",
    "no_resource": "The receiver has no further record for a message.",
    "message_mismatch": "It contradicts its message, or its message those around it.",
    "immediates_overflow": "More early immediates than were agreed.",
    "ack_of_unsent": "It acknowledges what was never sent.",
    "memory": "Key, address or length are not those of a region that may be written.",
    "no_port": "An answer found no port with carrier.",
    "context_queue": "Too many packets wait for contexts that are not on the chip.",
    "self_probe": "A probe of this NIC came back that it does not wait for.",
    "out_of_sequence": "RC with go-back-N: it came behind a gap, and will be sent again.",
    "rc_syndrome": "RC: an acknowledgement with a reserved syndrome.",
    "uet_out_of_order": "UET, ordered: it came behind a gap, and will be sent again.",
    "uet_unknown_context": "UET: it belongs to no context of this NIC, or to another peer's.",
    "uet_no_response": "UET: it comes behind a gap and needs a response, and the target keeps as many as it may.",
    "uet_no_context": "UET: it would open a context, and all of the target's are in use.",
    "uet_invalid_syn": "UET: it would open a context, and contradicts one that is open.",
    "uet_control": "UET: a control packet of a kind that means nothing here.",
    # What a switch cannot forward.
    "short": "A switch got less than an IPv6 header.",
    "not_ipv6": "A switch got something else than IPv6.",
    "unknown_block": "The address does not begin with the fabric's uSID block.",
    "not_own_usid": "The first uSID is not that of the switch.",
    "no_usid_left": "No uSID is left behind that of the switch.",
    "unknown_usid": "The next uSID is not in the table.",
    "hop_limit": "Its hop limit is used up.",
    "bad_srh": "The segment routing header is malformed.",
    "frozen": "The switch stands still.",
    "no_route": "The switch has no way to the address.",
    # InfiniBand.
    "lver": "The version of the link header is unknown.",
    "lnh": "Behind the link header there is something else than a BTH.",
    "lrh": "A switch cannot read the link header, or its length is wrong.",
    "smp": "A management packet is broken, or its way ends nowhere.",
    "no_vl": "There is no such VL.",
    "credit_overrun": "Its sender had no credit for it.",
    "head_life": "It was the next one of its VL for too long.",
    "vl_stalled": "Its VL drops everything for a while, because packets before it grew too old.",
    # Buffers and queues.
    NO_HEADROOM: "Of a lossless class: it came after the pause, and the headroom is used up.",
    FULL: "The buffer that the ports of a lossless switch share is full.",
    "data_full": "The queue of its class, one of data, is full, and it is not trimmed.",
    "control_full": "The queue of its class, one of control packets, is full.",
    "trimmed_full": "It came trimmed, and the queue of control packets has no room for it.",
    "trim_full": "It was trimmed here, and the queue of control packets has no room for what was left.",
    # What faults take.
    "link_down": "The link is dark.",
    "loss": "A fault of the link lost it, as `loss`, `nth_packet` and `pfc_loss` do.",
    "gray": "A gray link lost it.",
    "black_hole": "A black hole swallowed it.",
}
"""Reason -> what it means."""
