"""Probes of the length of planes: which leave, in which class, and what their answers tell."""

from typing import Any

import pytest

from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import ENDPOINT_REQUEST, OP_EV_PROBE
from nicd.core.commands_paths import DenyPaths
from nicd.core.mrc.length_probes import PROBES
from tests.nicd.core.bench import PLANES, Bench

ALL = (1 << PLANES) - 1


def ask(bench: Bench, now: int, planes: int = ALL) -> list[tuple[int, ...]]:
    """The probes that leave when lengths are asked for."""
    asked = bench.peer.length_probes.ask(now, planes)
    probes = [packet for packet in bench.sent(now + 100) if packet[2] == ENDPOINT_REQUEST]
    assert asked == len(probes)
    return probes


def plane_of(bench: Bench, probe: tuple[int, ...]) -> int:
    return bench.peer.destination.path(probe[6]).plane


@pytest.mark.spec("MRC 1.0", "2.6")
def test_each_plane_that_is_up_is_probed_over_its_paths_in_turn() -> None:
    bench = Bench(length_probe_gap_ns=1_000)
    paths: list[set[int]] = [set() for _ in range(PLANES)]
    for turn in range(3):
        probes = ask(bench, turn * 1_000)
        assert [plane_of(bench, probe) for probe in probes].count(1) == PROBES
        for probe in probes:
            paths[plane_of(bench, probe)].add(bench.peer.destination.path(probe[6]).number)
    assert paths == [{0, 1}] * PLANES
    assert {plane_of(bench, probe) for probe in ask(bench, 3_000, 0b10)} == {1}


def test_they_travel_in_the_control_class() -> None:
    bench = Bench()
    bench.peer.length_probes.ask(0, ALL)
    packets = bench.packets(100)
    assert packets
    # IPv6 has the traffic class in bits 4 to 11, and DSCP is its upper six bits (RFC 8200 3, RFC 2474).
    assert {int.from_bytes(packet[:2], "big") >> 6 & 0x3F for packet in packets} == {Dscp().control}


def test_an_answer_tells_plane_and_time_and_whether_it_came_back_there() -> None:
    bench = Bench()
    first, *others = ask(bench, 5)
    plane = plane_of(bench, first)
    second = next(probe for probe in others if plane_of(bench, probe) == plane)
    port = bench.peer.ports.port[plane]
    assert bench.peer.length_probes.answered(905, first[5], port) == (plane, 900, True)
    assert bench.peer.length_probes.answered(905, second[5], port ^ 1) == (plane, 900, False)
    assert bench.peer.length_probes.answered(906, first[5], port) is None, "a second answer"
    assert bench.board.stats.length_probes == PLANES * PROBES
    assert bench.board.stats.length_replies == 2


def test_answers_to_earlier_probes_are_ignored() -> None:
    bench = Bench(length_probe_gap_ns=1_000)
    (early, *_), (late, *_) = ask(bench, 0), ask(bench, 1_000)
    assert bench.peer.length_probes.answered(1_500, early[5], 0) is None
    assert bench.peer.length_probes.answered(1_500, late[5], 0) is not None


def test_a_nic_asks_one_peer_at_a_time() -> None:
    bench = Bench(length_probe_gap_ns=1_000)
    assert ask(bench, 0)
    assert not ask(bench, 999)
    assert ask(bench, 1_000)


def test_denied_paths_are_not_probed() -> None:
    bench = Bench(length_probe_gap_ns=1_000)
    for path in range(2):
        bench.executor.execute(0, DenyPaths(0, 0, path))
    assert {plane_of(bench, probe) for probe in ask(bench, 0)} == {1}


def round_trips(bench: Bench, now: int, rtts: dict[int, int]) -> None:
    """Data came back after so long, by plane."""
    windows: Any = bench.peer.windows
    for plane, rtt_ns in rtts.items():
        windows.left(now, plane, 0)
        windows.on_sack(now, plane, False, rtt_ns, 0)


def test_a_plane_whose_data_are_late_is_probed_and_as_long_as_the_answers_say() -> None:
    bench = Bench()
    base_ns = bench.board.settings.base_rtt_ns
    for now in (1, 3 * base_ns):
        for _ in range(8):
            round_trips(bench, now, {0: base_ns, 1: 7 * base_ns})
    probes = [packet for packet in bench.sent(4 * base_ns) if packet[2] == ENDPOINT_REQUEST]
    assert len(probes) == PLANES * PROBES
    for probe in probes:
        plane = plane_of(bench, probe)
        bench.peer.on_response(3 * base_ns + (7 if plane else 1) * base_ns, probe[5], OP_EV_PROBE, 0, 0)
    assert [window.record()["base_rtt_ns"] for window in bench.peer.windows.contexts] == [base_ns, 7 * base_ns]
    assert bench.peer.windows.longer == 0b10
