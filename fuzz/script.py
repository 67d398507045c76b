"""Bytes of a fuzzer read as decisions: numbers, choices, and damage to a packet.

Owns the spelling, so that every string of bytes means something, short ones included, and a small change of the
bytes is a small change of what happens. What is decided is each target's.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

from mrcfabric.wire import srh
from mrcfabric.wire.dscp import Dscp, set_dscp
from mrcfabric.wire.icrc import seal
from mrcfabric.wire.layout import BTH_OFFSET, EXTENSION_OFFSET, OPCODE_NAMES
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, CONTAINER_SIZE

T = TypeVar("T")

_OPCODES = tuple(OPCODE_NAMES)
_DSCPS = tuple(getattr(Dscp(), field.name) for field in fields(Dscp))
_PSN_OFFSET = BTH_OFFSET + 9
_PACKET_BYTES_MAX = 9_216
_EDITS_MAX = 4
_EDIT_KINDS = 10


class Script:
    """Decisions, one after the other; when the bytes are used up every further one is 0."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return max(0, len(self._data) - self._at)

    def number(self, size: int = 1) -> int:
        """The next `size` bytes as a number."""
        piece = self._data[self._at : self._at + size]
        self._at += size
        return int.from_bytes(piece, "big")

    def below(self, bound: int) -> int:
        """A number in [0, bound)."""
        return self.number(1 if bound <= 256 else 2) % bound

    def one_of(self, choices: Sequence[T]) -> T:
        """One of several."""
        return choices[self.below(len(choices))]

    def take(self, size: int) -> bytes:
        """The next bytes as they are, `size` at most."""
        piece = self._data[self._at : self._at + size]
        self._at += size
        return piece


def damaged(script: Script, packet: bytes, others: Sequence[bytes], qpns: Sequence[int]) -> bytearray:
    """A changed copy of a packet (from its outer IPv6 header on): up to four edits, and perhaps a good ICRC.

    `others` are packets that pieces may be taken from, `qpns` QP numbers worth trying.
    """
    copy = bytearray(packet)
    plan = script.number()
    for _ in range(plan >> 1 & _EDITS_MAX - 1):
        _edit(script, copy, others, qpns)
    if plan & 1 and len(copy) >= EXTENSION_OFFSET + 4:
        seal(copy)
    return copy


def _edit(script: Script, copy: bytearray, others: Sequence[bytes], qpns: Sequence[int]) -> None:
    """One edit in place; one that does not fit a short packet does nothing."""
    kind = script.below(_EDIT_KINDS)
    size = len(copy)
    if kind == 0:
        # Headers of extensions: where the cores take their numbers from.
        _write(copy, EXTENSION_OFFSET + script.below(64), script.take(1 + script.below(8)))
    elif kind == 1:
        _write(copy, script.number(2) % max(1, size), script.take(1 + script.below(8)))
    elif kind == 2:
        position = script.number(2) % max(1, size)
        if position < size:
            copy[position] ^= 1 << script.below(8)
    elif kind == 3:
        del copy[script.number(2) % (size + 1) :]
    elif kind == 4:
        copy += bytes(min(script.number(), _PACKET_BYTES_MAX - size)) if size < _PACKET_BYTES_MAX else b""
    elif kind == 5:
        _write(copy, BTH_OFFSET, bytes([script.one_of(_OPCODES)]))
    elif kind == 6:
        dscp = script.one_of(_DSCPS)
        if size >= 2:
            set_dscp(copy, dscp)
    elif kind == 7:
        _step_psn(copy, script.number(2))
    elif kind == 8:
        _graft(script, copy, others, qpns)
    else:
        _put_segment(script, copy)


def _write(copy: bytearray, start: int, piece: bytes) -> None:
    """Overwrite what is there; the size stays."""
    piece = piece[: max(0, len(copy) - start)]
    copy[start : start + len(piece)] = piece


def _step_psn(copy: bytearray, step: int) -> None:
    """Another PSN, up to half of 16 bits away in either direction: near enough to a window to matter."""
    if len(copy) >= _PSN_OFFSET + 3:
        psn = int.from_bytes(copy[_PSN_OFFSET : _PSN_OFFSET + 3], "big") + step - (1 << 15)
        _write(copy, _PSN_OFFSET, (psn & 0xFFFFFF).to_bytes(3, "big"))


def _put_segment(script: Script, copy: bytearray) -> None:
    """A segment routing header behind the outer one: a copy of the path, or what comes after it."""
    if len(copy) >= EXTENSION_OFFSET:
        container = bytes(copy[CONTAINER_IN_PACKET])
        segment = script.take(CONTAINER_SIZE).ljust(CONTAINER_SIZE, b"\0") if script.number() & 1 else container
        srh.insert(copy, srh.outer_with(container, segment))


def _graft(script: Script, copy: bytearray, others: Sequence[bytes], qpns: Sequence[int]) -> None:
    """The number of another QP, or everything behind the BTH from another packet."""
    choice = script.number()
    if choice & 1 and qpns:
        _write(copy, BTH_OFFSET + 5, qpns[(choice >> 1) % len(qpns)].to_bytes(3, "big"))
    elif others and len(copy) >= EXTENSION_OFFSET:
        copy[EXTENSION_OFFSET:] = others[(choice >> 1) % len(others)][EXTENSION_OFFSET:]
