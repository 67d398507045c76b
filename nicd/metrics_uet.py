"""The metrics of UET: contexts, NACKs by code, credits, entropies.

Owns the definitions; `nicd.core.uet.uet_stats` counts, `nicd.core.uet.levels` says how things stand. A NIC with another
transport has none of these series. What UET shares with MRC keeps the names of `nicd.metrics`: packets sent again,
trims, marks, drops, windows, QPs.
"""

from collections.abc import Iterator

from mrcfabric.metrics import Counters, Definition, Reader, Sample

_UET = "uet"


def _number(name: str) -> Reader:
    """A number of UET; none from a NIC that has another transport."""

    def read(counters: Counters) -> Iterator[Sample]:
        if _UET in counters["core"]:
            yield None, (), counters["core"][_UET][name]

    return read


def _each(**names: str) -> Reader:
    """Several numbers that differ in one label, whose values are the argument names."""

    def read(counters: Counters) -> Iterator[Sample]:
        if _UET in counters["core"]:
            for label, name in names.items():
                yield None, (label,), counters["core"][_UET][name]

    return read


def _nacks(counters: Counters) -> Iterator[Sample]:
    if _UET in counters["core"]:
        for direction, name in (("out", "nacks_sent"), ("in", "nacks_received")):
            for code, count in counters["core"][_UET][name].items():
                yield None, (direction, code), count


def _count(name: str, metric: str, unit: str, meaning: str, question: str) -> Definition:
    return Definition(metric, "counter", unit, meaning, question, _number(name))


UET_DEFINITIONS = (
    Definition("nic_uet_contexts", "gauge", "contexts",
               "Packet delivery contexts (PDCs): as an initiator, as a target, and those that wait for the answer to "
               "CLOSE.", "How many contexts must a NIC hold?",
               _each(initiator="initiators", target="targets", closing="closing"), ("role",)),
    Definition("nic_uet_context_changes", "counter", "times",
               "Contexts opened as an initiator, taken as a target, refused for want of room, asked to close, closed.",
               "Do contexts come and go, and is there room for them?",
               _each(opened="contexts_opened", taken="contexts_taken", refused="contexts_refused",
                     asked="closes_asked", closed="contexts_closed"), ("change",)),
    _count("syn_packets", "nic_uet_syn_packets", "packets",
           "Data packets sent before the peer's PDCID was known.", "How much goes out before the first answer?"),
    Definition("nic_uet_nacks", "counter", "packets", "NACKs, by direction and code.",
               "Why do targets refuse packets?", _nacks, ("direction", "code")),
    Definition("nic_uet_control_packets", "counter", "packets",
               "Control packets: probes, grants, requests for credit, CLEAR, CLOSE and requests for them; by "
               "direction.",
               "How much of what goes by carries no payload?",
               _each(**{"out": "controls_sent", "in": "controls_received"}), ("direction",)),
    Definition("nic_uet_responses", "counter", "packets",
               "Responses sent that complete a message, or refuse it with an error; of both, those sent again because "
               "their request came again.", "Has a peer asked for what it may not have, and do answers get lost?",
               _each(ok="responses_sent", refused="responses_refused", repeated="responses_repeated"), ("outcome",)),
    Definition("nic_uet_responses_kept", "gauge", "responses",
               "Responses that this target keeps until their initiators clear them.",
               "How much must a NIC remember for its peers?", _number("responses_kept")),
    Definition("nic_uet_clears", "counter", "times",
               "CLEARs sent because no request was there to say it; times that a target asked for one.",
               "Do responses pile up at targets?", _each(sent="clears_sent", asked="clears_asked"), ("change",)),
    _count("early_packets", "nic_uet_early_packets", "packets", "Data packets received behind a gap.",
           "How much came before its turn?"),
    Definition("nic_uet_grants", "counter", "packets",
               "Grants of credit sent as a receiver; those received that brought more (RCCC).",
               "Do receivers grant, and does it reach the senders?",
               _each(**{"out": "grants_sent", "in": "grants_received"}), ("direction",)),
    _count("credit_requests", "nic_uet_credit_requests", "packets",
           "Times that a sender without credit asked for it by a packet of its own.",
           "Do senders stand still for want of credit?"),
    _count("speculations_stopped", "nic_uet_speculations_stopped", "times",
           "Times that speculative credit became void, by a grant or a NACK.",
           "How often do senders begin before they are granted anything?"),
    Definition("nic_uet_credit_bytes", "gauge", "bytes",
               "What senders may send now, over all destinations: granted, and by speculation.",
               "Does credit lie idle, or is it used up?", _each(granted="credit_bytes", speculative="spare_bytes"),
               ("kind",)),
    Definition("nic_uet_senders", "gauge", "NICs",
               "Senders that this receiver serves in turn: waiting for more, or resting with credit to begin with.",
               "Among how many senders does this receiver share its ports?",
               _each(waiting="senders_waiting", resting="senders_resting"), ("state",)),
    Definition("nic_uet_entropies", "gauge", "entropies",
               "Entropies of all QPs and planes: drawn, those that sit out turns (bitmap), those kept to be used once "
               "more (REPS).", "How many paths may packets take, and how many are avoided?",
               _each(drawn="entropies_drawn", resting="entropies_resting", kept="entropies_kept"), ("state",)),
    Definition("nic_uet_choices_frozen", "gauge", "choices",
               "Pairs of QP and plane that draw no new entropies after a loss (REPS).",
               "Which senders avoid a failure?", _number("frozen")),
    _count("freezes", "nic_uet_freezes", "times", "Times that such a choice froze.", "How often do senders see one?"),
    Definition("nic_uet_planes_left", "gauge", "planes",
               "Pairs of QP and plane that are left for a while: silent, while others delivered.",
               "Has a whole plane failed for somebody?", _number("planes_out")),
    _count("planes_left", "nic_uet_plane_departures", "times", "Times that a QP left a plane so.",
           "How often do senders see a plane fail?"),
)  # fmt: skip
