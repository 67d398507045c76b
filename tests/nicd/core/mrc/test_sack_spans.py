"""What waits for its SACK: in one span or in several, and whose turn it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.layout import PSN_MASK
from nicd.core.mrc.sack import BITMAP_BITS, ReceiveWindow
from nicd.core.mrc.sack_spans import Waiting


def with_psns(*psns: int, recent: bool = True, expected: int = 0) -> Waiting:
    waiting = Waiting(recent)
    for now, psn in enumerate(psns):
        waiting.add(now, psn, psn + 1, psn + 2, 4096, expected)
    return waiting


def spans(waiting: Waiting) -> list[tuple[int, int]]:
    return [(span.low, span.high) for span in waiting.spans]


def test_the_last_to_come_is_the_cause_and_the_first_says_how_long_it_waits() -> None:
    waiting = with_psns(1_000, 1_020, 1_010)
    (span,) = waiting.spans
    assert (waiting.counted, span.low, span.high) == (3 * 4096, 1_000, 1_020)
    assert (span.first_ns, span.last_ns, span.psn, span.ev, span.stamp) == (0, 2, 1_010, 1_011, 1_012)


@pytest.mark.parametrize(
    ("psns", "expected", "found"),
    [
        ((1_000, 1_063), 0, [(1_000, 1_063)]),
        ((1_000, 1_064), 0, [(1_000, 1_000), (1_064, 1_064)]),
        ((1_000, 937), 0, [(937, 1_000)]),
        ((1_000, 936), 0, [(1_000, 1_000), (936, 936)]),
        # What is below the cumulative point needs no bit.
        ((1_000, 1_064), 1_001, [(1_000, 1_064)]),
        ((1_000, 936), 937, [(936, 1_000)]),
        ((1_000, 936), 936, [(1_000, 1_000), (936, 936)]),
        ((1_000, 1_100, 1_050, 1_163, 1_164), 0, [(1_000, 1_050), (1_100, 1_163), (1_164, 1_164)]),
    ],
)
def test_one_bitmap_shows_a_span(psns: tuple[int, ...], expected: int, found: list[tuple[int, int]]) -> None:
    assert spans(with_psns(*psns, expected=expected)) == found


def test_a_bitmap_at_the_cumulative_point_takes_no_notice_of_distances() -> None:
    assert spans(with_psns(1_000, 5_000, 3, recent=False)) == [(3, 5_000)]
    assert PSN_MASK > 5_000


def test_the_one_that_was_opened_first_goes_first() -> None:
    waiting = with_psns(1_100, 1_000, 1_101)
    assert waiting.next(0).psn == 1_101
    assert waiting.shown(1_101, 0) == 1_101
    assert (spans(waiting), waiting.counted) == ([(1_000, 1_000)], 0)


def test_who_is_in_order_by_now_does_not_keep_others_waiting() -> None:
    waiting = with_psns(1_000, 1_100)
    assert waiting.next(1_001).psn == 1_100
    assert waiting.next(1_101).psn == 1_100
    waiting.shown(1_300, 1_001)
    assert spans(waiting) == [(1_100, 1_100)]
    waiting.shown(1_300, 1_101)
    assert spans(waiting) == []


def test_a_sack_takes_along_what_its_bitmap_shows() -> None:
    waiting = with_psns(1_000, 1_064, 1_200)
    # With 1,010 in order the first two are not too far apart any more.
    assert waiting.shown(1_030, 1_010) == 1_064
    assert spans(waiting) == [(1_200, 1_200)]
    assert waiting.shown(1_190, 1_010) == 1_200
    assert spans(waiting) == []


def test_what_answers_to_a_probe_do_not_reach_waits_on() -> None:
    waiting = with_psns(1_000, 1_100, 1_200)
    waiting.shown_below(1_200)
    assert (spans(waiting), waiting.counted) == ([(1_200, 1_200)], 0)


@given(st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=60))
def test_every_arrival_is_in_order_or_in_a_bitmap_in_the_end(arrivals: list[tuple[int, bool]]) -> None:
    """SACKs fall due at any time; together they show all, each once it was sent."""
    window, waiting = ReceiveWindow(0, 512), Waiting(True)
    arrived: set[int] = set()
    shown: set[int] = set()

    def sack(psn: int) -> None:
        offset, bitmap = window.bitmap(waiting.shown(psn, window.expected), True)
        first = window.cack + offset
        shown.update(first + bit for bit in range(BITMAP_BITS) if bitmap >> bit & 1)
        assert psn < window.expected or psn in shown

    for now, (psn, due) in enumerate(arrivals):
        if psn in arrived:
            continue
        arrived.add(psn)
        window.receive(psn)
        if due:
            sack(psn)
        else:
            waiting.add(now, psn, 1, 2, 1, window.expected)
        assert waiting.spans == sorted(waiting.spans, key=lambda span: span.first_ns)
    sent = 0
    while waiting.spans:
        sack(waiting.next(window.expected).psn)
        sent += 1
    assert sent <= len(arrivals)
    assert arrived <= shown | set(range(window.expected))
