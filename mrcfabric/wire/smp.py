"""Directed-route subnet management packets: the 256 bytes by which a subnet manager and the nodes talk, and their way.

Owns the packet (LRH on VL15, BTH, DETH, MAD, both sums), the tables of its headers and attributes, and the step that a
node takes with one. Who answers what is the business of switches and NICs, what is asked that of the manager. Such
packets are rare, so they are read by tables; nothing here raises for bytes of a peer.

A packet carries its way: ports to leave by, from entry 1 on, and on its way out each node writes down the port on which
it came. The answer goes back by those. Ports count from 1 here as InfiniBand counts them: port p of this program is
p + 1, and 0 is a node itself. Every node that changes the packet writes both sums anew.

    MAD: base version 1, class 81, class version 1, method, D and status, hop pointer, hop count, transaction id,
         attribute, modifier, M_Key, DrSLID, DrDLID, 28 reserved bytes, then 64 bytes each of data, of the initial
         path and of the return path

Sources: IBTA 13.4 (MADs), 14.2.1 and 14.2.2 (directed routes), 14.2.5 (attributes), 9.5 (datagrams).
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Final

from mrcfabric.units import Buffer
from mrcfabric.wire.header import Field, Header, Kind, reserved
from mrcfabric.wire.layout import BTH_SIZE, ICRC_SIZE
from mrcfabric.wire.lrh import (
    LRH_SIZE,
    MANAGEMENT_VL,
    PERMISSIVE_LID,
    link_fault,
    lrh_icrc,
    lrh_sums_ok,
    pack,
    with_vcrc,
)
from mrcfabric.wire.options import P_KEY_DEFAULT
from mrcfabric.wire.roce_headers import RcBth

UD_SEND_ONLY: Final = 0x64
BY_LID: Final = 0x01
DIRECTED: Final = 0x81
GET: Final = 0x01
SET: Final = 0x02
TRAP: Final = 0x05
TRAP_REPRESS: Final = 0x07
ANSWER: Final = 0x81
NODE_DESCRIPTION: Final = 0x10
NODE_INFO: Final = 0x11
SWITCH_INFO: Final = 0x12
PORT_INFO: Final = 0x15
LFT: Final = 0x19
SM_INFO: Final = 0x20
NOTICE: Final = 0x02
OK: Final = 0
UNSUPPORTED: Final = 0x0C
"""Status: no such attribute, or not with this method."""
BAD_VALUE: Final = 0x1C
"""Status: a field of the attribute or its modifier will not do."""
HOPS_MAX: Final = 63
DATA_BYTES: Final = 64
PATH_BYTES: Final = 64
SELF_PORT: Final = 0
NO_LFT_PORT: Final = 0xFF

CHANNEL_ADAPTER: Final = 1
SWITCH: Final = 2
# States of a port.
PORT_DOWN: Final = 1
PORT_ACTIVE: Final = 4


@dataclass(slots=True)
class Deth(Header):
    """Datagram extended transport header, 8 bytes."""

    NAME: ClassVar[str] = "DETH"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("q_key", 32), reserved(8), Field("source_qp", 24))

    q_key: int = 0
    source_qp: int = 0


@dataclass(slots=True)
class Smp(Header):
    """A directed-route MAD, 256 bytes."""

    NAME: ClassVar[str] = "SMP"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("base_version", 8),
        Field("mgmt_class", 8),
        Field("class_version", 8),
        Field("method", 8),
        Field("d", 1),
        Field("status", 15),
        Field("hop_pointer", 8),
        Field("hop_count", 8),
        Field("transaction_id", 64),
        Field("attribute", 16),
        reserved(16),
        Field("modifier", 32),
        Field("m_key", 64),
        Field("dr_slid", 16),
        Field("dr_dlid", 16),
        reserved(28 * 8),
        Field("data", DATA_BYTES * 8, Kind.ADDRESS),
        Field("initial_path", PATH_BYTES * 8, Kind.ADDRESS),
        Field("return_path", PATH_BYTES * 8, Kind.ADDRESS),
    )

    method: int
    attribute: int
    modifier: int = 0
    transaction_id: int = 0
    data: bytes = bytes(DATA_BYTES)
    initial_path: bytes = bytes(PATH_BYTES)
    return_path: bytes = bytes(PATH_BYTES)
    hop_pointer: int = 0
    hop_count: int = 0
    d: int = 0
    """1: on its way back."""
    status: int = OK
    m_key: int = 0
    dr_slid: int = PERMISSIVE_LID
    dr_dlid: int = PERMISSIVE_LID
    base_version: int = 1
    mgmt_class: int = DIRECTED
    class_version: int = 1


SMP_PACKET_BYTES: Final = LRH_SIZE + BTH_SIZE + Deth.SIZE + Smp.SIZE + ICRC_SIZE + 2
_START: Final = LRH_SIZE + BTH_SIZE + Deth.SIZE
assert Smp.SIZE == 256


def request(
    method: int, attribute: int, path: tuple[int, ...], transaction_id: int, modifier: int = 0, data: bytes = b""
) -> Smp:
    """A request along a path of ports, each to leave a node by: first the sender's own."""
    assert len(path) <= HOPS_MAX, f"a path of {len(path)} hops"
    initial = bytes((0, *path)).ljust(PATH_BYTES, b"\0")
    return Smp(method, attribute, modifier, transaction_id, data.ljust(DATA_BYTES, b"\0"), initial, hop_count=len(path))


def answer(asked: Smp, status: int = OK, data: bytes | None = None) -> Smp:
    """The answer to a request that has reached its end; by default with the data that came."""
    found = asked.data if data is None else data.ljust(DATA_BYTES, b"\0")
    return replace(asked, method=ANSWER, status=status, data=found, d=1)


def step(smp: Smp, in_port: int) -> tuple[int, Smp] | None:
    """What becomes of a packet at a node, or at its sender, which has it from `SELF_PORT`: the port to leave by.

    `SELF_PORT`: it is for this node. None: it goes no further.
    """
    pointer, count = smp.hop_pointer, smp.hop_count
    if count > HOPS_MAX:
        return None
    if smp.d:
        # IBTA 14.2.2.4: the way back, last entry first.
        if not 1 <= pointer <= count + 1:
            return None
        pointer -= 1
        port = smp.return_path[pointer] if pointer else SELF_PORT
        if pointer and port == SELF_PORT:
            return None
        return port, replace(smp, hop_pointer=pointer)
    # IBTA 14.2.2.2
    if pointer > count or (pointer == 0) != (in_port == SELF_PORT):
        return None
    path = smp.return_path
    if pointer:
        path = path[:pointer] + bytes((in_port,)) + path[pointer + 1 :]
    if pointer == count:
        return SELF_PORT, replace(smp, hop_pointer=pointer + 1, return_path=path)
    port = smp.initial_path[pointer + 1]
    if port == SELF_PORT:
        return None
    return port, replace(smp, hop_pointer=pointer + 1, return_path=path)


def trap(data: bytes) -> Smp:
    """What a node tells its manager unasked: a notice, sent by LID."""
    return Smp(TRAP, NOTICE, data=data.ljust(DATA_BYTES, b"\0"), mgmt_class=BY_LID, dr_slid=0, dr_dlid=0)


def encode(smp: Smp, slid: int = PERMISSIVE_LID, dlid: int = PERMISSIVE_LID) -> bytearray:
    """The packet; with LIDs one that goes by them."""
    bth = RcBth(UD_SEND_ONLY, 0, 0, p_key=P_KEY_DEFAULT)
    words = (SMP_PACKET_BYTES - 2) // 4
    head = pack(MANAGEMENT_VL, 0, dlid, words, slid)
    packet = bytearray(head + bth.emit() + Deth().emit() + smp.emit() + bytes(ICRC_SIZE + 2))
    packet[-ICRC_SIZE - 2 : -2] = lrh_icrc(packet).to_bytes(ICRC_SIZE, "little")
    del packet[-2:]
    return with_vcrc(packet)


def is_management(packet: Buffer) -> bool:
    """Whether a packet that no link faults is one of these, directed or by LID, by its VL and its size."""
    return packet[0] >> 4 == MANAGEMENT_VL and len(packet) == SMP_PACKET_BYTES


def is_directed(packet: Buffer) -> bool:
    """Whether a packet that no link faults is a directed-route packet, by its VL and its size."""
    return packet[0] >> 4 == MANAGEMENT_VL and packet[2:4] == b"\xff\xff" and len(packet) == SMP_PACKET_BYTES


def parse(packet: Buffer) -> Smp | None:
    """What a management packet says, which is directed or goes by LID; None for bytes that are no good one."""
    if link_fault(packet) is not None or not is_management(packet) or not lrh_sums_ok(packet):
        return None
    bth = RcBth.parse(packet[LRH_SIZE:])
    if bth.opcode != UD_SEND_ONLY or bth.dest_qp or bth.pad_count:
        return None
    smp = Smp.parse(packet[_START:])
    known = smp.base_version, smp.mgmt_class, smp.class_version
    return smp if known == (1, DIRECTED if is_directed(packet) else BY_LID, 1) else None
