"""Sizes of an RC NIC's state, added up by hand."""

import pytest

from nicd.core.rc.footprint import (
    CONTEXT_BYTES,
    EARLY,
    PINNED,
    QP_CONTEXT,
    REACTION_POINT,
    SENT,
    RcCounts,
    limits_of,
    nic_bytes,
    on_chip_bytes,
    qp_bytes,
    slot_bytes,
    within,
)
from nicd.core.settings import NicSettings
from nicd.core.widths import record_bytes

DEFAULTS = NicSettings(transport="rc")


def test_records_by_hand() -> None:
    # Ends 51 + 128 + 25; sender 72 + 48 + 24 + 56 + 32 + 24 + 72 + 12; receiver 24 + 96 + 64 + 24 + 24 + 16 + 49.
    assert record_bytes(QP_CONTEXT) == (204 + 340 + 297 + 7) // 8 == 106
    assert record_bytes(PINNED) == 16
    # Rates 80, alpha 54, cut 24, steps 32, bytes 32, gate 64, step 24, notified 24: 334 bits.
    assert record_bytes(REACTION_POINT) == 42
    # PSN 24, order 24, state 2, message 12; PSN 24, opcode 4, size 13, length 32, immediate 32.
    assert (record_bytes(SENT), record_bytes(EARLY)) == (8, 14)


@pytest.mark.parametrize("cc", ["none", "dcqcn"])
@pytest.mark.parametrize("path", ["ecmp", "pinned"])
def test_a_context_fits_into_what_is_published(cc: str, path: str) -> None:
    knobs = NicSettings(transport="rc", cc=cc, rc_path=path)
    pieces = qp_bytes(knobs, limits_of(knobs))
    assert pieces["reaction_point"] == (42 if cc == "dcqcn" else 0)
    assert pieces["path"] == (16 if path == "pinned" else 0)
    assert pieces["inflight"] == pieces["early"] == 0
    assert on_chip_bytes(pieces) == 106 + pieces["reaction_point"] + pieces["path"] <= CONTEXT_BYTES
    assert pieces["work_queue"] == knobs.work_requests_max * 47
    assert slot_bytes(knobs) == CONTEXT_BYTES


@pytest.mark.parametrize("psns", [8, 100, 4_096])
def test_selective_recovery_has_a_record_per_packet(psns: int) -> None:
    knobs = NicSettings(transport="rc", rc_recovery="selective", rc_psns_max=psns)
    assert limits_of(knobs) == RcCounts(psns, psns - 1, knobs.work_requests_max)
    assert slot_bytes(knobs) == CONTEXT_BYTES + psns * 8 + (psns - 1) * 14
    assert slot_bytes(NicSettings(transport="rc", rc_recovery="selective", sram_qp_bytes=9)) == 9


def test_counts_above_their_bounds_are_named() -> None:
    assert within(RcCounts(1, 2, 3), RcCounts(1, 2, 3)) == []
    assert within(RcCounts(2, 2, 4), RcCounts(1, 2, 3)) == ["inflight", "work_requests"]


def test_a_nic_has_its_keys_besides() -> None:
    assert nic_bytes(3) == {"memory_keys": 81}
