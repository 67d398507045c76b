"""IPv6 and UDP: the headers that MRC borrows, and the optional segment routing header.

Sources: RFC 8200 3, RFC 8754 2, RFC 768.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from mrcfabric.wire.header import Field, Header, Kind
from mrcfabric.wire.layout import NEXT_HEADER_UDP
from mrcfabric.wire.options import HOP_LIMIT_DEFAULT

UNSPECIFIED: Final = bytes(16)


@dataclass(slots=True)
class Ipv6(Header):
    """An IPv6 header; outside its destination is a uSID container, inside the NIC's own address."""

    NAME: ClassVar[str] = "IPv6"
    # RFC 8200 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", 4),
        Field("traffic_class", 8),
        Field("flow_label", 20),
        Field("payload_length", 16),
        Field("next_header", 8),
        Field("hop_limit", 8),
        Field("source", 128, Kind.ADDRESS),
        Field("destination", 128, Kind.ADDRESS),
    )

    version: int = 6
    traffic_class: int = 0
    flow_label: int = 0
    payload_length: int = 0
    next_header: int = NEXT_HEADER_UDP
    hop_limit: int = HOP_LIMIT_DEFAULT
    source: bytes = UNSPECIFIED
    destination: bytes = UNSPECIFIED


SRH_ROUTING_TYPE: Final = 4
SRH_LENGTH: Final = 2


@dataclass(slots=True)
class Srh(Header):
    """A segment routing header with one segment, the only form that MRC uses.

    The segment prolongs the container or keeps a copy of the path; `mrcfabric.wire.srh` inserts and removes the header.
    """

    NAME: ClassVar[str] = "SRH"
    # RFC 8754 2
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("next_header", 8),
        Field("header_length", 8),
        Field("routing_type", 8),
        Field("segments_left", 8),
        Field("last_entry", 8),
        Field("flags", 8),
        Field("tag", 16),
        Field("segment", 128, Kind.ADDRESS),
    )

    next_header: int
    header_length: int = SRH_LENGTH
    routing_type: int = SRH_ROUTING_TYPE
    segments_left: int = 0
    last_entry: int = 0
    flags: int = 0
    tag: int = 0
    segment: bytes = UNSPECIFIED


@dataclass(slots=True)
class Udp(Header):
    """The UDP header; its source port carries half of the EV. RoCEv2 sends the checksum as zero."""

    NAME: ClassVar[str] = "UDP"
    # RFC 768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("source_port", 16),
        Field("destination_port", 16),
        Field("length", 16),
        Field("checksum", 16),
    )

    source_port: int
    destination_port: int
    length: int = 0
    checksum: int = 0
