"""uSID containers against RFC 9800, by example and by property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import usid
from tests.support.packets import data_packet
from tests.vectors import wire as golden

blocks = st.integers(0, 0xFFFFFFFF)
usid_lists = st.lists(st.integers(1, 0xFFFF), min_size=1, max_size=usid.USIDS_MAX)


@pytest.mark.spec("RFC 9800", "4.1.1")
def test_a_container_reads_block_then_usids_then_zero() -> None:
    container = usid.build(0x5F000000, [0x4000, 0x8001, 0x4001, 0xC002])
    assert container == golden.CONTAINER
    assert usid.shift(container).hex() == "5f00000080014001c002" + "0000" * 3


@pytest.mark.spec("RFC 9800", "4.1.1")
@given(block=blocks, ids=usid_lists)
def test_shifting_walks_through_every_usid(block: int, ids: list[int]) -> None:
    container = usid.build(block, ids)
    for done in range(len(ids)):
        assert usid.block(container) == block
        assert usid.active(container) == ids[done]
        assert usid.usids(container) == tuple(ids[done:])
        container = usid.shift(container)
    assert usid.active(container) == usid.END
    assert usid.usids(container) == ()


@pytest.mark.spec("RFC 9800", "4.1.1")
@given(block=blocks, ids=usid_lists)
def test_shifting_a_packet_in_place_changes_its_destination_alone(block: int, ids: list[int]) -> None:
    packet = data_packet(0xC7)
    packet[usid.CONTAINER_IN_PACKET] = usid.build(block, ids)
    before = bytes(packet)
    assert usid.route_of(packet) == (block, ids[0], (ids[1:] or [usid.END])[0])
    usid.shift_packet(memoryview(packet))
    assert packet[usid.CONTAINER_IN_PACKET] == usid.shift(before[usid.CONTAINER_IN_PACKET])
    assert packet[:24] == before[:24]
    assert packet[40:] == before[40:]


@pytest.mark.spec("RFC 9800", "4.1.1")
@given(block=blocks, ids=usid_lists, at=st.integers(0, 15), value=st.integers(1, 255))
def test_the_argument_is_all_behind_the_active_usid(block: int, ids: list[int], at: int, value: int) -> None:
    packet = data_packet(0xC7)
    packet[usid.CONTAINER_IN_PACKET] = usid.build(block, ids)
    assert usid.argument_is_zero(packet) == (len(ids) == 1)
    packet[usid.CONTAINER_IN_PACKET] = usid.build(block, ids[:1])
    packet[usid.CONTAINER_OFFSET + at] = value
    assert usid.argument_is_zero(packet) == (at < 6)


@pytest.mark.parametrize("ids", [[], [1] * 7, [1, 0, 2]])
def test_what_fits_no_container_is_our_own_mistake(ids: list[int]) -> None:
    with pytest.raises(AssertionError):
        usid.build(1, ids)
