"""An InfiniBand switch instant by instant: forwarding, VLs, grants, drops, standstill, and how time is cut."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import Buffer
from mrcfabric.wire.flow_control import INIT, NORMAL, FlowControl, encode, parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import lrh_icrc_ok, vcrc_ok, vl_of
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from switchd.core.build import build_switch
from switchd.core.commands import SetForwarding, SetImpairment
from switchd.core.credited import BAD_LRH, NO_VL, OVERRUN, CreditSwitch
from switchd.core.forwarding.lft import NO_PORT, LftConfig
from switchd.core.settings import SwitchConfig
from switchd.core.settings_credits import CreditConfig
from tests.support.credit_link import number_of

# One byte per nanosecond; a flow control packet takes 6 ns.
PORT = CreditEgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0, blocks=(40, 40), frame_blocks=16)
SL2VL = (0, 1, 15, 9) + (0,) * 12
CONFIG = SwitchConfig(
    "leaf", usid=1, block=0xFD00_0000, fib={}, ports=(PORT,) * 4, lft=LftConfig(bytes((NO_PORT, 0, 1, 2, 3))),
    credits=CreditConfig(SL2VL),
)  # fmt: skip
WIRE_NS = 6 + 1_000
BEGUN_NS = 100


def frame(body: Buffer, at_ns: int, port: int, sequence: int = 1) -> Input:
    return Input(at_ns, Rank.FRAME, port, sequence, body)


def command(body: Any, at_ns: int) -> Input:
    return Input(at_ns, Rank.COMMAND, 0, 1, body)


def packet(dlid: int, number: int = 0, sl: int = 0, vl: int = 0, size: int = 958) -> bytearray:
    found = LrhDataTemplate(1, dlid, 9, sl=sl, vl=vl).make(RC_WRITE_MIDDLE, number, bytes(size - 26))
    assert len(found) == size
    return found


def switch(begun: bool = True, fccl: int = 40) -> CreditSwitch:
    """A switch whose neighbours have granted so many blocks on each VL."""
    node = build_switch(CONFIG)
    assert isinstance(node, CreditSwitch)
    if begun:
        inits = [frame(encode(INIT, vl, 0, fccl), BEGUN_NS, port, vl) for port in range(4) for vl in (0, 1)]
        node.advance(inits, 5_000)
    return node


def said(sent: list[Transmit], port: int, vl: int = 0) -> list[tuple[int, FlowControl]]:
    """(start, what) of the flow control packets that left a port."""
    found = [(one[1] - WIRE_NS, parse(one[2])) for one in sent
             if one[0] == port and isinstance(one[2], ControlFrame)]  # fmt: skip
    return [(at_ns, one) for at_ns, one in found if one is not None and one.vl == vl]


def left(sent: list[Transmit], port: int) -> list[tuple[int, int]]:
    """(start, number) of the packets that left a port."""
    return [
        (one[1] - 1_000 - len(one[2]), number_of(one[2]))
        for one in sent if one[0] == port and not isinstance(one[2], ControlFrame)
    ]  # fmt: skip


def drops(node: CreditSwitch) -> dict[str, int]:
    return {reason: count for reason, count in node.counters()["drops"].items() if count}


def test_a_switch_says_that_its_links_begin() -> None:
    node = switch(begun=False)
    sent = node.advance([], 100)
    assert said(sent, 2) == [(1, FlowControl(INIT, 0, 0, 40))]
    assert said(sent, 2, 1) == [(7, FlowControl(INIT, 1, 0, 40))]
    node.advance([frame(packet(2), 200, 0)], 10_000)
    assert node.egress[1].waiting_packets == (1, 0), "nobody has granted anything"


def test_a_packet_goes_where_its_lid_says_and_its_blocks_are_granted_anew_when_it_starts() -> None:
    node = switch()
    sent = node.advance([frame(packet(2, number, size=830), 10_000, 0, number) for number in range(3)], 20_000)
    assert left(sent, 1) == [(10_000, 0), (10_830, 1), (11_660, 2)]
    assert said(sent, 0) == [
        (10_000, FlowControl(NORMAL, 0, 0, 40 + 13)),
        (10_830, FlowControl(NORMAL, 0, 0, 40 + 26)),
        (11_660, FlowControl(NORMAL, 0, 0, 40 + 39)),
    ]
    assert node.egress[0].credits.held == [0, 0]
    assert drops(node) == {}


def test_a_packet_without_credit_waits_with_its_blocks_held() -> None:
    node = switch(fccl=15)
    sent = node.advance([frame(packet(2, number), 10_000, 0, number) for number in range(2)], 20_000)
    assert left(sent, 1) == [(10_000, 0)]
    assert (node.egress[0].credits.held[0], node._waiting.rows(0)) == (15, [(1, 1, 958)])
    sent = node.advance([frame(encode(NORMAL, 0, 0, 30), 30_000, 1, 9)], 40_000)
    assert left(sent, 1) == [(30_000, 1)]
    assert said(sent, 0)[0] == (30_000, FlowControl(NORMAL, 0, 0, 70))


@pytest.mark.parametrize(("sl", "vl"), [(0, 0), (1, 1), (5, 0)])
@pytest.mark.parametrize("came", [0, 1])
def test_the_service_level_says_the_vl_on_the_way_out_and_both_sums_stay_good(sl: int, vl: int, came: int) -> None:
    node = switch()
    sent = node.advance([frame(packet(2, sl=sl, vl=came), 10_000, 0)], 20_000)
    (gone,) = [one[2] for one in sent if one[0] == 1 and not isinstance(one[2], ControlFrame)]
    assert vl_of(gone) == vl
    assert vcrc_ok(gone)
    assert lrh_icrc_ok(gone)
    assert said(sent, 0, came)[0][1].fccl == 55, "credit goes back on the VL on which it came"


def test_vl15_stays_on_its_vl_and_takes_no_credit() -> None:
    node = switch(fccl=0)
    sent = node.advance([frame(packet(2, 7, vl=15), 10_000, 0)], 20_000)
    assert left(sent, 1) == [(10_000, 7)]
    assert vl_of(sent[0][2]) == 15
    assert said(sent, 0) == []


def test_every_drop_has_its_reason_and_gives_its_blocks_back() -> None:
    bad = packet(2)
    bad[1] |= 1
    cases = {
        BAD_LRH: bad, NO_VL: packet(2, vl=5), "no_route": packet(9), "link_control": ControlFrame(b"123456"),
    }  # fmt: skip
    for reason, body in cases.items():
        node = switch()
        node.advance([frame(body, 10_000, 0)], 20_000)
        assert drops(node) == {reason: 1}
        assert node.egress[0].credits.held == [0, 0]
    for sl in (2, 3):
        node = switch()
        sent = node.advance([frame(packet(2, sl=sl), 10_000, 0)], 20_000)
        assert drops(node) == {NO_VL: 1}
        assert said(sent, 0)[0][1].fccl == 55


def test_who_sends_without_credit_is_dropped_and_told_what_there_is() -> None:
    node = switch(fccl=0)
    node.advance([frame(packet(2, number), 10_000, 0, number) for number in range(3)], 20_000)
    assert drops(node) == {OVERRUN: 1}
    assert node.egress[0].credits.held[0] == 30


def test_a_switch_that_stands_still_loses_packets_and_keeps_its_credits_right() -> None:
    node = switch()
    sent = node.advance([command(SetForwarding(1, False), 10_000), frame(packet(2), 10_001, 0)], 20_000)
    assert sent == []
    assert drops(node) == {"frozen": 1}
    sent = node.advance([command(SetForwarding(2, True), 30_000)], 40_000)
    assert said(sent, 0) == [(30_000, FlowControl(NORMAL, 0, 0, 55))]


def test_what_waits_for_a_link_that_is_down_is_lost_and_not_held() -> None:
    node = switch(fccl=15)
    node.advance([frame(packet(2, number), 10_000, 0, number) for number in range(2)], 20_000)
    node.advance([command(SetImpairment(1, 1, Impairment(up=False)), 30_000)], 40_000)
    assert node.egress[1].drops["link_down"] == 1
    assert node.egress[0].credits.held[0] == 0
    assert node.egress[1].credits.sent[0] == 15, "a dead link takes no credit"


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1 << 32), st.lists(st.integers(5_001, 90_000), max_size=25))
def test_the_result_does_not_depend_on_how_time_is_cut(seed: int, cuts: list[int]) -> None:
    def run(cut: list[int]) -> tuple[list[Transmit], dict[str, Any]]:
        draw = Random(seed)
        node, out = switch(fccl=draw.choice((15, 16, 40))), list[Transmit]()
        inputs = []
        for number in range(60):
            at_ns, port = draw.randint(5_001, 80_000), draw.randrange(4)
            body: Buffer = packet(
                draw.randint(1, 5), number, draw.randrange(4), draw.randrange(2), 4 * draw.randint(10, 240) + 2
            )
            if draw.random() < 0.4:
                body = encode(NORMAL, draw.randrange(2), draw.randrange(200), draw.randint(20, 300))
            inputs.append(frame(body, at_ns, port, number))
        inputs.append(command(SetForwarding(1, False), 40_000))
        inputs.append(command(SetForwarding(1, True), 42_000))
        inputs.append(command(SetImpairment(1, 2, Impairment(up=False)), 50_000))
        inputs.append(command(SetImpairment(1, 2, Impairment()), 60_000))
        inputs.sort(key=lambda one: one[:4])
        for until in sorted({*cut, 100_000}):
            now = [one for one in inputs if one.at_ns <= until]
            del inputs[: len(now)]
            out += node.advance([one._replace(body=bytearray(one.body) if not isinstance(one.body, ControlFrame) and
                                 isinstance(one.body, bytearray) else one.body) for one in now], until)  # fmt: skip
        return sorted(out, key=lambda one: (one[0], one[1])), node.counters()

    assert run([]) == run(cuts)


def test_ports_tables_and_credits_go_together() -> None:
    for changes in ({"credits": None}, {"lft": None}, {"ports": (EgressConfig(),) * 4}):
        given_: dict[str, Any] = {
            "ports": CONFIG.ports, "lft": CONFIG.lft, "credits": CONFIG.credits, **changes
        }  # fmt: skip
        with pytest.raises(ConfigError, match="credits"):
            SwitchConfig("leaf", usid=1, block=0xFD00_0000, fib={}, **given_)


def test_what_a_switch_counts() -> None:
    node = switch()
    node.advance([frame(packet(2), 10_000, 0)], 20_000)
    found = node.counters()
    assert found["lft"][1] == 1
    assert found["vls"][1][0]["packets"] == 1
    assert found["received"] == 1
