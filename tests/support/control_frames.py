"""Link control frames that tests make by hand."""

from zlib import crc32


def with_sum(frame: bytes) -> bytes:
    """The frame with its check sequence behind it."""
    return frame + crc32(frame).to_bytes(4, "little")
