"""Peers: the paths of acknowledgements, and port updates both ways."""

from collections import Counter
from dataclasses import replace

import pytest

from mrcfabric.wire.layout import ENDPOINT_REQUEST, ENDPOINT_RESPONSE, OP_EV_PROBE, OP_PORT_STATUS
from nicd.compose import nic_config
from nicd.core.events import PeerPortChange
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.peer import Peer
from tests.nicd.core.bench import Bench, topology


def requests(bench: Bench, until: int) -> list[int]:
    """Request ids of the endpoint requests that left up to `until`."""
    return [peeked[5] for peeked in bench.sent(until) if peeked[2] == ENDPOINT_REQUEST]


def test_acknowledgements_take_the_planes_in_turn() -> None:
    bench = Bench()
    assert Counter(bench.reply_port() for _ in range(10)) == {0: 5, 1: 5}
    bench.board.ports.set_carrier(0, 0, False)
    assert {bench.reply_port() for _ in range(4)} == {1}
    bench.peer.up = 0b01
    assert bench.reply_port() == -1


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_while_data_arrive_the_planes_evs_in_use_are_probed_in_turn() -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000)
    asked: list[tuple[int, ...]] = []
    for now in range(0, 60_000, 500):
        bench.peer.data_arrived(now)
        bench.fire(now)
        new = [packet for packet in bench.sent(now) if packet[2] == ENDPOINT_REQUEST]
        assert all(bench.way(packet[6]) in bench.peer.reverse for packet in new)
        for packet in new:
            bench.peer.on_response(now, packet[5], OP_EV_PROBE)
        asked += new
    # A plane that was proved is left alone for as many refresh times as there are planes.
    assert 30 <= len(asked) <= 60
    assert {bench.peer.destination.path(packet[6]).plane for packet in asked} == {0, 1}
    bench.fire(1_000_000)
    assert len(requests(bench, 1_000_000)) <= 4
    assert bench.board.timers.next_ns() > 1_000_000


@pytest.mark.spec("MRC 1.0", "2.6")
def test_an_answered_ev_probe_becomes_the_reverse_path() -> None:
    bench = Bench(reverse_refresh_ns=1_000)
    bench.peer.data_arrived(0)
    bench.fire(1_000)
    (packet,) = bench.sent(1_000)
    before = list(bench.peer.reverse)
    ev = packet[6]
    plane = bench.peer.destination.path(ev).plane
    bench.peer.on_response(2_000, packet[5], OP_EV_PROBE)
    assert bench.peer.reverse[plane] == bench.way(ev)
    assert bench.peer.reverse[1 - plane] == before[1 - plane]
    bench.peer.on_response(2_001, packet[5], OP_EV_PROBE)


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_our_own_sacks_spare_the_probes_of_their_plane() -> None:
    bench = Bench(reverse_refresh_ns=1_000)
    bench.peer.data_arrived(0)
    for plane in range(2):
        bench.peer.confirm(999, plane, 0, *bench.peer.reverse[plane][1:])
    bench.fire(1_000)
    assert requests(bench, 1_000) == []
    bench.peer.data_arrived(2_900)
    bench.peer.confirm(2_950, 1, 0, *bench.peer.reverse[1][1:])
    bench.fire(3_000)
    assert [bench.peer.destination.path(packet[6]).plane for packet in bench.sent(3_000)] == [0]


def silent_plane(bench: Bench, answering: int, until: int) -> None:
    """The peer's data arrive up to `until`; its NIC answers the probes of one plane alone."""
    asked: list[tuple[int, ...]] = []
    for now in range(0, until, 500):
        bench.peer.data_arrived(now)
        bench.fire(now)
        asked += [packet for packet in bench.sent(now) if packet[2] == ENDPOINT_REQUEST]
        for packet in asked:
            if bench.peer.destination.path(packet[6]).plane == answering:
                bench.peer.on_response(now, packet[5], OP_EV_PROBE)


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_plane_where_no_probe_is_answered_carries_no_acknowledgements_until_one_is() -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000)
    silent_plane(bench, 0, 40_000)
    assert {bench.reply_port() for _ in range(8)} == {0}
    assert [row["usable"] for row in bench.peer.reverse_rows()] == [True, False]
    # Our own data are acknowledged there.
    bench.peer.confirm(40_001, 1, 0, *bench.peer.reverse[1][1:])
    assert {bench.reply_port() for _ in range(8)} == {0, 1}
    # Now the other one falls silent, and this one answers.
    silent_plane(bench, 1, 80_000)
    assert {bench.reply_port() for _ in range(8)} == {1}
    bench.board.ports.set_carrier(80_000, 1, False)
    assert {bench.reply_port() for _ in range(8)} == {0}, "rather there than not at all"


@pytest.mark.parametrize(("knob", "planes"), [(0, {0, 1}), (1, {0}), (15, {0})])
@pytest.mark.spec("arXiv 2605.04333", "2")
def test_how_long_a_plane_may_be_silent_is_a_knob(knob: int, planes: set[int]) -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000, reverse_wait_ns=1_500, reverse_silent_probes=knob)
    silent_plane(bench, 0, 100_000)
    assert {bench.reply_port() for _ in range(8)} == planes


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_all_planes_silent_are_all_used() -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000)
    silent_plane(bench, -1, 60_000)
    assert {bench.reply_port() for _ in range(8)} == {0, 1}


@pytest.mark.spec("MRC 1.0", "2.6")
def test_a_port_update_is_repeated_until_it_is_answered() -> None:
    bench = Bench(port_update_retry_ns=1_000)
    bench.board.ports.set_carrier(0, 1, False)
    bench.peer.announce_ports(0)
    bench.fire(3_000)
    ids = requests(bench, 3_000)
    assert len(ids) == 3
    assert len(set(ids)) == 1
    bench.peer.on_response(3_500, ids[0] + 1, OP_PORT_STATUS)
    bench.fire(7_000)
    assert len(requests(bench, 7_000)) == 1
    bench.peer.on_response(7_500, ids[0], OP_PORT_STATUS)
    bench.fire(1_000_000)
    assert requests(bench, 1_000_000) == []


def test_a_peer_that_never_answers_is_left_alone_in_the_end() -> None:
    bench = Bench(port_update_retry_ns=1_000, port_update_tries=3)
    bench.peer.announce_ports(0)
    bench.fire(1 << 40)
    assert len(requests(bench, 1 << 40)) == 3


@pytest.mark.spec("MRC 1.0", "2.6")
def test_the_peers_ports_are_believed_in_the_order_of_its_requests() -> None:
    bench = Bench()
    bench.peer.on_request(0, 0xFFFF, OP_PORT_STATUS, 0b01, 0)
    assert bench.link.planes == 0b01
    bench.peer.on_request(1, 0x0000, OP_PORT_STATUS, 0b11, 0)
    assert bench.link.planes == 0b11
    # Overtaken on the way.
    bench.peer.on_request(2, 0xFFFF, OP_PORT_STATUS, 0b01, 0)
    assert bench.link.planes == 0b11
    assert [(event.port, event.up) for event in bench.told(PeerPortChange)] == [(1, False), (1, True)]
    assert {peeked[2] for peeked in bench.sent(1_000)} == {ENDPOINT_RESPONSE}


def test_a_new_connection_forgets_what_an_earlier_life_said() -> None:
    bench = Bench()
    bench.peer.on_request(0, 500, OP_PORT_STATUS, 0b01, 0)
    bench.peer.forget_ports()
    assert bench.peer.up == 0b11
    bench.peer.on_request(0, 3, OP_PORT_STATUS, 0b10, 0)
    assert bench.peer.up == 0b10


def test_a_peer_that_counts_from_the_beginning_long_after_has_started_again() -> None:
    bench = Bench()
    soon = bench.board.settings.rto_ns
    bench.peer.on_request(0, 500, OP_PORT_STATUS, 0b01, 0)
    bench.peer.on_request(soon, 1, OP_PORT_STATUS, 0b10, 0)
    assert bench.peer.up == 0b01, "overtaken by number 500"
    bench.peer.on_request(8 * soon, 1, OP_PORT_STATUS, 0b10, 0)
    assert bench.peer.up == 0b10


@pytest.mark.spec("UEC", "CMS")
def test_the_slower_end_sets_the_bandwidth_delay_product() -> None:
    """A peer with one port of 25 Gb/s instead of 100: 1.5 x 125 Gb/s x base RTT."""
    made = replace(topology(), link_rates_bps={"h002~p0-t0-1": 25_000_000_000})
    board = MrcBoard(nic_config(made, "h000"))
    peer = Peer(board, 2, lambda now, peer, changed: None)
    assert peer.windows.cwnd_bytes == 125_000_000_000 * made.base_rtt_ns() // 8_000_000_000 * 3 // 2
