"""The receiving half: placement, completion in order, and when which acknowledgement is sent."""

import pytest

from mrcfabric.wire.dscp import Dscp, mark_ce
from mrcfabric.wire.fastpath import peeker, read_aeth, read_nack, read_sack
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    IMM_OPCODES,
    M_NONE,
    M_SKIP_ONCE,
    NACK,
    NACK_PSN_OOR_WINDOW,
    NACK_TRIMMED,
    NACK_TRIMMED_LASTHOP,
    NACK_UNEXP_EVENT,
    SACK,
    SYNDROME_ACK,
    SYNDROME_INVALID_REQUEST,
    WRITE_FIRST,
    WRITE_LAST,
    WRITE_MIDDLE,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)
from mrcfabric.wire.templates import DataTemplate
from nicd.core.events import Completion, QpChange
from tests.nicd.core.bench import PSN_RECEIVE, QPN, R_KEY, VA, Bench

EV = 0x12345


class Far(Bench):
    """The far end of a bench: makes data packets for its responder and takes its answers apart."""

    def __init__(self, **nic: object) -> None:
        super().__init__(**nic)
        config = self.board.config
        self._template = DataTemplate(self.peer.address, config.address, QPN, dscp=config.dscp)
        self._stamped = DataTemplate(self.peer.address, config.address, QPN, dscp=config.dscp, ts=True)
        self._judge = peeker(Dscp())

    def packet(self, number: int, opcode: int = WRITE_ONLY, size: int = 100, **fields: object) -> bytearray:
        """Packet `number` after the first PSN; unless told otherwise the message of the same number."""
        msn = fields.pop("msn", number)
        rqmsn = fields.pop("rqmsn", number if opcode in IMM_OPCODES else 0)
        length = fields.pop("length", size)
        va = fields.pop("va", VA + number * size)
        r_key = fields.pop("r_key", R_KEY)
        psn = (PSN_RECEIVE + number) & 0xFFFFFF
        payload = bytes([number & 0xFF]) * size
        template = self._stamped if "timestamp" in fields else self._template
        return template.build(opcode, psn, msn, rqmsn, va, r_key, length, EV, bytes(16), payload, **fields)  # type: ignore[arg-type]

    def receive(self, now: int, packet: bytearray) -> None:
        _, traffic_class, opcode, flags, _, psn, ev, start, size, *_ = self._judge(packet)
        self.link.responder.on_data(now, 0, packet, traffic_class, opcode, flags, psn, ev, start, size)

    def answers(self, now: int) -> list[tuple[int, bytearray]]:
        return [(packet[88], packet) for packet in self.packets(now)]


def sacks(far: Far, now: int = 1_000) -> list[tuple[int, ...]]:
    return [read_sack(packet) for opcode, packet in far.answers(now) if opcode == SACK]


@pytest.mark.spec("MRC 1.0", "3")
def test_packets_go_to_their_place_in_any_order() -> None:
    far = Far()
    for number in (2, 0, 3, 1):
        far.receive(0, far.packet(number))
    region = far.board.memory.find(1).view
    assert bytes(region[:400]) == b"".join(bytes([number]) * 100 for number in range(4))
    assert far.link.responder.window.cack == PSN_RECEIVE + 3
    far.receive(1, far.packet(2))
    assert far.board.stats.duplicates == far.link.responder.duplicates == 1
    assert far.board.stats.bytes_placed == far.link.responder.bytes_placed == 400
    assert (far.link.record()["duplicates"], far.link.record()["bytes_placed"]) == (1, 400)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(
    ("fields", "marked", "due"), [({}, False, 0), ({"a": True}, False, 1), ({"rtx": True}, False, 1), ({}, True, 1)]
)
def test_what_makes_a_sack_due_at_once(fields: dict[str, object], marked: bool, due: int) -> None:
    far = Far()
    packet = far.packet(0, **fields)
    if marked:
        mark_ce(packet)
    far.receive(0, packet)
    found = sacks(far)
    assert len(found) == due
    if found:
        m, pr, ack_offset, entropy, cack, *_ = found[0]
        assert (m, pr, ack_offset, entropy, cack) == (M_SKIP_ONCE if marked else M_NONE, 0, 0, EV, PSN_RECEIVE)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(("size", "count"), [(4096, 4), (100, 16)])
def test_bytes_make_a_sack_due_and_small_packets_count_1024(size: int, count: int) -> None:
    far = Far()
    for number in range(count - 1):
        far.receive(0, far.packet(number, size=size))
    assert sacks(far, 0) == []
    far.receive(0, far.packet(count - 1, size=size))
    assert len(sacks(far)) == 1


def test_no_packet_waits_long_for_its_sack() -> None:
    far = Far()
    far.receive(7, far.packet(0))
    far.fire(7 + far.board.settings.sack_delay_ns - 1)
    assert far.board.stats.sacks_sent == 0
    far.fire(7 + far.board.settings.sack_delay_ns)
    assert far.board.stats.sacks_sent == 1
    far.link.peer.stop()
    far.fire(10_000_000)
    assert far.board.stats.sacks_sent == 1


@pytest.mark.spec("MRC 1.0", "3")
def test_immediates_complete_in_order_after_everything_before_them() -> None:
    far = Far()
    far.receive(0, far.packet(2, WRITE_ONLY_IMM, imm=22, msn=1, rqmsn=0))
    far.receive(1, far.packet(1, WRITE_LAST, msn=0, length=4096 + 100, va=VA + 4096))
    assert far.told(Completion) == []
    far.receive(2, far.packet(0, WRITE_FIRST, size=4096, length=4096 + 100))
    (completion,) = far.told(Completion)
    assert (completion.imm, completion.opcode, completion.at_ns) == (22, "recv_with_imm", 2)
    acks = [read_aeth(packet) for opcode, packet in far.answers(1_000) if opcode == ACKNOWLEDGE]
    assert acks == [(SYNDROME_ACK, 2)]


@pytest.mark.spec("MRC 1.0", "3")
def test_too_many_early_immediates_end_the_qp() -> None:
    far = Far(max_wimm=32)
    for number in range(1, 34):
        far.receive(0, far.packet(number, WRITE_ONLY_IMM, imm=number))
    assert [event.reason for event in far.told(QpChange)] == ["immediates_overflow"]
    acks = [read_aeth(packet)[0] for opcode, packet in far.answers(10_000) if opcode == ACKNOWLEDGE]
    assert acks == [SYNDROME_INVALID_REQUEST]


@pytest.mark.parametrize("fields", [{"r_key": R_KEY + 1}, {"va": VA - 1}, {"va": VA + (1 << 20) - 99}])
def test_a_write_where_it_must_not_go_ends_the_qp(fields: dict[str, object]) -> None:
    far = Far()
    far.receive(0, far.packet(0, **fields))
    assert [event.reason for event in far.told(QpChange)] == ["memory_access"]
    assert far.board.stats.bytes_placed == 0


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("answer", [True, False])
def test_a_psn_outside_the_window_is_answered_as_set(answer: bool) -> None:
    far = Far(window_nack=answer)
    far.receive(0, far.packet(32 * 128))
    nacks = [read_nack(packet)[:3] for opcode, packet in far.answers(1_000) if opcode == NACK]
    assert nacks == ([(NACK_PSN_OOR_WINDOW, EV, PSN_RECEIVE + 32 * 128)] if answer else [])
    assert far.board.stats.drops["psn_window"] == 1


@pytest.mark.spec("MRC 1.0", "3")
def test_trimmed_packets_are_asked_for_again() -> None:
    far = Far()
    responder = far.link.responder
    responder.on_trimmed(0, PSN_RECEIVE, EV, False)
    responder.on_trimmed(0, PSN_RECEIVE + 1, EV, True)
    nacks = [read_nack(packet)[:3] for opcode, packet in far.answers(1_000) if opcode == NACK]
    assert sorted(nacks) == [(NACK_TRIMMED, EV, PSN_RECEIVE), (NACK_TRIMMED_LASTHOP, EV, PSN_RECEIVE + 1)]
    far.receive(2_000, far.packet(0, WRITE_FIRST, size=4096, length=5000))
    responder.on_trimmed(2_001, PSN_RECEIVE, EV, False)
    assert [opcode for opcode, _ in far.answers(3_000)] == [SACK]


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("highest", [64, 65, 128, 129, 300])
def test_a_probe_forgets_none_of_those_that_wait_for_their_sack(highest: int) -> None:
    """Two bitmaps show 128 PSNs from the lowest that has not arrived on: what lies beyond gets a SACK of its own."""
    far = Far(probe_sacks_max=2)
    for number in (1, 66, highest):
        far.receive(0, far.packet(number, a=number < highest))
    far.link.responder.on_probe(1, EV, 9, False)
    shown = set()
    for *_, cack, _, offset, bitmap, _, _, _, _, _ in sacks(far):
        shown |= {cack + offset + bit - PSN_RECEIVE for bit in range(64) if bitmap >> bit & 1}
    assert shown == {1, 66, highest}


@pytest.mark.spec("MRC 1.0", "3")
def test_a_probe_is_answered_with_everything() -> None:
    far = Far()
    far.receive(0, far.packet(0))
    for number in (2, 100, 200):
        far.receive(0, far.packet(number))
    far.answers(1_000)
    far.link.responder.on_probe(2_000, EV, 9, True)
    answers = far.answers(10_000)
    found = [read_sack(packet) for opcode, packet in answers if opcode == SACK]
    assert {(sack[0], sack[1], sack[2]) for sack in found} == {(M_SKIP_ONCE, 1, 9)}
    shown = {sack[4] + sack[6] + bit - PSN_RECEIVE for sack in found for bit in range(64) if sack[7] >> bit & 1}
    assert shown == {2, 100, 200}
    assert [read_aeth(packet) for opcode, packet in answers if opcode == ACKNOWLEDGE] == [(SYNDROME_ACK, 1)]


@pytest.mark.spec("MRC 1.0", "7.5")
@pytest.mark.parametrize("msn", [0, 1])
def test_a_message_without_ends_is_none(msn: int) -> None:
    """As many middle packets as the message has packets, in its turn and before it."""
    far = Far()
    for number in range(4, 7):
        far.receive(0, far.packet(number, WRITE_MIDDLE, size=4096, msn=msn, length=3 * 4096))
    assert [event.reason for event in far.told(QpChange)] == ["message_mismatch"]
    answers = far.answers(10_000)
    assert [read_nack(packet)[0] for opcode, packet in answers if opcode == NACK] == [NACK_UNEXP_EVENT]
    assert ACKNOWLEDGE not in [opcode for opcode, _ in answers]


@pytest.mark.spec("MRC 1.0", "7.5")
def test_a_sack_echoes_the_time_stamp_of_its_cause() -> None:
    far = Far()
    far.receive(0, far.packet(0, timestamp=0x1234, a=True))
    far.receive(0, far.packet(0, timestamp=0x1235, rtx=True))
    assert [sack[8] for sack in sacks(far)] == [0x1234, 0x1235]


@pytest.mark.parametrize(("service_time", "moved"), [(True, 4_711 // 128), (False, 0)])
@pytest.mark.spec("UEC", "CMS")
def test_waiting_for_the_sack_moves_the_echo_on(service_time: bool, moved: int) -> None:
    far = Far(service_time=service_time, sack_delay_ns=4_711 + 100)
    far.receive(100, far.packet(0, timestamp=0xFFFF - 3))
    far.receive(200, far.packet(1, timestamp=0xFFFF))
    far.fire(100 + 4_811)
    # The second packet caused it, and has waited for 4,711 ns.
    ((stamp, offset),) = [(sack[8], sack[2]) for sack in sacks(far, 10_000)]
    assert (stamp, offset) == ((0xFFFF + moved) & 0xFFFF, 0)


@pytest.mark.spec("MRC 1.0", "7.5")
def test_nacks_and_answers_to_probes_echo_time_stamps_too() -> None:
    far = Far()
    far.link.responder.on_trimmed(0, PSN_RECEIVE, EV, False, 0, 77)
    far.link.responder.on_probe(0, EV, 9, False, 88)
    answers = far.answers(1_000)
    assert [read_nack(packet)[3] for opcode, packet in answers if opcode == NACK] == [77]
    assert [read_sack(packet)[8] for opcode, packet in answers if opcode == SACK] == [88]


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("order", [(3, 90, 91), (90, 3, 91), (3, 90), (200, 100, 3, 10)])
def test_every_arrival_is_shown_however_far_apart_they_lie(order: tuple[int, ...]) -> None:
    """A bitmap shows 64 PSNs: what one cannot show together gets SACKs of its own."""
    far = Far()
    for number in order:
        far.receive(0, far.packet(number, size=1024))
    far.fire(far.board.settings.sack_delay_ns)
    shown = {
        sack[4] + sack[6] + bit - PSN_RECEIVE for sack in sacks(far, 10_000) for bit in range(64) if sack[7] >> bit & 1
    }
    assert shown == set(order)


def test_near_ones_share_a_sack() -> None:
    far = Far()
    for number in (70, 40, 64, 100):
        far.receive(0, far.packet(number, size=1024))
    far.receive(1, far.packet(80, size=1024, a=True))
    ((offset, bitmap),) = [(sack[6], sack[7]) for sack in sacks(far)]
    first = offset - 1
    assert {first + bit for bit in range(64) if bitmap >> bit & 1} == {40, 64, 70, 80, 100}


@pytest.mark.spec("MRC 1.0", "7.5")
def test_the_widest_window_fits_the_fields_of_a_sack() -> None:
    far = Far(mpr_units=255)
    last = 255 * 128 - 1
    far.receive(0, far.packet(last, va=VA, a=True))
    (sack,) = sacks(far)
    _, _, ack_offset, _, cack, _, sack_offset, bitmap, *_ = sack
    assert (cack + ack_offset, cack + sack_offset + bitmap.bit_length() - 1) == (PSN_RECEIVE + last,) * 2
    far.receive(1_000, far.packet(last + 1, va=VA))
    assert far.board.stats.drops["psn_window"] == 1


@pytest.mark.spec("MRC 1.0", "3")
def test_a_duplicate_of_a_last_packet_brings_the_transport_ack_again() -> None:
    far = Far()
    far.receive(0, far.packet(0))
    far.receive(1, far.packet(0, rtx=True))
    acks = [read_aeth(packet) for opcode, packet in far.answers(1_000) if opcode == ACKNOWLEDGE]
    assert acks == [(SYNDROME_ACK, 1)] * 2


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("fields", [{"a": True}, {"rtx": True}])
def test_who_asks_is_told_all_that_waits(fields: dict[str, object]) -> None:
    far = Far()
    for number in (10, 100, 200):
        far.receive(0, far.packet(number))
    assert sacks(far) == []
    far.receive(1, far.packet(300, **fields))
    shown = {sack[4] + sack[6] + bit - PSN_RECEIVE for sack in sacks(far) for bit in range(64) if sack[7] >> bit & 1}
    assert shown == {10, 100, 200, 300}


@pytest.mark.spec("MRC 1.0", "3")
def test_a_mark_is_told_at_once_and_the_rest_waits_on() -> None:
    far = Far()
    far.receive(0, far.packet(10))
    marked = far.packet(300)
    mark_ce(marked)
    far.receive(1, marked)
    ((m, offset),) = [(sack[0], sack[2]) for sack in sacks(far)]
    assert (m, offset) == (M_SKIP_ONCE, 301)
    far.fire(far.board.settings.sack_delay_ns)
    ((m, offset),) = [(sack[0], sack[2]) for sack in sacks(far, 10_000)]
    assert (m, offset) == (M_NONE, 11)
