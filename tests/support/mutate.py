"""Hostile variants of real packets, drawn from a seeded generator: what a broken or a malicious peer might send."""

from typing import Any

from mrcfabric.node import Input, Rank
from mrcfabric.rng import Rng
from mrcfabric.wire.dscp import Dscp, set_dscp
from mrcfabric.wire.icrc import seal
from mrcfabric.wire.layout import BTH_OFFSET, EXTENSION_OFFSET, OPCODE_NAMES

_OPCODES = tuple(OPCODE_NAMES)
_EDGES = (b"\0", b"\xff", b"\x7f", b"\x80", b"\x01")


def mutated(rng: Rng, packet: Any, *, sealed: bool) -> bytearray:
    """A damaged copy of `packet`. `sealed` repairs its ICRC where it is long enough: damage with intent."""
    copy = bytearray(packet)
    kind = rng.below(8)
    if len(copy) < EXTENSION_OFFSET:
        _flip(rng, copy, 0, 1 + rng.below(3))
    elif kind == 0:
        del copy[rng.below(len(copy)) :]
    elif kind == 1:
        copy += bytes(1 + rng.below(64))
    elif kind == 2:
        dscp = Dscp()
        set_dscp(copy, dscp.trimmed if rng.below(2) else dscp.trimmed_lasthop)
        _flip(rng, copy, BTH_OFFSET, 1)
        if rng.below(2):
            del copy[EXTENSION_OFFSET + rng.below(160) :]
    elif kind == 3:
        copy[BTH_OFFSET] = _OPCODES[rng.below(len(_OPCODES))]
    elif kind == 4:
        start = EXTENSION_OFFSET + rng.below(36)
        size = 1 + rng.below(8)
        copy[start : start + size] = _EDGES[rng.below(len(_EDGES))] * size
    elif kind == 5:
        _flip(rng, copy, EXTENSION_OFFSET, 1 + rng.below(4))
    elif kind == 6:
        _flip(rng, copy, BTH_OFFSET, 1 + rng.below(2))
    else:
        _flip(rng, copy, 0, 1 + rng.below(3))
    if sealed and len(copy) >= EXTENSION_OFFSET + 4:
        seal(copy)
    return copy


def _flip(rng: Rng, packet: bytearray, start: int, bits: int) -> None:
    """Turn over some bits of the 60 bytes from `start` on."""
    for _ in range(bits):
        position = start + rng.below(60)
        if position < len(packet):
            packet[position] ^= 1 << rng.below(8)


def among(rng: Rng, inputs: list[Input], share_ppm: int, *, sealed: bool) -> list[Input]:
    """`inputs`, with a mutated copy before or behind some of the frames."""
    mixed = []
    for entry in map(Input._make, inputs):
        if entry.rank != Rank.FRAME or not rng.chance(share_ppm):
            mixed.append(entry)
            continue
        bad = entry._replace(body=mutated(rng, entry.body, sealed=sealed))
        mixed += (bad, entry) if rng.below(2) else (entry, bad)
    return mixed
