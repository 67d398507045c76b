"""Records are rounded up to whole bytes."""

import pytest

from nicd.core.widths import MEMORY_KEY, WORK_REQUEST, Width, record_bytes


@pytest.mark.parametrize(("bits", "more", "size"), [(1, 0, 1), (8, 0, 1), (9, 0, 2), (3, 5, 1), (3, 6, 2)])
def test_whole_bytes(bits: int, more: int, size: int) -> None:
    assert record_bytes((Width("field", bits, ""),), more) == size


def test_records_by_hand() -> None:
    # Two addresses 128, two keys 64, length 32, immediate 33, the application's number 64, two PSNs 48: 369 bits.
    assert record_bytes(WORK_REQUEST) == 47
    # Key 32, address 64, length 40, page table 64, readers 12: 212 bits.
    assert record_bytes(MEMORY_KEY) == 27
