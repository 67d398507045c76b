"""What a loss on a slow bed would be at a deployed rate: the measure `bytes_lost`.

Owns the conversion. While a route is wrong, every packet that takes it is lost for a time that timers decide, not
rates; so a port of 800 Gb/s loses in that time as many times the bytes as its rate is higher:

    bytes lost at R  =  packets lost in the fabric x mtu_bytes x R / rate_bps

A packet counts as a full one, so the figure is an upper bound where messages are short. Packets that a host refused
were not lost in the fabric and do not count.
"""

from typing import Final

from orchestrator.measures import counts
from orchestrator.measures.measure import Figure, Measure, Of, Question, Unit, matching

FABRIC_LOSSES: Final = (
    "frozen", "no_route", "hop_limit", "data_full", "control_full", "trimmed_full", "trim_full", "pfc_headroom",
    "buffer_full", "head_life", "vl_stalled", "link_down", "loss", "gray", "black_hole", "no_carrier",
)  # fmt: skip
"""Reasons (`drop_reasons`) for which a packet was lost on its way."""
RATES: Final = {f"{gbps}G": gbps * 1_000_000_000 for gbps in (100, 200, 400, 800)}


def bytes_lost(question: Question) -> list[Figure]:
    """Bytes lost in the fabric, on this bed and at the rates that are asked for."""
    topology = question.recording.topology
    reading = counts.by_label("drops.", FABRIC_LOSSES, switches=True)
    inner = counts.counted(lambda look: {"": sum(reading(look)[reason] for reason in FABRIC_LOSSES)})
    found = []
    for figure in inner(Question(question.recording, (), question.windows, question.binned)):
        packets = figure.value or 0
        for name in matching(question.of, RATES):
            share = RATES[name] / topology.rate_bps if name else 1.0
            found.append(figure._replace(value=packets * topology.mtu_bytes * share, of=name))
    return found


BYTES_LOST: Final = Measure(
    Unit.BYTES,
    "Packets lost in the fabric, as full ones: on this fabric, or of `800G` and such as ports of that rate would lose "
    "in the same time (packets x mtu_bytes x rate / rate_bps).",
    bytes_lost,
    (Of.LABEL,),
    tuple(RATES),
    reduce="sum",
    binned=True,
    of_work=False,
)
