"""RC with placement in any order: what comes early is placed, what stays away is asked for, messages end in order."""

from itertools import permutations, product
from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.lids import base_lid
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, NS_PER_S
from mrcfabric.wire.flow_control import BLOCKS_MAX, INIT, encode
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh_rc import LrhControlTemplate, LrhDataTemplate, LrhPeeker, is_solicited
from mrcfabric.wire.roce import read_rc_aeth, read_reth
from mrcfabric.wire.roce_layout import (
    FLAG_ACK_REQUEST,
    NAK_INVALID_REQUEST,
    NAK_SEQUENCE,
    RC_ACK,
    RC_ACK_SYNDROME,
    RC_WRITE_FIRST,
    RC_WRITE_ONLY,
    RC_WRITE_ONLY_IMM,
)
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import STATUS_OK, STATUS_RETRY_EXCEEDED, Completion, Retransmit
from nicd.core.nic import Nic
from nicd.core.rc.out_of_order import IN_ROW_MAX, NEAR_PACKETS
from tests.nicd.core.fabric import READY_NS, TARGET_REGION, Fabric

MTU, SIZE = 256, 1 << 16
SEND, RECEIVE = 0xFFFFFE, 500
VA, KEY = 0x1000, 7
REORDER_NS, RTT_NS = 5_000, 10_000


def topology(spines: int = 2, tors: int = 2, switch: dict[str, Any] | None = None, **nic: Any) -> Topology:
    return Topology(
        name="any", planes=1, t0_per_plane=tors, t1_per_plane=spines, nics_per_t0=4, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "rc_recovery": "out_of_order", **nic},
        switch={"forwarding": "lft", "lossless": "credits", "adaptive": "packet", **(switch or {})},
    )  # fmt: skip


class Lone:
    """NIC h000 alone; its QP 100 in RTS, connected to QP 200 of h001, whose packets a test makes."""

    def __init__(self, **nic: Any) -> None:
        there = Topology(
            name="lone", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
            mtu_bytes=MTU, nic={**topology().nic, "rc_reorder_ns": REORDER_NS, "base_rtt_ns": RTT_NS, **nic},
            switch=topology().switch,
        )  # fmt: skip
        self.nic = Nic(nic_config(there, "h000"))
        self.events: list[Any] = []
        self.now = 0
        self._sequence = 0
        own, other = base_lid(0, 0), base_lid(1, 0)
        self.data = LrhDataTemplate(other, own, 100)
        self.control = LrhControlTemplate(other, own, 100)
        self._peek = LrhPeeker(other)
        for command in (
            RegisterMemory(0, VA, SIZE, 1, KEY), CreateQp(0, 100), ConnectQp(0, 100, 1, 200, SEND, RECEIVE),
            ModifyQp(0, 100, "rts"),
        ):  # fmt: skip
            self.go(command, Rank.COMMAND)
        # The neighbour grants all that can be granted at once.
        self.go(encode(INIT, 0, 0, BLOCKS_MAX))

    def go(self, body: Any, rank: Rank = Rank.FRAME, wait_ns: int = 100) -> list[tuple[Any, ...]]:
        self._sequence += 1
        self.now += wait_ns
        return self._sent(self.nic.advance([Input(self.now, int(rank), 0, self._sequence, body)], self.now))

    def wait(self, until: int) -> list[tuple[Any, ...]]:
        self.now = until
        return self._sent(self.nic.advance([], until))

    def _sent(self, out: list[Any]) -> list[tuple[Any, ...]]:
        """Of acknowledgements (PSN, syndrome, MSN); of data (PSN, opcode, place, size, asks, solicited)."""
        self.events += self.nic.drain_events()
        rows: list[tuple[Any, ...]] = []
        for _, _, packet in out:
            if isinstance(packet, ControlFrame):
                continue
            reason, _, opcode, _, psn, flags, start, size, *_ = self._peek(packet)
            assert reason is None
            if opcode == RC_ACK:
                rows.append((psn, *read_rc_aeth(packet, start)))
            else:
                va, _, length = read_reth(packet, opcode, start)
                assert length == size, "each packet is a write of its own"
                rows.append((psn, opcode, va, size, bool(flags & FLAG_ACK_REQUEST), is_solicited(packet)))
        return rows

    def packet(self, number: int, size: int = MTU, last: bool = False, imm: int | None = None) -> bytearray:
        opcode = RC_WRITE_ONLY if imm is None else RC_WRITE_ONLY_IMM
        body = bytes([number + 1]) * size
        return self.data.make(opcode, RECEIVE + number, body, VA + number * MTU, KEY, size, False, imm, solicited=last)

    def told(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def count(self, name: str) -> int:
        found = self.nic.counters()
        return int(found["rc"][name] if name in found["rc"] else found[name])


# The receiver.


def test_whatever_the_order_bytes_messages_and_completions_are_right() -> None:
    for order in permutations(range(4)):
        lone = Lone(rc_ack_every=0)
        packets = [lone.packet(0), lone.packet(1), lone.packet(2, 100, True, 5), lone.packet(3, 7, True, 6)]
        for number in order:
            lone.go(packets[number])
        assert lone.nic.region_bytes(1)[: 3 * MTU + 7] == (
            b"\1" * MTU + b"\2" * MTU + b"\3" * 100 + bytes(MTU - 100) + b"\4" * 7
        )
        assert [(one.imm, one.byte_len) for one in lone.told(Completion)] == [(5, 2 * MTU + 100), (6, 7)]
        assert lone.count("messages_completed") == 2
        assert not any(lone.nic.counters()["drops"].values())
        assert lone.count("naks_sent") == 0, "nothing stayed away for long"
        lone.wait(lone.now + NS_PER_S)
        assert (lone.nic.next_timeout() or NEVER) == NEVER, "nothing is left to be done"


def test_a_gap_is_asked_for_when_what_stands_behind_it_has_waited_and_not_before() -> None:
    lone = Lone(rc_ack_every=0)
    lone.go(lone.packet(0))
    lone.go(lone.packet(2))
    opened = lone.now
    assert lone.wait(opened + REORDER_NS - 1) == []
    assert lone.wait(opened + REORDER_NS) == [(RECEIVE + 1, NAK_SEQUENCE, 0)]


def test_a_second_gap_has_waited_since_its_own_first_packet() -> None:
    lone = Lone(rc_ack_every=0)
    for number, wait_ns in ((1, 100), (3, 1_000)):
        lone.go(lone.packet(number), wait_ns=wait_ns)
    second = lone.now
    assert lone.go(lone.packet(0), wait_ns=500) == []
    assert lone.wait(lone.now + 300) == [(RECEIVE + 1, RC_ACK_SYNDROME, 0)], "what closes a gap is acknowledged"
    assert lone.wait(second + REORDER_NS - 1) == []
    assert lone.wait(second + REORDER_NS) == [(RECEIVE + 2, NAK_SEQUENCE, 0)]


def test_it_asks_again_a_round_trip_later_and_not_for_ever() -> None:
    lone = Lone(rc_ack_every=0, rc_retry_cnt=2)
    lone.go(lone.packet(1))
    opened, asked = lone.now, []
    while (due := lone.nic.next_timeout() or NEVER) != NEVER:
        asked += [due] if lone.wait(due) else []
    sent = lone.count("naks_sent")
    assert sent == 3, "as often as a sender tries"
    first = opened + REORDER_NS
    assert [at - asked[0] for at in asked] == [0, REORDER_NS + RTT_NS, 2 * (REORDER_NS + RTT_NS)]
    assert asked[0] - first < 100


def test_what_is_kept_is_bounded_and_stays_placed_once() -> None:
    lone = Lone(rc_psns_max=8)
    for number in range(1, 20):
        lone.go(lone.packet(number, 4))
        lone.go(lone.packet(number, 4))
    assert lone.nic.qp_table()[0]["out_of_order"] == 7
    assert lone.count("duplicates") == 7
    assert lone.count("bytes_placed") == 28
    assert lone.nic.counters()["drops"]["psn_window"] == 24


def test_a_packet_of_a_sender_with_another_recovery_is_refused() -> None:
    lone = Lone()
    first = lone.data.make(RC_WRITE_FIRST, RECEIVE, bytes(MTU), VA, KEY, 2 * MTU)
    assert lone.go(first) + lone.wait(lone.now + 1_000) == [(RECEIVE, NAK_INVALID_REQUEST, 0)]
    assert lone.nic.qp_table()[0]["reason"] == "message_mismatch"


# The sender.


def test_packets_are_writes_of_their_own_and_the_last_is_marked() -> None:
    lone = Lone()
    rows = lone.go(PostWrite(0, 100, 1, 1, VA, 2 * MTU + 5, VA, KEY, 9), Rank.COMMAND)
    rows += lone.wait(lone.now + 5_000)
    want = [
        ((SEND + number) & 0xFFFFFF, RC_WRITE_ONLY_IMM if last else RC_WRITE_ONLY, VA + number * MTU,
         5 if last else MTU, last, last)
        for number, last in enumerate((False, False, True))
    ]  # fmt: skip
    assert rows == want


def test_what_the_peer_asks_for_is_sent_alone_and_once() -> None:
    lone = Lone()
    lone.go(PostWrite(0, 100, 1, 1, VA, 8 * MTU, VA, KEY, None), Rank.COMMAND)
    lone.wait(lone.now + 5_000)
    nak = lone.control.ack((SEND + 3) & 0xFFFFFF, 0, NAK_SEQUENCE)
    sent = lone.go(nak) + lone.wait(lone.now + 5_000)
    assert [row[0] for row in sent] == [(SEND + 3) & 0xFFFFFF]
    assert [(one.cause, one.count) for one in lone.told(Retransmit)] == [("nack", 1)]
    assert lone.go(lone.control.ack((SEND + 7) & 0xFFFFFF, 1)) == []
    assert [one.status for one in lone.told(Completion)] == [STATUS_OK]
    assert lone.go(nak) == [], "an old request says nothing"


def test_requests_that_follow_one_another_closely_make_the_sender_go_back() -> None:
    """A dead way has lost many packets: one a round trip would take too long."""
    lone = Lone()
    lone.go(PostWrite(0, 100, 1, 1, VA, 60 * MTU, VA, KEY, None), Rank.COMMAND)
    lone.wait(lone.now + 20_000)
    for number in range(IN_ROW_MAX + 1):
        lone.go(lone.control.ack((SEND + 2 * number) & 0xFFFFFF, 0, NAK_SEQUENCE), wait_ns=1_000)
    lone.wait(lone.now + 20_000)
    counts = [one.count for one in lone.told(Retransmit)]
    assert counts == [1] * IN_ROW_MAX + [60 - 2 * IN_ROW_MAX]
    far = Lone()
    far.go(PostWrite(0, 100, 1, 1, VA, 60 * MTU, VA, KEY, None), Rank.COMMAND)
    far.wait(far.now + 20_000)
    for number in range(IN_ROW_MAX + 1):
        psn = SEND + (NEAR_PACKETS + 1) * (number + 1)
        far.go(far.control.ack(psn & 0xFFFFFF, 0, NAK_SEQUENCE), wait_ns=1_000)
    assert [one.count for one in far.told(Retransmit)] == [1] * (IN_ROW_MAX + 1)


# Whole fabrics.


@pytest.mark.parametrize(("spines", "delay_ns"), [(3, 3_000), (5, 2_000), (3, 20_000)])
def test_packets_that_overtake_cost_nothing(spines: int, delay_ns: int) -> None:
    """One way is longer than the others. Nothing is sent twice, where go-back-N sends again and again."""
    again = {}
    for recovery in ("out_of_order", "go_back_n"):
        fabric = Fabric(topology(spines, rc_recovery=recovery, rc_timeout=0))
        fabric.permutation(4, SIZE)
        fabric.write_all(SIZE, 4)
        fabric.impair("p0-t0-0", 4, Impairment(delay_ns=delay_ns), READY_NS - 10)
        assert fabric.finish(READY_NS + NS_PER_S)
        fabric.verify(SIZE)
        again[recovery] = len(fabric.found(Retransmit))
        counted = [fabric.core(name).counters()["rc"] for name in fabric.topology.nic_names()]
        assert sum(one["out_of_sequence"] for one in counted), "packets have overtaken others"
    assert again["out_of_order"] == 0 < again["go_back_n"]


def test_a_receiver_that_does_not_wait_long_enough_has_packets_twice_and_all_bytes_right() -> None:
    fabric = Fabric(topology(3, rc_reorder_ns=1_000, rc_timeout=0))
    fabric.permutation(4, SIZE)
    fabric.write_all(SIZE, 4)
    fabric.impair("p0-t0-0", 4, Impairment(delay_ns=20_000), READY_NS - 10)
    assert fabric.finish(READY_NS + NS_PER_S)
    fabric.verify(SIZE)
    fabric.simulator.run(fabric.simulator.now_ns + 100_000)
    again = fabric.total("retransmits")
    assert again
    assert fabric.total("duplicates") == again, "each of them was on its way: it comes twice, and is placed once"
    assert fabric.total("bytes_placed") == 8 * SIZE


@pytest.mark.parametrize(("loss_ppm", "seed"), [*product((1_000, 20_000, 150_000), range(2))])
def test_under_loss_every_byte_comes_and_messages_complete_in_order(loss_ppm: int, seed: int) -> None:
    fabric = Fabric(topology(2, rc_timeout=5))
    fabric.permutation(4, SIZE)
    fabric.write_all(SIZE, 8)
    for port in range(4, 6):
        fabric.impair("p0-t0-0", port, Impairment(loss_ppm=loss_ppm), READY_NS - 10 - seed)
    assert fabric.finish(READY_NS + NS_PER_S)
    fabric.verify(SIZE)
    for name in fabric.topology.nic_names():
        done = [
            one.wr_id for one in fabric.events[name] if isinstance(one, Completion) and one.opcode != "recv_with_imm"
        ]
        assert done == sorted(done)


def test_one_loss_costs_one_packet_and_the_time_that_the_receiver_waits() -> None:
    fabric = Fabric(topology(1, switch={"adaptive": "off"}))
    for name in ("h000", "h004"):
        fabric.memory(name, SIZE)
    fabric.connect("h000", "h004", 100, 200)
    number = (0xFFFFF0 + 3) & 0xFFFFFF
    fabric.impair("p0-t0-0", 4, Impairment(lost_packets=(200 << 24 | number,)), READY_NS - 10)
    fabric.write("h000", 100, 1, 0, SIZE, READY_NS)
    assert fabric.finish(READY_NS + NS_PER_S)
    assert [(one.cause, one.count) for one in fabric.found(Retransmit)] == [("nack", 1)]
    settings = fabric.core("h000").config.settings
    (again,) = fabric.found(Retransmit)
    packet_ns = (settings.mtu_bytes + 60) * 8 * NS_PER_S // fabric.topology.rate_bps
    # The packet behind it arrives, the receiver waits, its request goes back: less than a round trip besides.
    waited = again.at_ns - READY_NS - settings.rc_reorder_ns - 4 * packet_ns
    assert 0 < waited < settings.base_rtt_ns


def test_a_path_that_stays_dark_ends_the_qp_after_its_retries() -> None:
    fabric = Fabric(topology(1, rc_timeout=4, rc_retry_cnt=2, switch={"adaptive": "off"}))
    for name in ("h000", "h004"):
        fabric.memory(name, SIZE)
    fabric.connect("h000", "h004", 100, 200)
    fabric.impair("p0-t0-0", 4, Impairment(up=False), READY_NS - 10)
    fabric.write("h000", 100, 1, 0, 4_096, READY_NS)
    assert fabric.finish(READY_NS + NS_PER_S)
    (done,) = fabric.found(Completion)
    assert done.status == STATUS_RETRY_EXCEEDED
    assert done.at_ns == pytest.approx(READY_NS + 3 * (4_096 << 4), abs=2_000)
    assert fabric.core("h004").region_bytes(TARGET_REGION) == bytes(SIZE)
