"""The table of the systems: what overviews of them say of each property, and beside it what was measured here.

Owns words and layout, no figure of ours: those are findings of `contrast`. Overviews are texts that put InfiniBand,
RoCEv2, UET and MRC side by side; where they are wrong or disagree, `CORRECTIONS` says so.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mrcfabric.units import NEVER
from studies.systems.contrast import (
    DEGREE,
    LOSS_PPM,
    PLANES,
    PORTS,
    SYSTEMS,
    UPLINKS,
    measure_system,
)
from studies.systems.row import Finding, Row

FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    "InfiniBand": ("ib", "ib-adaptive"),
    "RoCEv2": ("roce",),
    "UET": ("uet", "uet-rccc", "uet-both"),
    "MRC": ("mrc",),
}


class Property(NamedTuple):
    """A line of the overviews, and the lines of ours below it."""

    title: str
    claims: tuple[str, str, str, str]
    """In the order of `FAMILIES`."""
    figures: Mapping[str, str]
    """Figure -> what it is, for a reader."""


PROPERTIES: Final = (
    Property(
        "Multipath",
        ("adaptive routing", "none: one path by a hash", "128 to 256 entropies", "128 to 256 EVs"),
        {
            "links": f"Up-links that the packets of one QP take, of {PLANES * UPLINKS}",
            "permutation": "Mean share of the line in a permutation drawn over four T0s, one QP each",
        },
    ),
    Property(
        "Loss recovery",
        ("link and transport", "go-back-N or selective", "selective, trimming", "selective, trimming"),
        {
            "resent": f"Packets sent again for each that is lost, at {LOSS_PPM / 10_000:g} % of loss",
            "lossy": f"Share of the line at {LOSS_PPM / 1_000:g} % of loss",
        },
    ),
    Property(
        "Flow control",
        ("credits", "PFC", "credits", "none in the network"),
        {
            "dropped": f"A {DEGREE}:1 incast: packets dropped or trimmed, per 1,000 sent",
            "bystander": "What a flow to an idle NIC keeps beside it, of its rate alone",
        },
    ),
    Property(
        "Source routing",
        ("no", "no", "no", "static SRv6 uSIDs"),
        {"moves": "Switches that choose other up-links when an up-link is cut"},
    ),
    Property(
        "Recovery time",
        ("seconds, by the subnet manager", "seconds, by routing", "milliseconds, to be defined", "microseconds"),
        {
            "recovery": "A T1 dies and nobody is told: from then until a flow has nine tenths of its rate again",
            "again": "Packets sent again meanwhile",
            "cut": "An up-link is cut and its T0 sees it: likewise",
        },
    ),
    Property(
        "Scale",
        ("64 K end points", "64 K", "more than 100 K", "131,072"),
        {"largest": "NICs of the largest fabric, in the shape named below"},
    ),
    Property(
        "Cost of NIC and switch",
        ("-", "256 to 512 bytes per QP; headroom of up to 50 MB", "-", "16 KB per QP"),
        {
            "state": "State of a QP on the NIC, at its peak in the permutation",
            "headroom": f"Buffer of a switch of {PORTS} ports of 100 Gb/s that is kept for pauses or granted as credit",
        },
    ),
)

CORRECTIONS: Final = """
1. InfiniBand's 64 K is the width of a LID. Unicast LIDs end at 0xBFFF: 49,151 for NICs and switches together.
2. InfiniBand takes seconds only without local repair in its switches. What makes it lossless is credits; retries of
   a link are a property of newer PHYs.
3. UET is controlled by windows (NSCC) as it comes. Credits (RCCC) are an option of the receiver; both may run at
   once.
4. A cycle of buffers that wait for each other stops a PFC fabric. Priorities have no part in it.
5. Routing converges in tens of milliseconds, in seconds or in tens of seconds: each is right, with another detector
   of the loss. RFC 7938 promises less than a second.
6. The shape of 131,072 NICs has 512 + 256 switches per plane, 6,144 in all, and 393,216 switch ports per plane; 768
   switches are one plane. 64 T0s with 256 NICs each would be 16,384.
7. 500,000 NICs do not fit two tiers of switches with 512 ports: 131,072 is the end of those.
8. 256 EVs in 16 KB are the state of one QP, not 16 KB per EV; 2,000 of them take 91 % of 35 MB.
9. Two hops against five to seven counts switches on one side and links on the other: it is 2 against 5 switches, or
   3 against 6 links.
10. The buffer per bit of the newest 102.4T switch is 48 % below its predecessor's by the sizes given, not 34 %.
11. The NIC that is said to have fixed logic is described by its maker as a programmable pipeline.
12. That a path once confirmed as failed is never used again contradicts probes that bring paths back: a setting
   here (`probe_successes`).
"""
"""What the overviews have wrong, as a list of the page."""
AFTER: Final = f"""
A figure holds for the settings that a system ships with, on this fabric. A dead T1 is noticed by NICs alone:
tables stand still in these runs (`switch.routing` is `static`), and a QP that has one path fails. The largest fabric of
InfiniBand and RoCEv2 has three tiers of switches with 64 ports, that of UET and MRC eight planes of two tiers, with
{PORTS}.

Where overviews are wrong, or disagree:

"""


def table(findings: Sequence[Finding]) -> str:
    """The table, from what `measure_system` found for all systems."""
    cells = {finding.at: finding for finding in findings}
    lines = ["| | " + " | ".join(FAMILIES) + " |", "|---|" + "---|" * len(FAMILIES)]
    for one in PROPERTIES:
        lines.append(f"| **{one.title}**, overviews say | " + " | ".join(f"*{claim}*" for claim in one.claims) + " |")
        for name, what in one.figures.items():
            ours = [_cell(name, systems, cells) for systems in FAMILIES.values()]
            lines.append(f"| {what} | " + " | ".join(ours) + " |")
    return "\n".join(lines) + "\n"


def _cell(name: str, systems: Sequence[str], cells: Mapping[str, Finding]) -> str:
    texts = {system: _text(cells[f"{name} {system}"]) for system in systems}
    if len(set(texts.values())) == 1:
        return texts[systems[0]]
    return ", ".join(f"{text} ({system})" for system, text in texts.items())


def _text(finding: Finding) -> str:
    return "never: its QP fails" if finding.ours >= _NEVER_US else finding.shown


_NEVER_US: Final = NEVER / 1_000 / 2

ROWS: Final = (
    Row(
        "Table",
        "The systems side by side",
        "what overviews say of each system, beside what it did here",
        "overviews that set the four side by side",
        "none, shown",
        f"Two T0s in each of {PLANES} planes, {UPLINKS} up-links each, 100 Gb/s; permutations have a plane of four T0s",
        SYSTEMS,
        measure_system,
        exact=False,
        layout=lambda findings: table(findings) + AFTER + CORRECTIONS.lstrip(),
    ),
)
