"""pcapng files for tests, block by block, in either byte order."""

from struct import pack

from mrcfabric.wire import pcapng


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """One block: type, length, body padded to four bytes, length again."""
    body += bytes(-len(body) % 4)
    length = pack(order + "I", len(body) + 12)
    return pack(order + "I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    """A section header, version 1.0, length unknown."""
    return block(pcapng.SECTION_HEADER, pack(order + "IHHq", pcapng.BYTE_ORDER_MAGIC, 1, 0, -1), order)


def interface(link_type: int, snap_bytes: int = 0, order: str = "<") -> bytes:
    """An interface description."""
    return block(pcapng.INTERFACE, pack(order + "HHI", link_type, 0, snap_bytes), order)


def enhanced(frame: bytes, interface_id: int = 0, original: int | None = None, order: str = "<") -> bytes:
    """An enhanced packet block at time 0."""
    sizes = (len(frame), len(frame) if original is None else original)
    return block(pcapng.ENHANCED_PACKET, pack(order + "IIIII", interface_id, 0, 0, *sizes) + frame, order)


def simple(frame: bytes, original: int | None = None, order: str = "<") -> bytes:
    """A simple packet block."""
    return block(pcapng.SIMPLE_PACKET, pack(order + "I", len(frame) if original is None else original) + frame, order)
