"""The receiving half of a UET context: placement in any order, answers and when they go, what it refuses."""

import pytest

from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Rank
from mrcfabric.wire.dscp import CE, mark_ce
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet import Write, read_ack_cc, read_payload_word, read_response
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    CONTROL,
    CONTROL_CLEAR,
    CONTROL_CLEAR_REQUEST,
    CONTROL_PROBE,
    FLAG_AR,
    FLAG_CLEAR,
    FLAG_MARKED,
    FLAG_PROBE,
    FLAG_RETX,
    FLAG_SYN,
    NACK,
    NACK_NO_RESPONSE,
    NACK_OUT_OF_ORDER,
    NACK_OUT_OF_WINDOW,
    NACK_TRIMMED,
    NACK_TRIMMED_LAST_HOP,
    RC_BAD_INDEX,
    RC_BAD_KEY,
    RC_OK,
    RC_OUT_OF_RANGE,
    RC_UNSUPPORTED_SIZE,
    RESPONSE,
    ROD_REQUEST,
    RUD_REQUEST,
    SES_EOM,
    SES_HD,
    SES_SOM,
)
from mrcfabric.wire.uet_templates import UetTemplate
from tests.nicd.core.uet.pipe import QPN_A, QPN_B, R_KEY, TARGET_VA, Pipe, Seen

MTU = 256
PSN = 0xFFFFFFF0
SPDCID = 0x1234


class Lone:
    """NIC h001 with packets of h000 that a test makes; h000 itself sends nothing."""

    def __init__(self, kind: int = RUD_REQUEST, **nic: object) -> None:
        self.pipe = Pipe(mtu=MTU, **nic)
        self.pipe.run(100)
        self.nic = self.pipe.nics[1]
        self.now = 100
        self.kind = kind
        self.template = UetTemplate(nic_address(0), nic_address(1))
        self._sequence = 0

    def packet(
        self, place: int, packets: int = 4, flags: int = FLAG_SYN, imm: int | None = None, message: int = 0,
        offset: int = 0, clear: int = 0, **ses: int,
    ) -> bytearray:  # fmt: skip
        """Packet `place` of the context, which belongs to a message of so many full packets that begins with 0."""
        inside = place % packets
        bits = SES_SOM if not inside else 0
        bits |= SES_EOM if inside == packets - 1 else 0
        bits |= SES_HD if imm is not None and not inside else 0
        write = Write(
            bits, message + place // packets, 1, QPN_B >> 12, QPN_B & 0xFFF, TARGET_VA + offset, QPN_A, R_KEY, imm or 0,
            inside * MTU, packets * MTU,
        )._replace(**ses)  # fmt: skip
        payload = bytes([place + 1 & 0xFF]) * MTU
        psn = (PSN + place) & 0xFFFFFFFF
        return self.template.request(0xC000 + place, self.kind, flags, clear, psn, SPDCID, place, write, payload)

    def arrive(self, packet: bytearray, wait_ns: int = 100) -> list[Seen]:
        """What the NIC sends at once when this comes."""
        self.now += wait_ns
        self._sequence += 1
        out = self.nic.advance([Input(self.now, int(Rank.FRAME), 0, self._sequence, packet)], self.now)
        return [Seen(bytearray(one[2]), self.pipe._peek(one[2])) for one in out]

    def wait(self, length_ns: int) -> list[Seen]:
        self.now += length_ns
        return [Seen(bytearray(one[2]), self.pipe._peek(one[2])) for one in self.nic.advance([], self.now)]

    def memory(self) -> bytes:
        return self.nic.region_bytes(2)


def shown(seen: Seen) -> tuple[int, set[int]]:
    """(how many packets in order, those beyond) by an acknowledgement, counted from the first of the context."""
    cc = read_ack_cc(seen.packet)
    cack = (seen.psn - PSN + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
    return cack + 1, {cack + cc.base + bit for bit in range(64) if cc.bitmap >> bit & 1} - set(range(cack + 1))


def test_packets_go_to_their_place_in_any_order() -> None:
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
        lone = Lone()
        answers = [seen for place in order for seen in lone.arrive(lone.packet(place))]
        assert lone.memory()[: 4 * MTU] == b"".join(bytes([place + 1]) * MTU for place in range(4))
        assert shown(answers[-1]) == (4, set())
        assert read_response(answers[-1].packet, answers[-1].peeked[9]) == (RESPONSE, RC_OK, 0, 4 * MTU)
        assert lone.nic.counters()["bytes_placed"] == 4 * MTU


def test_any_packet_may_open_the_context() -> None:
    lone = Lone()
    first = lone.arrive(lone.packet(2, flags=FLAG_SYN | FLAG_AR))
    assert [seen.kind for seen in first] == [ACK_CC]
    assert shown(first[0]) == (0, {2})
    assert first[0].peeked[8] == SPDCID
    assert first[0].peeked[7] == lone.pipe.transport(1).qps[QPN_B].link.targets.popitem()[0]  # type: ignore[union-attr]


def test_an_acknowledgement_waits_for_bytes_or_time() -> None:
    lone = Lone(sack_bytes=4_096, sack_delay_ns=3_000)
    quiet = [seen for place in range(3) for seen in lone.arrive(lone.packet(place, 64))]
    assert quiet == []
    assert shown(lone.arrive(lone.packet(3, 64))[0]) == (4, set()), "each counts 1,024 at least"
    assert lone.arrive(lone.packet(5, 64)) == []
    late = lone.wait(3_000)
    assert [shown(seen) for seen in late] == [(4, {5})]
    assert read_ack_cc(late[0].packet).service == 3_000 // 128


@pytest.mark.parametrize("why", ["asked", "marked", "again", "twice"])
def test_what_makes_it_go_at_once(why: str) -> None:
    lone = Lone()
    assert lone.arrive(lone.packet(0)) == []
    flags = {"asked": FLAG_AR, "again": FLAG_RETX}.get(why, 0)
    packet = lone.packet(0 if why == "twice" else 1, flags=FLAG_SYN | flags)
    if why == "marked":
        mark_ce(packet)
        assert packet[1] >> 4 & CE == CE
    (answer,) = lone.arrive(packet)
    assert answer.flags == {"marked": FLAG_MARKED, "again": FLAG_RETX}.get(why, 0)
    assert answer.entropy == packet[40] << 8 | packet[41], "by the entropy of its cause"


def test_every_arrival_is_shown_however_far_apart() -> None:
    lone = Lone(sack_bytes=1 << 20, sack_delay_ns=20_000)
    places = [0, 200, 3, 70, 135, 6, 260, 199, 1, 66, 140]
    answers = [seen for place in places for seen in lone.arrive(lone.packet(place, 400))]
    answers += lone.wait(200_000)
    told: set[int] = set()
    for seen in answers:
        count, beyond = shown(seen)
        told |= set(range(count)) | beyond
    assert told == set(places)


def test_a_duplicate_is_acknowledged_again_and_written_once() -> None:
    lone = Lone()
    lone.arrive(lone.packet(0))
    lone.arrive(lone.packet(2))
    for place in (0, 2):
        (answer,) = lone.arrive(lone.packet(place))
        assert shown(answer) == (1, {2})
    counters = lone.nic.counters()
    assert (counters["duplicates"], counters["bytes_placed"]) == (2, 2 * MTU)


def test_a_trimmed_packet_is_asked_for_again() -> None:
    for dscp, code, where in ((12, NACK_TRIMMED, "path"), (16, NACK_TRIMMED_LAST_HOP, "last_hop")):
        lone = Lone()
        packet = trim(lone.packet(1), 128, dscp)
        mark_ce(packet)
        (answer,) = lone.arrive(packet)
        assert (answer.kind, answer.peeked[5] >> 8, answer.psn) == (NACK, code, PSN + 1)
        assert answer.flags == FLAG_MARKED
        assert answer.peeked[8] == SPDCID
        assert lone.nic.counters()["trims"][where] == 1
        lone.arrive(lone.packet(1))
        assert lone.arrive(trim(lone.packet(1), 128, dscp))[0].kind == ACK_CC, "it is here already"


def test_a_psn_outside_the_window() -> None:
    lone = Lone(mpr_units=1)
    lone.arrive(lone.packet(0, 400))
    (answer,) = lone.arrive(lone.packet(129, 400))
    assert (answer.kind, answer.peeked[5] >> 8) == (NACK, NACK_OUT_OF_WINDOW)
    assert lone.arrive(lone.packet(128, 400, flags=FLAG_SYN | FLAG_AR))[0].kind == ACK_CC
    assert lone.nic.counters()["drops"]["psn_window"] == 1


def test_ordered_asks_once_per_pass_for_what_is_missing() -> None:
    lone = Lone(ROD_REQUEST, uet_mode="rod")
    lone.arrive(lone.packet(0, 400))
    answers = [seen for place in (2, 3, 4) for seen in lone.arrive(lone.packet(place, 400))]
    assert [(seen.kind, seen.peeked[5] >> 8, read_payload_word(seen.packet)) for seen in answers] == [
        (NACK, NACK_OUT_OF_ORDER, PSN + 1)
    ]
    again = [seen for place in (2, 3) for seen in lone.arrive(lone.packet(place, 400))]
    assert [seen.kind for seen in again] == [NACK], "it has gone back, and the packet was lost once more"
    assert lone.nic.counters()["bytes_placed"] == MTU
    lone.arrive(lone.packet(1, 400))
    assert lone.nic.counters()["drops"]["uet_out_of_order"] == 5


@pytest.mark.parametrize(
    ("ses", "code"),
    [
        ({"key": 99}, RC_BAD_KEY), ({"offset": 1 << 60}, RC_OUT_OF_RANGE),
        ({"length": 5_000}, RC_UNSUPPORTED_SIZE), ({"initiator": 9}, RC_BAD_INDEX),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_answered_and_not_placed(ses: dict[str, int], code: int) -> None:
    lone = Lone()
    lone.arrive(lone.packet(0))
    (answer,) = lone.arrive(lone.packet(1, **ses))
    assert read_response(answer.packet, answer.peeked[9])[:2] == (RESPONSE, code)
    assert shown(answer) == (1, set())
    assert lone.nic.counters()["bytes_placed"] == MTU
    assert lone.nic.counters()["uet"]["responses_refused"] == 1
    (answer,) = lone.arrive(lone.packet(1, flags=FLAG_SYN | FLAG_AR))
    assert read_response(answer.packet, answer.peeked[9])[:2] == (RESPONSE, code), "what was refused stays refused"
    assert shown(answer) == (1, set())
    assert lone.nic.counters()["uet"]["responses_repeated"] == 1


def test_immediates_are_handed_over_in_order() -> None:
    lone = Lone()
    for place in (4, 5, 6, 7, 1, 2, 3):
        lone.arrive(lone.packet(place, imm=place))
    assert not [one for one in lone.nic.drain_events() if type(one).__name__ == "Completion"]
    lone.arrive(lone.packet(0, imm=50))
    told = [one.imm for one in lone.nic.drain_events() if type(one).__name__ == "Completion"]
    assert told == [50, 4]


def test_a_probe_is_answered_with_what_it_asks_for() -> None:
    lone = Lone(sack_bytes=1 << 20, sack_delay_ns=20_000)
    for place in (0, 1, 3, 70):
        lone.arrive(lone.packet(place, 400))
    base = (PSN + 10) & 0xFFFFFFFF
    probe = lone.template.control(7, CONTROL_PROBE, FLAG_SYN, base, SPDCID, 0, base, 0xBEEF)
    assert lone.pipe._peek(probe)[2] == CONTROL
    (answer,) = lone.arrive(probe)
    assert answer.flags == FLAG_PROBE
    assert (answer.peeked[5], shown(answer)) == (0xBEEF, (2, {70}))
    (later,) = lone.wait(200_000)
    assert shown(later)[1] == {70}, "what waited for its acknowledgement goes on waiting"


def test_the_early_packets_are_counted() -> None:
    lone = Lone()
    for place in (5, 3, 9):
        (lone.arrive(lone.packet(place, 400)))
    (answer,) = lone.arrive(lone.packet(0, 400, flags=FLAG_SYN | FLAG_AR))
    assert read_ack_cc(answer.packet).early == 3
    assert read_ack_cc(answer.packet).received == 4 * MTU // 256


def kept(lone: Lone) -> int:
    found: int = lone.nic.counters()["uet"]["responses_kept"]
    return found


@pytest.mark.parametrize("clear", [-1, -2, -4])
def test_responses_are_kept_until_a_request_clears_them(clear: int) -> None:
    lone = Lone()
    for place in range(4):
        lone.arrive(lone.packet(place, 1))
    assert kept(lone) == 4
    lone.arrive(lone.packet(4, 2, clear=clear))
    assert kept(lone) == -clear - 1


def test_a_request_that_comes_again_is_answered_by_the_response_that_was_kept() -> None:
    lone = Lone()
    for place in range(3):
        (first,) = lone.arrive(lone.packet(place, 1, clear=-9))
        (again,) = lone.arrive(lone.packet(place, 1, flags=FLAG_SYN | FLAG_RETX, clear=-9))
        responses = [read_response(seen.packet, seen.peeked[9]) for seen in (first, again)]
        assert responses == [(RESPONSE, RC_OK, place, MTU)] * 2
    assert lone.nic.counters()["uet"]["responses_repeated"] == 3
    lone.arrive(lone.packet(3, 2, clear=-1))
    (late,) = lone.arrive(lone.packet(2, 1, flags=FLAG_SYN | FLAG_RETX))
    assert read_response(late.packet, late.peeked[9])[0] == 0, "it is cleared: the default response stands for it"


@pytest.mark.parametrize(("last", "left"), [(0, 2), (1, 1), (2, 0), (3, 3), (77, 3), (-5, 3), (1 << 31, 3)])
def test_a_clear_of_its_own_reaches_what_has_arrived_and_no_further(last: int, left: int) -> None:
    lone = Lone()
    answers = [seen for place in range(3) for seen in lone.arrive(lone.packet(place, 1))]
    pdcid = answers[0].peeked[7]
    upto = PSN + last & 0xFFFFFFFF
    lone.arrive(lone.template.control(0xC000, CONTROL_CLEAR, 0, 0, SPDCID, pdcid, upto))
    assert kept(lone) == left
    assert not lone.nic.counters()["drops"]["uet_control"]


@pytest.mark.parametrize("most", [2, 4, 8])
def test_from_half_of_its_room_on_a_target_asks_for_a_clear(most: int) -> None:
    lone = Lone(uet_responses_max=most)
    answers = [seen for place in range(most) for seen in lone.arrive(lone.packet(place, 1))]
    assert [bool(seen.flags & FLAG_CLEAR) for seen in answers] == [2 * count >= most for count in range(1, most + 1)]
    asked = [seen for seen in answers if seen.flags & FLAG_CLEAR]
    assert lone.nic.counters()["uet"]["clears_asked"] == len(asked)


@pytest.mark.parametrize("most", [1, 2, 5])
def test_without_room_what_comes_behind_a_gap_comes_again_and_what_fills_it_is_taken(most: int) -> None:
    lone = Lone(uet_responses_max=most)
    for place in range(1, most + 1):
        lone.arrive(lone.packet(place, 1))
    refused = lone.arrive(lone.packet(most + 1, 1)) + lone.wait(100)
    assert [seen.kind for seen in refused] == [NACK, CONTROL]
    assert refused[0].peeked[5] >> 8 == NACK_NO_RESPONSE
    assert refused[1].peeked[3] == CONTROL_CLEAR_REQUEST
    assert lone.nic.counters()["drops"]["uet_no_response"] == 1
    assert lone.nic.counters()["bytes_placed"] == most * MTU, "its bytes are placed when it comes again"
    (answer,) = lone.arrive(lone.packet(0, 1))
    assert shown(answer) == (most + 1, set())
    assert kept(lone) == most
    (again,) = lone.arrive(lone.packet(most + 1, 1, flags=FLAG_SYN | FLAG_RETX, clear=-1))
    assert shown(again) == (most + 2, set())
    assert kept(lone) == 1


def test_what_may_not_be_is_not_refused_without_room_to_remember_it() -> None:
    lone = Lone(uet_responses_max=1)
    assert [seen.kind for seen in lone.arrive(lone.packet(3, 1, key=99))] == [ACK_CC]
    assert [seen.kind for seen in lone.arrive(lone.packet(4, 1, key=99)) + lone.wait(100)] == [NACK, CONTROL]
    assert lone.nic.counters()["uet"]["responses_refused"] == 1
