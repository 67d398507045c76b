"""Sizes of state, added up by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.core.mrc.footprint import (
    CONGESTION,
    DESTINATION,
    INFLIGHT,
    MESSAGE,
    PROBE,
    QP_CONTEXT,
    STASH,
    QpCounts,
    limits_of,
    nic_bytes,
    on_chip_bytes,
    peak_of,
    peer_bytes,
    qp_bytes,
    resident_max,
    slot_bytes,
)
from nicd.core.settings import NicSettings
from nicd.core.widths import MEMORY_KEY, record_bytes

DEFAULTS = NicSettings()


def test_records_by_hand() -> None:
    # PSN 24, EV index 12, time 24, order 24, tries 6, state 2, message 12: 104 bits.
    assert record_bytes(INFLIGHT) == 14
    # MSN 16, immediate 32 and whether there is one: 49 bits.
    assert record_bytes(STASH) == 7
    # MSN 16, RQMSN 16, address 64, key 32, length 32, left 24, two ends 48, two flags: 234 bits.
    assert record_bytes(MESSAGE) == 30
    # Probe id 16, EV index 12.
    assert record_bytes(PROBE) == 4
    # Key 32, address 64, length 40, page table 64, readers 12: 212 bits.
    assert record_bytes(MEMORY_KEY) == 27
    # Address 128, four uSIDs 64, port updates 60, reverse timers 48, five bits per plane: 340 bits.
    assert record_bytes(DESTINATION, 8 * 5) == 43


@pytest.mark.spec("MRC 1.0", "3")
def test_a_default_qp_by_hand() -> None:
    # 160 EVs of 32 bits; 32 units of 128 PSNs; 128 immediates; 256 probes; 8 planes.
    pieces = qp_bytes(limits_of(DEFAULTS, 8), DEFAULTS.ev_bits)
    assert pieces == {
        "qp_context": 111,
        "ev_table": 160 * 4,
        # Three bits per EV and a scan of 36 bits per plane.
        "ev_sets": 60 + 8 * 5,
        "receive_bitmap": 4096 // 8,
        "inflight": 4096 * 14,
        "messages": 4096 * 30,
        "wimm_stash": 129 * 7,
        "probes": 256 * 4 + 160 * 4,
        # When SKIP ends, of every EV: 24 + 12 bits.
        "ev_clocks": 160 * 5,
        "work_queue": (4096 + 4096) * 47,
    }
    assert on_chip_bytes(pieces) == 111 + 640 + 100 + 512 + 57_344 + 122_880 + 903 + 1_664 + 800
    assert record_bytes(QP_CONTEXT) == 111


def test_peers_and_keys_by_hand() -> None:
    # 73 + 20 + 30 + 48 + 72 + 24 + 74 + 25 + 25 + 48: 439 bits.
    assert record_bytes(CONGESTION) == 55
    assert peer_bytes(8, 8, 32, 2) == {
        "congestion": 8 * 55, "path_template": 43, "reverse_evs": 32, "ev_questions": 2 * 6,
    }  # fmt: skip
    # An EV of a profile: 32 + 6 + 1 bits and a value of 128 or 16.
    assert nic_bytes(3, 2, [128, 128, 16]) == {"memory_keys": 81, "deny_list": 2 * 5, "ev_profiles": 21 + 21 + 7}


def test_what_fits_on_a_chip() -> None:
    slot = slot_bytes(DEFAULTS, 8)
    assert slot == 184_954
    assert resident_max(DEFAULTS, 8) is None
    assert resident_max(NicSettings(sram_bytes=slot * 7 + slot - 1), 8) == 7
    assert resident_max(NicSettings(sram_bytes=1), 8) == 1
    assert resident_max(NicSettings(sram_bytes=1 << 20, sram_qp_bytes=16_384), 8) == 64


def test_the_peak_is_the_larger_of_each() -> None:
    one, two = QpCounts(1, 8, 3, 4, 4, 5, 6, 7, 8), QpCounts(2, 8, 1, 9, 1, 0, 6, 8, 1)
    assert peak_of(one, two) == QpCounts(2, 8, 3, 9, 4, 5, 6, 8, 8)


@given(units=st.integers(1, 255), evs=st.integers(1, 256), bits=st.sampled_from([11, 16, 32, 128, 256]))
def test_more_of_anything_never_takes_less(units: int, evs: int, bits: int) -> None:
    small = limits_of(NicSettings(mpr_units=units, evs_active=evs * 8, ev_min_active=0), 8)
    large = limits_of(NicSettings(mpr_units=min(255, units + 1), evs_active=evs * 8 + 8, ev_min_active=0), 8)
    one, two = qp_bytes(small, bits), qp_bytes(large, bits)
    assert all(one[name] <= two[name] for name in one)
    assert on_chip_bytes(one) < on_chip_bytes(two)


def test_options_that_need_memory_have_it_only_when_they_are_on() -> None:
    # A run of marks: 32 + 4 bits.
    on = NicSettings(always_skip_marks=3, marked_evs_max=64)
    assert qp_bytes(limits_of(on, 8), 32)["ev_clocks"] == 160 * 5 + 64 * 5
