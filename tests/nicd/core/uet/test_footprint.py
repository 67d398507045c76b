"""Widths of UET's state and their sums, against numbers by hand."""

from nicd.core.settings import NicSettings
from nicd.core.uet.footprint import (
    ENTROPY,
    ON_CHIP,
    OPEN_MESSAGE,
    SENT,
    UetCounts,
    limits_of,
    nic_bytes,
    on_chip_bytes,
    qp_bytes,
    slot_bytes,
    within,
)
from nicd.core.widths import record_bytes


def test_a_qp_by_hand() -> None:
    knobs = NicSettings(mpr_units=4, evs_active=64)
    pieces = qp_bytes(knobs, UetCounts(10, 3, 2, 5))
    assert pieces["inflight"] == 10 * record_bytes(SENT)
    assert pieces["messages"] == 2 * record_bytes(OPEN_MESSAGE)
    assert pieces["bitmap"] == 64
    assert pieces["entropies"] == 8 * record_bytes(ENTROPY) < 25, "REPS: less than 25 bytes a connection"
    assert pieces["credit"] == 0 < pieces["window"]
    assert on_chip_bytes(pieces) == sum(pieces[name] for name in ON_CHIP) == sum(pieces.values()) - pieces["work_queue"]


def test_what_the_settings_change() -> None:
    none = UetCounts(0, 0, 0, 0)
    for knobs, name, more in (
        ({"uet_path": "bitmap"}, "entropies", True), ({"uet_mode": "rod"}, "entropies", False),
        ({"uet_cc": "both"}, "credit", True), ({"uet_cc": "rccc"}, "window", False),
    ):  # fmt: skip
        assert (qp_bytes(NicSettings(**knobs), none)[name] > qp_bytes(NicSettings(), none)[name]) == more


def test_limits() -> None:
    knobs = NicSettings(mpr_units=4, work_requests_max=9, uet_responses_max=6)
    assert limits_of(knobs) == UetCounts(512, 511, 512, 9, 6)
    assert within(UetCounts(513, 0, 0, 10, 7), limits_of(knobs)) == ["inflight", "work_requests", "responses"]
    assert slot_bytes(knobs) == on_chip_bytes(qp_bytes(knobs, limits_of(knobs)))
    assert slot_bytes(NicSettings(sram_qp_bytes=777)) == 777
    assert nic_bytes(3)["memory_keys"] == 3 * nic_bytes(1)["memory_keys"]
