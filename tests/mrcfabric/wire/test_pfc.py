"""PFC frames: 64 bytes by hand, what they say, and bytes that are none."""

import pytest

from mrcfabric.naming import port_mac
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import (
    BAD_FCS,
    BAD_SIZE,
    BAD_TYPE,
    PFC_FRAME_BYTES,
    PfcFrame,
    encode,
    fault,
    parse,
    pause_ns,
    quanta_of,
    with_fcs,
)

SOURCE = port_mac("p0-t0-3", 5)


def test_layout_by_hand() -> None:
    frame = encode(SOURCE, {3: 0xFFFF, 0: 0})
    head = "0180c2000001 024005000003 8808 0101 0009 0000 0000 0000 ffff 0000 0000 0000 0000"
    assert frame[:34] == bytes.fromhex(head)
    assert frame[34:60] == bytes(26)
    assert len(frame) == PFC_FRAME_BYTES == 64
    assert type(frame) is ControlFrame


@pytest.mark.parametrize("quanta", [{}, {0: 1}, {7: 65535}, {1: 0, 6: 77}, dict.fromkeys(range(8), 512)])
def test_what_is_written_is_read(quanta: dict[int, int]) -> None:
    found = parse(encode(SOURCE, quanta))
    times = tuple(quanta.get(one, 0) for one in range(8))
    assert found == PfcFrame(sum(1 << one for one in quanta), times, SOURCE)


def test_a_spoilt_frame_has_a_wrong_sum_whatever_bit_it_is() -> None:
    frame = encode(SOURCE, {3: 100})
    for bit in range(64 * 8):
        spoilt = bytearray(frame)
        spoilt[bit // 8] ^= 1 << bit % 8
        assert fault(spoilt) == BAD_FCS
        assert parse(spoilt) is None


def test_other_frames_are_none_of_ours() -> None:
    frame = bytes(encode(SOURCE, {3: 100}))
    assert [fault(bytes(size)) for size in (0, 63, 65, 4_096)] == [BAD_SIZE] * 4
    for place, value in ((0, b"\x02"), (12, b"\x86\xdd"), (14, b"\x00\x01")):
        other = frame[:place] + value + frame[place + len(value) :]
        assert fault(with_fcs(other[:60])) == BAD_TYPE


def test_reserved_bits_of_the_vector_are_ignored() -> None:
    frame = encode(SOURCE, {3: 100})
    found = parse(with_fcs(frame[:16] + b"\xff" + frame[17:60]))
    assert found is not None
    assert found.enabled == 8


@pytest.mark.parametrize(
    ("rate_bps", "longest_ns"),
    [(100 * 10**9, 335_540), (400 * 10**9, 83_885), (800 * 10**9, 41_943), (10**6, 33_553_920_000)],
)
def test_quanta_are_512_bit_times_of_the_port(rate_bps: int, longest_ns: int) -> None:
    assert pause_ns(0xFFFF, rate_bps) == longest_ns
    assert pause_ns(0, rate_bps) == 0
    for quanta in (1, 2, 3, 100, 65_534):
        assert quanta * 512 * 10**9 <= pause_ns(quanta, rate_bps) * rate_bps < quanta * 512 * 10**9 + rate_bps


@pytest.mark.parametrize("rate_bps", [10**6, 10**8, 25 * 10**9, 100 * 10**9, 800 * 10**9, 1_600 * 10**9])
def test_a_pause_of_some_time_lasts_at_least_that_long(rate_bps: int) -> None:
    for time_ns in (1, 5, 511, 512, 513, 40_000):
        quanta = quanta_of(time_ns, rate_bps)
        assert pause_ns(quanta, rate_bps) >= time_ns or quanta == 0xFFFF
        assert quanta == 1 or (quanta - 1) * 512 * 10**9 < time_ns * rate_bps
    assert quanta_of(10**12, rate_bps) == 0xFFFF
    assert quanta_of(0, rate_bps) == 0
