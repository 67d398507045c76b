"""The metrics of InfiniBand's switches: VLs, credits, waits for credit, tables by LID. Others have no such series.

Owns the definitions; `switchd.metrics` puts them behind its own. A VL has labels for its port (`port`, `peer`,
`towards`) and its number (`vl`, 15 for management): what is sent and what waits goes out there, the buffer is of what
comes in there. Packets that grew too old are among the drops of the port, as `head_life` and `vl_stalled`.
"""

from collections.abc import Iterator

from mrcfabric.metrics import NS, Counters, Definition, Reader, Sample
from mrcfabric.wire.lrh import BLOCK_BYTES


def _per_vl(name: str, scale: float = 1) -> Reader:
    """A number of each VL of each port, where it has it."""

    def read(counters: Counters) -> Iterator[Sample]:
        core = counters["core"]
        for number, vls in core.get("vls", {}).items():
            port = core["ports"][number]
            for vl, found in vls.items():
                if name in found:
                    yield None, (str(number), port["peer"], port["towards"], str(vl)), found[name] * scale

    return read


def _per_port(name: str) -> Reader:
    """A number of each port that grants credit."""

    def read(counters: Counters) -> Iterator[Sample]:
        core = counters["core"]
        for number in core.get("vls", {}):
            port = core["ports"][number]
            yield None, (str(number), port["peer"], port["towards"]), port[name]

    return read


def _routed(counters: Counters) -> Iterator[Sample]:
    core = counters["core"]
    for number, packets in core.get("lft", {}).items():
        port = core["ports"][number]
        yield None, (str(number), port["peer"], port["towards"]), packets


def _notices(direction: str) -> Reader:
    """Routing notices by kind."""

    def read(counters: Counters) -> Iterator[Sample]:
        for kind, count in counters["core"].get("notices", {}).get(direction, {}).items():
            yield None, (kind,), count

    return read


def _whole(*keys: str) -> Reader:
    """A number of the switch, by its keys; none from a switch without it."""

    def read(counters: Counters) -> Iterator[Sample]:
        found = counters["core"]
        for key in keys:
            if key not in found:
                return
            found = found[key]
        yield None, (), found

    return read


_PORT = ("port", "peer", "towards")
_VL = (*_PORT, "vl")

DEFINITIONS = (
    Definition("switch_vl_sent_packets", "counter", "packets", "Packets of the VL that left.", "Which VL is busy?",
               _per_vl("packets"), _VL),
    Definition("switch_vl_sent_bytes", "counter", "bytes", "Their bytes, without framing.",
               "How do VLs share a link?", _per_vl("bytes"), _VL),
    Definition("switch_vl_queue_bytes", "gauge", "bytes", "What waits to leave on the VL.", "Where does data wait?",
               _per_vl("waiting_bytes"), _VL),
    Definition("switch_vl_queue_bytes_max", "gauge", "bytes", "The most of it since the start.",
               "Where has it waited?", _per_vl("peak"), _VL),
    Definition("switch_vl_credit_bytes", "gauge", "bytes", "What may be sent now by the credit there is.",
               "Who has used up its credit?", _per_vl("credit", BLOCK_BYTES), _VL),
    Definition("switch_vl_credit_stalls", "counter", "times", "How often the next packet came to wait for credit.",
               "Who holds this switch back?", _per_vl("stalls"), _VL),
    Definition("switch_vl_credit_stalled_seconds", "counter", "seconds",
               "Time for which the next packet waited for credit.", "Which links does want of credit keep idle?",
               _per_vl("blocked_ns", NS), _VL),
    Definition("switch_vl_buffer_bytes", "gauge", "bytes", "What came in on the VL and waits anywhere.",
               "Who fills the buffer?", _per_vl("held", BLOCK_BYTES), _VL),
    Definition("switch_vl_buffer_bytes_max", "gauge", "bytes", "The most of them since the start.",
               "Who has filled it?", _per_vl("held_peak", BLOCK_BYTES), _VL),
    Definition("switch_vl_buffer_size_bytes", "gauge", "bytes", "What the buffer of the VL holds.",
               "How large is it?", _per_vl("blocks", BLOCK_BYTES), _VL),
    Definition("switch_vl_full", "gauge", "0 or 1", "1 while so much waits in it that the neighbour may lack credit.",
               "Where does the tree of waiting ports begin?", _per_vl("asking"), _VL),
    Definition("switch_vl_fills", "counter", "times", "How often it came to be so.",
               "Whom does this switch hold back?", _per_vl("full"), _VL),
    Definition("switch_flow_control_packets", "counter", "packets", "Flow control packets sent.",
               "What do credits cost the link?", _per_port("flow_packets"), _PORT),
    Definition("switch_lft_packets", "counter", "packets",
               "Packets that the table, or adaptive routing, sent to a port.",
               "Do tables spread the load?", _routed, _PORT),
    Definition("switch_lft_group_changes", "counter", "times", "How often an up-link left its group or came back.",
               "Have dead links been noticed?", _whole("group_moves")),
    Definition("switch_lft_blocks_written", "counter", "blocks of 64 LIDs",
               "Blocks of the table that a subnet manager has written.", "Has a manager been here?",
               _whole("agent", "written")),
    Definition("switch_routing_notices_sent", "counter", "notices",
               "Routing notices sent to neighbours, by kind: `lost` and `back` (FLFN), `congested` (ARN).",
               "Which T1 has lost a way, or is congested?", _notices("sent"), ("notice",)),
    Definition("switch_routing_notices_heard", "counter", "notices", "Those that neighbours have sent.",
               "Do notices arrive?", _notices("heard"), ("notice",)),
    Definition("switch_avoided_lids", "gauge", "LIDs", "LIDs for which an up-link is left out.",
               "Who goes round a lost way?", _whole("notices", "avoided_lids")),
    Definition("switch_subnet_traps", "counter", "packets", "Traps sent to the subnet manager.",
               "Has the manager been told of changes?", _whole("agent", "traps")),
)  # fmt: skip
