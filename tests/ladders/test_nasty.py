"""Answers of every kind lost in every order, windows at their least, stashes full to the brim: nothing hangs."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.wire.layout import ACKNOWLEDGE, DATA_OPCODES, NACK, PROBE, SACK
from nicd.core.commands import ConnectQp, CreateQp, DeregisterMemory, ModifyQp
from tests.support.ladder import FIRST_PSN, TARGET_REGION, Ladder
from tests.support.wire import AB, BA

WORDS = {"acks": ACKNOWLEDGE, "sacks": SACK, "nacks": NACK}


def assert_at_rest(ladder: Ladder) -> None:
    """Everything arrived once, nothing is out, and no table was ever more than full."""
    ladder.verify()
    for end in (ladder.a, ladder.b):
        assert end.errors == []
        assert (end.qp["inflight_packets"], end.qp["inflight_bytes"], end.qp["out_of_order"]) == (0, 0, 0)
        assert end.nic.overfull() == []


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("order", list(permutations(WORDS)))
def test_answers_of_one_kind_after_the_other_are_lost(order: tuple[str, ...]) -> None:
    """The first three of one kind, then of the next, then of the last; and trims and losses to speak of."""
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number={3, 17}, rtx=False)
    ladder.wire.trim(direction=AB, number={5, 6, 30}, rtx=False)
    before = None
    for kind in order:
        rule = before

        def turn(seen: object, rule: Any = rule) -> bool:
            return rule is None or rule.hits >= 3

        before = ladder.wire.drop(direction=BA, opcode=WORDS[kind], where=turn, times=3)
        if kind == "nacks":
            # There may be fewer than three: the others' turn does not wait for more.
            before = None
    for number in range(8):
        ladder.write(5, imm=number if number & 1 else None)
    assert ladder.run()
    assert ladder.b.immediates == [1, 3, 5, 7]
    assert_at_rest(ladder)


@pytest.mark.spec("MRC 1.0", "3")
@settings(max_examples=15, deadline=None)
@given(
    fates=st.lists(
        st.tuples(
            st.sampled_from(["drop", "late", "doubled"]),
            st.sampled_from([AB, BA]),
            st.sampled_from([ACKNOWLEDGE, SACK, NACK, PROBE, min(DATA_OPCODES)]),
            st.integers(1, 6),
            st.integers(1, 4),
        ),
        max_size=6,
    ),
    knobs=st.fixed_dictionaries(
        {},
        optional={
            "trim_nack": st.just(False),
            "window_nack": st.just(False),
            "completion_in_order": st.just(True),
            "mpr_units": st.just(1),
            "sack_base_recent": st.just(False),
            "timestamps": st.just(False),
        },
    ),
    trimmed=st.sets(st.integers(0, 60), max_size=8),
)
def test_both_ends_at_once_whatever_is_lost_late_or_doubled(
    fates: list[tuple[str, str, int, int, int]], knobs: dict[str, Any], trimmed: set[int]
) -> None:
    ladder = Ladder(mtu_bytes=256, **knobs)
    for what, direction, opcode, first, times in fates:
        which: dict[str, Any] = {"direction": direction, "opcode": opcode, "first": first, "times": times}
        if what == "drop":
            ladder.wire.drop(**which)
        elif what == "late":
            ladder.wire.delay(40_000, **which)
        else:
            ladder.wire.duplicate(25_000, **which)
    ladder.wire.trim(number=trimmed, rtx=False)
    for number in range(12):
        ladder.write(length=1 + 390 * number, imm=number if number % 3 else None)
        ladder.write(length=1 + 333 * number, imm=number if number % 4 else None, end=ladder.b)
    assert ladder.run(1_000)
    assert ladder.b.immediates == [number for number in range(12) if number % 3]
    assert ladder.a.immediates == [number for number in range(12) if number % 4]
    assert_at_rest(ladder)


@pytest.mark.spec("MRC 1.0", "3")
def test_the_least_window_of_dynamic_mpr_under_load_and_loss() -> None:
    """Room for 16 packets out of order: one unit is advertised, what finds no room is asked for again."""
    ladder = Ladder(dynamic_mpr=True, b={"ooo_packets_max": 16}, mtu_bytes=256)
    ladder.wire.drop(direction=AB, number={40, 200, 201}, rtx=False)
    ladder.write(500)
    assert ladder.run(2_000)
    assert {seen.sack[5] for seen in ladder.sent(BA, opcode=SACK)} == {1}
    assert_at_rest(ladder)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("immediates", "ends"), [(32, False), (33, False), (34, True)])
def test_the_stash_of_early_immediates_is_exactly_as_large_as_agreed(immediates: int, ends: bool) -> None:
    """32 places, and the one that is next needs none: 33 may be out, of one more there is no word but the refusal."""
    ladder = Ladder(b={"max_wimm": 32}, connect_a={"peer_max_wimm": 200})
    ladder.wire.drop(direction=AB, number=0, rtx=False)
    for number in range(immediates):
        ladder.write(length=10, imm=number)
    ladder.run()
    assert ladder.b.errors == (["immediates_overflow"] if ends else [])
    if not ends:
        assert ladder.b.immediates == list(range(immediates))
        assert_at_rest(ladder)


@pytest.mark.spec("MRC 1.0", "3")
def test_two_thousand_messages_of_one_byte() -> None:
    count = 2_000
    ladder = Ladder(mpr_units=2)
    ladder.wire.drop(direction=AB, number=range(7, count, 250), rtx=False)
    ladder.wire.duplicate(30_000, direction=AB, number=range(9, count, 300))
    for number in range(count):
        ladder.write(length=1, imm=number if number % 5 == 0 else None)
    assert ladder.run(1_000)
    assert ladder.b.count("bytes_placed") == count
    assert ladder.b.immediates == list(range(0, count, 5))
    assert_at_rest(ladder)


@pytest.mark.spec("MRC 1.0", "3")
def test_a_double_after_completion_reaches_no_memory_that_is_gone() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=3, nth=1)
    ladder.wire.duplicate(300_000, direction=AB, number=range(8))
    ladder.write(8)
    ladder.run_for(20)
    assert ladder.a.completed == [0]
    ladder.b.command(DeregisterMemory(0, TARGET_REGION))
    ladder.run_for(60)
    assert ladder.b.count("duplicates") >= 8
    assert (ladder.b.errors, ladder.a.errors, ladder.b.drops) == ([], [], {})


@pytest.mark.spec("MRC 1.0", "3")
def test_both_ends_give_up_at_the_same_time() -> None:
    ladder = Ladder(retry_linear=1, retry_exponential=1, first_psn={**FIRST_PSN, BA: FIRST_PSN[AB]})
    ladder.wire.drop(first=1)
    ladder.write(3)
    ladder.write(3)
    for _ in range(2):
        ladder.write(3, end=ladder.b)
    assert ladder.run()
    for end in (ladder.a, ladder.b):
        assert end.errors == ["retry_counter_exceeded"]
        assert [event.status for event in end.completions] == ["retry_exceeded", "flushed"]
        assert end.nic.next_timeout() is None


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("at_ns", "errors"), [(49_999, []), (50_000, []), (50_001, ["setup_timeout_in_rtr"])])
def test_rts_at_the_very_end_of_the_time_for_set_up_is_in_time(at_ns: int, errors: list[str]) -> None:
    ladder = Ladder(a={"setup_timeout_ns": 49_997}, connect=False)
    ladder.a.command(CreateQp(0, 100), 2)
    ladder.a.command(ConnectQp(0, 100, ladder.topology.nic_index(ladder.b.name), 200, 0, 0), 3)
    ladder.a.command(ModifyQp(0, 100, "rts"), at_ns)
    ladder.run_for(20)
    assert ladder.a.errors == errors
