"""The metrics of RoCE's switches: pauses, the shared buffer, and what a hash chose. Others have no such series.

Owns the definitions; `switchd.metrics` puts them behind its own. A class has labels for its port (`port`, `peer`,
`towards`) and its number (`class`): pauses sent and bytes of the buffer are of what comes in there, pauses heard of
what goes out.
"""

from collections.abc import Iterator

from mrcfabric.metrics import NS, Counters, Definition, Reader, Sample


def _per_class(name: str, scale: float = 1) -> Reader:
    """A number of each lossless class of each port."""

    def read(counters: Counters) -> Iterator[Sample]:
        core = counters["core"]
        for number, classes in core.get("pfc", {}).items():
            port = core["ports"][number]
            for cls, found in classes.items():
                yield None, (str(number), port["peer"], port["towards"], str(cls)), found[name] * scale

    return read


def _of_buffer(name: str) -> Reader:
    """A number of the whole buffer."""

    def read(counters: Counters) -> Iterator[Sample]:
        if "buffer" in counters["core"]:
            yield None, (), counters["core"]["buffer"][name]

    return read


def _chosen(counters: Counters) -> Iterator[Sample]:
    core = counters["core"]
    for number, packets in core.get("ecmp", {}).items():
        port = core["ports"][number]
        yield None, (str(number), port["peer"], port["towards"]), packets


def _moves(counters: Counters) -> Iterator[Sample]:
    if "ecmp_moves" in counters["core"]:
        yield None, (), counters["core"]["ecmp_moves"]


_PORT = ("port", "peer", "towards")
_CLASS = (*_PORT, "class")

DEFINITIONS = (
    Definition("switch_pfc_pause_frames_sent", "counter", "frames",
               "XOFF frames for the class, repetitions included.", "Whom does this switch hold back?",
               _per_class("xoff_sent"), _CLASS),
    Definition("switch_pfc_resume_frames_sent", "counter", "frames", "XON frames for the class.",
               "How often does it let go?", _per_class("xon_sent"), _CLASS),
    Definition("switch_pfc_pause_frames_received", "counter", "frames", "XOFF frames for the class.",
               "Who holds this switch back?", _per_class("xoff_received"), _CLASS),
    Definition("switch_pfc_resume_frames_received", "counter", "frames", "XON frames for the class.",
               "And how often is it let go?", _per_class("xon_received"), _CLASS),
    Definition("switch_pfc_paused_seconds", "counter", "seconds", "Time for which the class might not start packets.",
               "Which links do pauses keep idle?", _per_class("pause_ns", NS), _CLASS),
    Definition("switch_pfc_asking", "gauge", "0 or 1", "1 while the neighbour is asked to pause the class.",
               "Where does the tree of paused ports begin?", _per_class("xoff"), _CLASS),
    Definition("switch_pfc_storms", "counter", "times", "Pauses that the watchdog ended.",
               "Is there a neighbour that pauses for ever?", _per_class("storms"), _CLASS),
    Definition("switch_pfc_buffer_bytes", "gauge", "bytes", "What came in on the port in the class and waits anywhere.",
               "Who fills the buffer?", _per_class("buffer_bytes"), _CLASS),
    Definition("switch_pfc_buffer_bytes_max", "gauge", "bytes", "The most of them since the start.",
               "Who has filled it?", _per_class("buffer_peak"), _CLASS),
    Definition("switch_pfc_headroom_bytes_max", "gauge", "bytes", "The most headroom in use since the start.",
               "How much headroom would have done?", _per_class("headroom_peak"), _CLASS),
    Definition("switch_pfc_headroom_size_bytes", "gauge", "bytes", "The headroom there is.",
               "How much is there?", _per_class("headroom_max"), _CLASS),
    Definition("switch_buffer_bytes", "gauge", "bytes", "What waits in the shared buffer of a lossless switch.",
               "How full is it?", _of_buffer("bytes")),
    Definition("switch_buffer_bytes_max", "gauge", "bytes", "The most of it since the start.",
               "How full has it been?", _of_buffer("peak")),
    Definition("switch_buffer_size_bytes", "gauge", "bytes", "Its size.", "And how large is it?",
               _of_buffer("bytes_max")),
    Definition("switch_ecmp_packets", "counter", "packets", "Packets that the hash sent to an up-link.",
               "Does the hash spread the load?", _chosen, _PORT),
    Definition("switch_ecmp_group_changes", "counter", "times",
               "How often an up-link left the group of equal paths or came back.",
               "Have dead links been noticed?", _moves),
)  # fmt: skip
