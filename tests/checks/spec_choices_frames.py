"""What is open, or ours, on the wire of RoCE and of lossless links: the rows of `spec_choices` about their bytes."""

from typing import Final

from tests.checks.choice import DEVIATION, OPTION, UNKNOWN, WIRE, Choice
from tests.checks.choice import of as _of

FRAMES: Final = (
    Choice(
        "RoCE's UDP destination port",
        OPTION,
        "4791 alone, whatever `wire.udp_port` says: other programs know RoCE by it.",
    ),
    Choice(
        "RoCE's UDP checksum over IPv6",
        OPTION,
        "Sent as 0 (annex A17), not read. Wireshark complains unless `udp.ignore_ipv6_zero_checksum` is set.",
    ),
    Choice("RoCE's flow label", OPTION, "0 in every header; switches hash addresses, next header and ports."),
    Choice("RoCE's SE and MigReq bits", OPTION, "Sent as 0 and not read."),
    Choice("RoCE's P_Key and first hop limit", OPTION, "Those of MRC.", _of(WIRE, "p_key", "hop_limit")),
    Choice(
        "RoCE behind an outer header (a pinned path)",
        DEVIATION,
        "The plain packet, unchanged, behind an IPv6 header with a uSID container; marks are read from that header. "
        "The ICRC begins with the inner header, as MRC's does.",
    ),
    Choice(
        "Where selective recovery (IRN) writes a packet's place and what an acknowledgement is about",
        UNKNOWN,
        "The paper names the contents and no layout. A RETH stands in every data packet, with the address of that "
        "packet's first byte; four bytes behind each AETH hold the PSN of the packet that caused it. Others see "
        "payload.",
    ),
    Choice(
        "Which MAC address a PFC frame comes from",
        OPTION,
        "A locally administered one, made from tier, plane, number and port of the sender.",
    ),
    Choice(
        "PFC frame with or without its check sequence",
        OPTION,
        "With it: 64 bytes are sent, checked and captured; a frame with a wrong one is dropped as `control_fcs`.",
    ),
    Choice("Quanta that are no whole number of nanoseconds", OPTION, "The pause lasts to the next whole one."),
)
