"""The port, the path and the entropy of a QP, and the way back of its answers."""

import pytest

from mrcfabric.wire.dscp import dscp_of, ecn_of
from mrcfabric.wire.roce import rc_peeker
from mrcfabric.wire.roce_layout import RC_WRITE_ONLY, SPORT_MIN
from nicd.core.commands import ConnectQp, CreateQp, SetCarrier
from nicd.core.rc.ways import NO_PORT, choose_port
from tests.nicd.core.rc.lone import LoneNic

BOTH = ((3, 100), (7, 200))


def test_ports_take_turns_among_those_with_carrier() -> None:
    assert [choose_port(0b1011, turn, None) for turn in range(5)] == [0, 1, 3, 0, 1]
    assert choose_port(0, 3, None) == choose_port(0, 3, BOTH) == NO_PORT


def test_a_hashed_port_is_the_same_at_both_ends_and_even_over_qps() -> None:
    counts = [0] * 4
    for qpn in range(4_000):
        ends = ((3, qpn), (7, 200))
        port = choose_port(0b1111, qpn, ends)
        assert port == choose_port(0b1111, 0, (ends[1], ends[0]))
        counts[port] += 1
    assert min(counts) > 880
    assert max(counts) < 1120


def rows(lone: LoneNic) -> list[dict[str, int | str]]:
    return lone.nic.qp_table()


def connected(count: int, planes: int = 4, **nic: str | bool) -> LoneNic:
    lone = LoneNic(planes=planes, connect=False, **nic)
    for qpn in range(300, 300 + count):
        lone.do(CreateQp(0, qpn))
        lone.do(ConnectQp(0, qpn, 1, qpn + 1000, 1, 1))
    return lone


def test_qps_are_dealt_out_to_ports_and_have_entropies_of_their_own() -> None:
    lone = connected(400)
    ports = [row["port"] for row in rows(lone)]
    assert ports == [ports[0], *[(int(ports[0]) + step) % 4 for step in range(1, 400)]]
    sports = {row["sport"] for row in rows(lone)}
    assert len(sports) > 390
    assert all(SPORT_MIN <= int(sport) <= 0xFFFF for sport in sports)


def test_a_qp_is_connected_by_a_port_with_carrier() -> None:
    lone = LoneNic(planes=4, connect=False)
    lone.do(SetCarrier(0, 1, False))
    for qpn in range(300, 330):
        lone.do(CreateQp(0, qpn))
        lone.do(ConnectQp(0, qpn, 1, 5, 1, 1))
    assert {row["port"] for row in rows(lone)} == {0, 2, 3}


@pytest.mark.parametrize("path", ["ecmp", "pinned"])
def test_packets_are_plain_or_behind_the_usids_of_one_path(path: str) -> None:
    lone = LoneNic(planes=2, rc_path=path)
    port = int(rows(lone)[0]["port"])
    lone.post(600)
    lone.wait(10_000)
    lone.arrive(lone.packet(RC_WRITE_ONLY, 0, 4, ask=True), port=1 - port)
    sent = lone.packets
    data, answer = sent[:-1], sent[-1]
    peek = rc_peeker()
    outer = lone.nic.config.paths.towards(1)
    assert {bytes(packet[24:40]) for packet in data} != {outer.address} or path == "ecmp"
    for packet in sent:
        assert packet[6] == (17 if path == "ecmp" else 41)
        assert peek(packet)[9] == rows(lone)[0]["sport"]
    if path == "pinned":
        assert len({bytes(packet[24:40]) for packet in data}) == 1
        # The second uSID's bits name the plane: an answer's way is one of the other port's.
        assert bytes(answer[24:40]) not in {bytes(packet[24:40]) for packet in data}
    assert {(dscp_of(packet), ecn_of(packet)) for packet in data} == {(26, 2)}
    assert (dscp_of(answer), ecn_of(answer)) == (48, 0)


def test_an_answer_goes_back_by_the_port_its_cause_came_by() -> None:
    lone = LoneNic(planes=4)
    own = int(rows(lone)[0]["port"])
    for number, port in enumerate((0, 1, 2, 3)):
        lone.arrive(lone.packet(RC_WRITE_ONLY, number, 4, ask=True), port=port)
        lone.wait(1_000)
    sent = [lone.nic.counters()["ports"][str(port)]["packets"] for port in range(4)]
    assert sent == [1, 1, 1, 1]
    other = (own + 1) % 4
    transport = lone.nic._transport
    link = transport.find(100).link
    lone.do(SetCarrier(0, other, False))
    assert link.ways.ack(lone.now, other, 1, 1, 0x1F, 0), "by the QP's own port"
    lone.do(SetCarrier(0, own, False))
    assert not link.ways.ack(lone.now, other, 1, 1, 0x1F, 0)
    assert not link.ways.notify(lone.now, own)
    assert lone.drops()["no_port"] == 2
