"""Packets by VL and input: turns of inputs, order, and how long a packet has been the next one."""

from mrcfabric.units import NEVER
from mrcfabric.vl_queues import VlQueues
from mrcfabric.wire.lrh import MANAGEMENT_VL


def taken(queues: VlQueues, vl: int, count: int) -> list[bytes]:
    return [bytes(queues.take(0, vl)[0]) for _ in range(count)]


def test_inputs_take_turns_and_each_keeps_its_order() -> None:
    queues = VlQueues(0)
    for source, number in ((3, 0), (3, 1), (5, 2), (3, 3), (5, 4), (1, 5)):
        queues.append(0, 2, bytes((number,)), source << 4 | 2)
    assert (queues.count(2), queues.bytes[2], queues.peak[2]) == (6, 6, 6)
    assert taken(queues, 2, 6) == [b"\0", b"\2", b"\5", b"\1", b"\4", b"\3"]
    assert (queues.count(2), queues.sizes[2], queues.bytes[2]) == (0, 0, 0)


def test_only_the_first_packet_changes_what_is_next() -> None:
    queues = VlQueues(0)
    assert queues.append(0, 0, bytes(7), None)
    assert not queues.append(0, 0, bytes(9), None)
    assert not queues.append(0, 0, bytes(9), 1 << 4)
    assert queues.sizes[0] == 7
    queues.take(0, 0)
    assert queues.sizes[0] == 9


def test_a_life_begins_when_a_packet_is_the_next_one_of_its_input() -> None:
    queues = VlQueues(100)
    queues.append(0, 0, b"a", 1 << 4)
    queues.append(5, 0, b"b", 1 << 4)
    queues.append(8, 0, b"c", 2 << 4)
    queues.append(9, MANAGEMENT_VL, b"d", 2 << 4)
    assert queues.next_expiry_ns() == 100
    assert queues.take(50, 0) == (b"a", 16)
    assert queues.next_expiry_ns() == 108
    assert queues.take_expired(108) == (0, (b"c", 32))
    assert queues.next_expiry_ns() == 150, "b was the next one from 50 on"
    assert queues.take_expired(150) == (0, (b"b", 16))
    assert queues.next_expiry_ns() == NEVER, "VL15 has no such bound"
