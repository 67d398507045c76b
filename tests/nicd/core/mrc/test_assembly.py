"""Which packet belongs to which message, what is whole, and whose turn it is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.wire.layout import WRITE_FIRST, WRITE_LAST, WRITE_LAST_IMM, WRITE_MIDDLE, WRITE_ONLY, WRITE_ONLY_IMM
from nicd.core.mrc.assembly import FULL, MISMATCH, OVERFLOW, Assembly, Incoming

MTU = 256
FIRST_PSN = 1_000
VA = 1 << 40
KEY = 7

Packet = tuple[int, int, int, int, int, int, int, int]
"""As the arguments of `admit`: PSN, opcode, RQMSN, MSN, VA, R_Key, length, size."""


def message(msn: int, psn: int, length: int, rqmsn: int | None = None, va: int = VA) -> list[Packet]:
    """The packets of one message."""
    count = -(-length // MTU)
    packets = []
    for place in range(count):
        opcode = WRITE_MIDDLE
        if place == count - 1:
            opcode = (
                (WRITE_LAST if place else WRITE_ONLY)
                if rqmsn is None
                else (WRITE_LAST_IMM if place else WRITE_ONLY_IMM)
            )
        elif not place:
            opcode = WRITE_FIRST
        size = min(MTU, length - place * MTU)
        packets.append((psn + place, opcode, rqmsn or 0, msn & 0xFFFF, va + place * MTU, KEY, length, size))
    return packets


def take(assembly: Assembly, packet: Packet) -> Incoming | None:
    """Admit a packet and count it in; None when it was refused."""
    record = assembly.admit(*packet)
    if record is None:
        return None
    record.left -= 1
    opcode, rqmsn, msn = packet[1:4]
    if opcode in (WRITE_LAST_IMM, WRITE_ONLY_IMM) and not assembly.immediate(record, rqmsn, msn):
        return None
    return record


def drain(assembly: Assembly) -> list[int]:
    done = []
    while (record := assembly.next_whole()) is not None:
        done.append(record.msn)
    return done


@pytest.mark.spec("MRC 1.0", "3")
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_whatever_the_order_of_arrival_messages_are_whole_once_and_in_order(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 6 * MTU), min_size=1, max_size=12))
    immediate = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    packets: list[Packet] = []
    psn, rqmsn = FIRST_PSN, 0
    for msn, length in enumerate(lengths):
        packets += message(msn, psn, length, rqmsn if immediate[msn] else None)
        rqmsn += immediate[msn]
        psn += -(-length // MTU)
    assembly = Assembly(FIRST_PSN, MTU, 100, 100)
    done: list[int] = []
    for packet in data.draw(st.permutations(packets)):
        assert take(assembly, packet) is not None
        done += drain(assembly)
        assert assembly.fault == ""
    assert done == list(range(len(lengths)))
    assert (assembly.records, assembly.stashed, assembly.completed) == (0, 0, len(lengths))


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(
    "changed",
    [
        {4: VA + 2 * MTU},  # elsewhere
        {5: KEY + 1},  # under another key
        {6: 5 * MTU},  # of another length
        {7: MTU - 4},  # shorter than a full packet
        {0: FIRST_PSN + 5, 4: VA + 5 * MTU},  # beyond the last
        {1: WRITE_FIRST},  # a second beginning
        {1: WRITE_LAST},  # an end where there is none
        {1: WRITE_ONLY},
    ],
)
def test_a_packet_that_contradicts_its_message_is_refused(changed: dict[int, int]) -> None:
    for before in (0, 3):
        assembly = Assembly(FIRST_PSN, MTU, 100, 100)
        packets = message(0, FIRST_PSN, 4 * MTU)
        assert take(assembly, packets[before])
        odd = tuple(changed.get(place, value) for place, value in enumerate(packets[1]))
        assert take(assembly, odd) is None  # type: ignore[arg-type]
        assert assembly.fault == MISMATCH


def test_middles_that_came_before_the_ends_must_lie_between_them() -> None:
    assembly = Assembly(FIRST_PSN, MTU, 100, 100)
    packets = message(0, FIRST_PSN, 4 * MTU)
    stray = message(0, FIRST_PSN, 9 * MTU)[6]
    assert take(assembly, (*stray[:6], 4 * MTU, MTU))
    assert take(assembly, packets[0]) is None
    assert assembly.fault == MISMATCH


@pytest.mark.parametrize("msn", [2, 0x8000, 0xFFFF])
def test_a_message_has_a_psn_at_least(msn: int) -> None:
    """At the second PSN there can be the first or the second message, and no other."""
    assembly = Assembly(FIRST_PSN, MTU, 100, 100)
    assert take(assembly, message(msn, FIRST_PSN + 1, 10)[0]) is None
    assert (assembly.fault, assembly.records) == (MISMATCH, 0)


def test_messages_that_leave_a_gap_between_them_do_not_complete() -> None:
    assembly = Assembly(FIRST_PSN, MTU, 100, 100)
    for packet in (*message(0, FIRST_PSN, 10), *message(1, FIRST_PSN + 2, 10)):
        assert take(assembly, packet)
    assert drain(assembly) == [0]
    assert assembly.fault == MISMATCH


@pytest.mark.spec("MRC 1.0", "3")
def test_immediates_have_their_slots() -> None:
    assembly = Assembly(FIRST_PSN, MTU, 100, 2)
    for msn in (1, 2):
        assert take(assembly, message(msn, FIRST_PSN + msn, 10, msn)[0])
    assert take(assembly, message(3, FIRST_PSN + 3, 10, 3)[0]) is None
    assert assembly.fault == OVERFLOW
    assembly = Assembly(FIRST_PSN, MTU, 100, 2)
    assert take(assembly, message(0, FIRST_PSN, 10, 1)[0])
    assert drain(assembly) == []
    assert assembly.fault == MISMATCH


def test_all_packets_of_an_immediate_say_the_same_number() -> None:
    assembly = Assembly(FIRST_PSN, MTU, 100, 2)
    first, last = message(0, FIRST_PSN, 2 * MTU, 0)
    assert take(assembly, first)
    assert take(assembly, (*last[:2], 1, *last[3:])) is None
    assert assembly.fault == MISMATCH


def test_records_are_bounded_and_the_next_message_always_has_one() -> None:
    assembly = Assembly(FIRST_PSN, MTU, 1, 2)
    assert take(assembly, message(1, FIRST_PSN + 1, 10)[0])
    assert take(assembly, message(2, FIRST_PSN + 2, 10)[0]) is None
    assert (assembly.fault, assembly.records) == (FULL, 1)
    assert take(assembly, message(0, FIRST_PSN, 10)[0])
    assert drain(assembly) == [0, 1]
    assert take(assembly, message(2, FIRST_PSN + 2, 10)[0])


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("length", "packets", "last"), [(1, 1, 1), (257, 2, 1), ((1 << 32) - 1, 1 << 24, 255)])
def test_the_longest_message_is_counted_right(length: int, packets: int, last: int) -> None:
    record = Incoming(0, 0, 0, KEY, length, MTU)
    assert (record.left, record.size_last) == (packets, last)
    assembly = Assembly(FIRST_PSN, MTU, 10, 2)
    end = FIRST_PSN + packets - 1
    opcode = WRITE_ONLY if packets == 1 else WRITE_LAST
    found = assembly.admit(end, opcode, 0, 0, VA + (packets - 1) * MTU, KEY, length, last)
    assert found is not None
    assert (found.first, found.last) == (FIRST_PSN, end)


def test_nothing_is_no_message() -> None:
    assembly = Assembly(FIRST_PSN, MTU, 10, 2)
    assert assembly.admit(FIRST_PSN, WRITE_ONLY, 0, 0, VA, KEY, 0, 0) is None
    assert assembly.fault == MISMATCH


@pytest.mark.spec("MRC 1.0", "7.5")
def test_message_numbers_of_16_bits_wrap() -> None:
    """Immediates only, in pairs that arrive the wrong way round, over the wrap of MSN and RQMSN."""
    assembly = Assembly(FIRST_PSN, MTU, 10, 4)
    begun = (1 << 16) - 20
    assembly.completed = assembly._next_rqmsn = begun
    for place in range(0, 40, 2):
        for number in (begun + place + 1, begun + place):
            psn = FIRST_PSN + number - begun
            record = take(assembly, message(number, psn, 10, number & 0xFFFF)[0])
            assert record is not None
            assert assembly.number_of(record) == number
        assert len(drain(assembly)) == 2
    assert (assembly.completed, assembly.fault) == (begun + 40, "")
