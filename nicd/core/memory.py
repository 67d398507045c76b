"""Registered memory: which bytes a peer may write, under which key, at which virtual addresses.

Owns regions, their keys and bounds. The application passes the memory in, over the verbs server, of which this module
knows nothing. MRC 1.0 section 3: only WRITE reaches memory, by R_Key and virtual address, packet by packet.
"""

from collections.abc import Callable
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng
from mrcfabric.units import Buffer

_MAPPED_BYTES: Final = 1 << 19
"""Regions from this length on are mapped: they take pages as these are written, and are given back whole."""


class Region:
    """`length` bytes at virtual address `va`; `view` is writable."""

    __slots__ = ("length", "own", "r_key", "readers", "region_id", "va", "view")

    def __init__(self, region_id: int, r_key: int, va: int, view: memoryview, own: bool = False) -> None:
        """`own`: the NIC has allocated the bytes itself."""
        self.region_id = region_id
        self.r_key = r_key
        self.va = va
        self.view = view
        self.length = len(view)
        self.own = own
        self.readers = 0
        """Unfinished messages that are sent from here."""

    def read(self, va: int, length: int) -> memoryview:
        """The bytes at `va`. RefusedError when they are not all inside."""
        offset = va - self.va
        if offset < 0 or length < 0 or offset + length > self.length:
            raise RefusedError(f"{length} bytes at {va:#x} are not inside region {self.region_id}")
        return self.view[offset : offset + length]

    def record(self) -> dict[str, int | str | bool | None]:
        """What the owner needs to know."""
        return {"region_id": self.region_id, "r_key": self.r_key, "va": self.va, "length": self.length}


class MemoryTable:
    """All regions of a NIC, by id and by R_Key."""

    __slots__ = ("_by_id", "_own_bytes", "_own_max", "_regions_max", "_rng", "_size_max", "by_key", "on_placed")

    def __init__(self, rng: Rng, regions_max: int, size_max: int, own_max: int) -> None:
        """Bounds: regions, bytes of one, bytes of all that the table itself allocates."""
        self._rng = rng
        self._regions_max = regions_max
        self._size_max = size_max
        self._own_max = own_max
        self._own_bytes = 0
        self._by_id: dict[int, Region] = {}
        self.by_key: dict[int, Region] = {}
        self.on_placed: Callable[[int, int, Buffer], None] | None = None
        """Is told of each payload that was written: key, address, bytes. For whoever checks a core; None: nobody."""

    def register(
        self, va: int, length: int, region_id: int | None, r_key: int | None, memory: memoryview | None
    ) -> Region:
        """A new region; without `memory` it is allocated, zeroed. RefusedError says what is wrong."""
        if len(self._by_id) >= self._regions_max:
            raise RefusedError(f"all {self._regions_max} memory regions are in use")
        if not 0 < length <= self._size_max:
            raise RefusedError(f"a region of {length} bytes; possible are 1 to {self._size_max}")
        if va < 0 or va + length > 1 << 64:
            raise RefusedError(f"{length} bytes at {va:#x} do not fit into 64 bits")
        number, key = self._free_id(region_id), self._free_key(r_key)
        if memory is None:
            if length > self._own_max - self._own_bytes:
                left = self._own_max - self._own_bytes
                raise RefusedError(f"a region of {length} bytes without memory; the NIC itself allocates {left} more")
            view = _zeroed(length)
            self._own_bytes += length
        else:
            view = memory.cast("B")
            if view.readonly or len(view) < length:
                raise RefusedError(f"the memory handed in is not {length} writable bytes")
            view = view[:length]
        region = Region(number, key, va, view, memory is None)
        self._by_id[region.region_id] = region
        self.by_key[region.r_key] = region
        return region

    def __len__(self) -> int:
        return len(self._by_id)

    def deregister(self, region_id: int) -> None:
        """Forget a region. RefusedError when it is unknown or still read from."""
        region = self.find(region_id)
        if region.readers:
            raise RefusedError(f"region {region_id} has {region.readers} unfinished messages")
        if region.own:
            self._own_bytes -= region.length
        del self._by_id[region_id]
        del self.by_key[region.r_key]

    def find(self, region_id: int) -> Region:
        """The region with this id. RefusedError when there is none."""
        region = self._by_id.get(region_id)
        if region is None:
            raise RefusedError(f"no memory region {region_id}")
        return region

    def place(self, r_key: int, va: int, payload: Buffer) -> bool:
        """Write a packet's payload where it belongs; False, and nothing written, when key or bounds are wrong."""
        region = self.by_key.get(r_key)
        if region is None:
            return False
        offset = va - region.va
        end = offset + len(payload)
        if offset < 0 or end > region.length:
            return False
        region.view[offset:end] = payload
        if self.on_placed is not None:
            self.on_placed(r_key, va, payload)
        return True

    def _free_id(self, wanted: int | None) -> int:
        if wanted is None:
            wanted = len(self._by_id) + 1
            while wanted in self._by_id:
                wanted += 1
        elif wanted in self._by_id:
            raise RefusedError(f"memory region {wanted} exists already")
        elif wanted < 0:
            raise RefusedError(f"{wanted} is no region id")
        return wanted

    def _free_key(self, wanted: int | None) -> int:
        if wanted is None:
            wanted = self._rng.below(1 << 32)
            while wanted in self.by_key:
                wanted = self._rng.below(1 << 32)
        elif wanted in self.by_key:
            raise RefusedError(f"R_Key {wanted:#x} is in use")
        elif not 0 <= wanted < 1 << 32:
            raise RefusedError(f"{wanted} is no R_Key of 32 bits")
        return wanted


def _zeroed(length: int) -> memoryview:
    """Writable bytes of the NIC's own. RefusedError when the host has not as many."""
    if length < _MAPPED_BYTES:
        return memoryview(bytearray(length))
    try:
        return memoryview(mmap(-1, length, flags=MAP_PRIVATE | MAP_ANONYMOUS))
    except OSError as error:
        raise RefusedError(f"a region of {length} bytes: {error.strerror}") from None
