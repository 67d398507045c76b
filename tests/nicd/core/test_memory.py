"""Regions, their keys and their bounds."""

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng
from nicd.core.memory import MemoryTable


def table(regions_max: int = 8, size_max: int = 1 << 20, own_max: int = 1 << 20) -> MemoryTable:
    return MemoryTable(Rng("memory"), regions_max, size_max, own_max)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(
    ("va", "size", "fits"),
    [(0x1000, 16, True), (0x1000, 17, False), (0xFFF, 2, False), (0x100F, 1, True), (0x1010, 1, False), (0, 1, False)],
)
def test_a_packet_is_placed_inside_its_region_or_not_at_all(va: int, size: int, fits: bool) -> None:
    memory = table()
    region = memory.register(0x1000, 16, None, 7, None)
    assert memory.place(7, va, b"\xaa" * size) is fits
    assert (bytes(region.view).count(0xAA) == size) is fits
    assert (bytes(region.view) == bytes(16)) is not fits


def test_a_wrong_key_places_nothing() -> None:
    memory = table()
    region = memory.register(0, 16, None, 7, None)
    assert not memory.place(8, 0, b"x")
    assert bytes(region.view) == bytes(16)


def test_an_applications_memory_is_written_in_place() -> None:
    memory = table()
    owned = bytearray(32)
    memory.register(0, 16, None, 7, memoryview(owned))
    assert memory.place(7, 4, b"abc")
    assert owned[4:7] == b"abc"


def test_ids_and_keys_are_chosen_when_left_open() -> None:
    memory = table()
    regions = [memory.register(0, 16, None, None, None) for _ in range(3)]
    assert len({region.region_id for region in regions}) == 3
    assert len({region.r_key for region in regions}) == 3
    assert memory.find(regions[0].region_id) is regions[0]


@pytest.mark.parametrize(
    ("va", "length", "region_id", "r_key", "memory", "words"),
    [
        (0, 0, None, None, None, "0 bytes"),
        (0, 2 << 20, None, None, None, "possible are"),
        (-1, 16, None, None, None, "64 bits"),
        ((1 << 64) - 8, 16, None, None, None, "64 bits"),
        (0, 16, 1, None, None, "exists already"),
        (0, 16, -1, None, None, "no region id"),
        (0, 16, None, 7, None, "in use"),
        (0, 16, None, 1 << 32, None, "32 bits"),
        (0, 16, None, None, memoryview(b"0123456789abcdef"), "writable"),
        (0, 16, None, None, memoryview(bytearray(8)), "writable"),
    ],
)
def test_what_cannot_be_registered(
    va: int, length: int, region_id: int | None, r_key: int | None, memory: memoryview | None, words: str
) -> None:
    regions = table()
    regions.register(0, 16, 1, 7, None)
    with pytest.raises(RefusedError, match=words):
        regions.register(va, length, region_id, r_key, memory)
    assert len(regions.by_key) == 1


def test_the_number_of_regions_is_bounded() -> None:
    memory = table(regions_max=1)
    memory.register(0, 16, None, None, None)
    with pytest.raises(RefusedError, match="in use"):
        memory.register(0, 16, None, None, None)


def test_a_region_in_use_stays() -> None:
    memory = table()
    region = memory.register(0, 16, 1, 7, None)
    region.readers = 1
    with pytest.raises(RefusedError, match="unfinished"):
        memory.deregister(1)
    region.readers = 0
    memory.deregister(1)
    assert not memory.place(7, 0, b"x")
    with pytest.raises(RefusedError, match="no memory region"):
        memory.deregister(1)


@pytest.mark.parametrize(("va", "length"), [(0xFFF, 1), (0x1000, 17), (0x1010, 1), (0x1000, -1)])
def test_reading_outside_is_refused(va: int, length: int) -> None:
    region = table().register(0x1000, 16, None, 7, None)
    with pytest.raises(RefusedError, match="not inside"):
        region.read(va, length)
    assert len(region.read(0x1000, 16)) == 16


def test_a_large_region_begins_with_zeros() -> None:
    memory = table(size_max=2 << 20, own_max=4 << 20)
    region = memory.register(0, (1 << 20) + 5, None, 7, None)
    assert bytes(region.view) == bytes((1 << 20) + 5)
    assert memory.place(7, 1 << 20, b"abcde")
    assert bytes(region.view[-5:]) == b"abcde"
    assert not memory.place(7, (1 << 20) + 1, b"abcde")


def test_more_memory_than_the_host_has_is_refused() -> None:
    memory = table(size_max=1 << 62, own_max=1 << 62)
    with pytest.raises(RefusedError, match="Cannot allocate memory"):
        memory.register(0, 1 << 62, None, 7, None)
    assert len(memory) == 0
    assert memory.register(0, 1 << 20, None, 7, None).length == 1 << 20


def test_what_the_nic_allocates_itself_has_a_bound_of_its_own() -> None:
    memory = table(own_max=100)
    region = memory.register(0, 60, None, None, None)
    with pytest.raises(RefusedError, match="allocates 40 more"):
        memory.register(0, 41, None, None, None)
    memory.register(0, 1_000, None, None, memoryview(bytearray(1_000)))
    memory.deregister(region.region_id)
    memory.register(0, 100, None, None, None)


def test_a_refused_region_takes_nothing() -> None:
    memory = table(own_max=100)
    memory.register(0, 10, 5, 7, None)
    for number, key in ((5, None), (None, 7)):
        with pytest.raises(RefusedError):
            memory.register(0, 50, number, key, None)
    memory.register(0, 90, None, None, None)
