"""Probes of single paths: when they leave, and what their answers say of the length of a path."""

from itertools import pairwise

import pytest

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import ENDPOINT_REQUEST
from nicd.core.mrc.path_lengths import PATHS, REMEMBERED, REST_SPANS, SPAN_RTTS, SURE, WAITING
from tests.nicd.core.bench import Bench

GAP = 1_000
SEEMS = 50_000


class Paths:
    """The paths of one plane to the peer, and what probes have said of them."""

    def __init__(self, **nic: object) -> None:
        self.bench = Bench(length_probe_gap_ns=GAP, **nic)
        settings = self.bench.board.settings
        self.base_ns, self.margin_ns = settings.base_rtt_ns, settings.path_late_ns
        self.span_ns = SPAN_RTTS * self.base_ns
        self.lengths = self.bench.peer.path_lengths
        self.packet_ns = self.lengths._packet_ns[0]
        self.ev = self.bench.peer.destination.draw_evs(Rng("ev"), 1, 0)[0][0]

    def ask(self, now: int, path: int = 0, seems_ns: int = SEEMS) -> int:
        return self.lengths.longer(now, 0, path, self.ev, self.bench.peer.destination.path(self.ev).outer, seems_ns)

    def probes(self, now: int) -> list[int]:
        """The ids of the probes that left until `now`."""
        return [packet[5] for packet in self.bench.sent(now) if packet[2] == ENDPOINT_REQUEST]

    def measure(self, now: int, longer_ns: int, path: int = 0, same_way: bool = False, seems_ns: int = SEEMS) -> int:
        """Ask, let the answer take so much longer than a base RTT, and say what is known then."""
        self.ask(now, path, seems_ns)
        (request,) = self.probes(now)
        took_ns = self.base_ns - self.packet_ns + longer_ns
        assert self.lengths.answered(now + took_ns, request, self.ev if same_way else self.ev + 1)
        return self.ask(now, path, seems_ns)


def test_nothing_is_known_before_the_first_answer() -> None:
    paths = Paths()
    assert paths.ask(0) == NEVER
    paths.probes(0)
    assert paths.measure(paths.span_ns, 700) == 700


@pytest.mark.spec("MRC 1.0", "2.6")
def test_a_probe_travels_in_the_control_class_on_the_ev_of_its_path() -> None:
    paths = Paths()
    paths.ask(0)
    (packet,) = paths.bench.packets(1)
    # IPv6 has the traffic class in bits 4 to 11, and DSCP is its upper six bits (RFC 8200 3, RFC 2474).
    assert int.from_bytes(packet[:2], "big") >> 6 & 0x3F == Dscp().control
    paths.ask(paths.span_ns)
    assert [probe[6] for probe in paths.bench.sent(paths.span_ns)] == [paths.ev]


def test_what_came_back_the_same_way_has_the_length_in_it_twice() -> None:
    assert Paths().measure(0, 60_000, same_way=True) == 30_000
    assert Paths().measure(0, 60_000) == 60_000


def test_the_least_of_all_answers_counts() -> None:
    paths = Paths()
    assert paths.measure(0, 60_000) == 60_000
    assert paths.measure(paths.span_ns, 30_000) == 30_000
    assert paths.measure(2 * paths.span_ns, 30_000 + paths.margin_ns) == 30_000


def test_a_path_that_has_become_longer_shows_in_two_answers_in_a_row() -> None:
    paths = Paths()
    far = 30_000 + paths.margin_ns + 1
    for number, (longer_ns, known_ns) in enumerate([
        (30_000, 30_000), (far + 5, 30_000), (30_000, 30_000), (far + 5, 30_000), (far, far),
    ]):  # fmt: skip
        assert paths.measure(40 * number * paths.span_ns, longer_ns) == known_ns


def test_it_is_probed_until_it_is_sure_and_then_only_while_data_say_something_else() -> None:
    paths = Paths()
    for number in range(SURE):
        paths.measure(number * paths.span_ns, 30_000, seems_ns=30_000)
    now = SURE * paths.span_ns
    paths.ask(now, seems_ns=30_000 + paths.margin_ns)
    assert not paths.probes(now)
    paths.ask(now, seems_ns=30_000 + paths.margin_ns + 1)
    assert len(paths.probes(now)) == 1


def test_while_data_and_answers_contradict_each_other_probes_become_rarer() -> None:
    paths = Paths()
    sent = []
    for now in range(0, 64 * paths.span_ns, paths.span_ns // 2):
        paths.ask(now)
        for request in paths.probes(now):
            sent.append(now)
            paths.lengths.answered(now + paths.base_ns, request, -1)
    waits = [(after - before) // paths.span_ns for before, after in pairwise(sent)]
    assert waits == [1, 1, 1, 2, 4, 8, REST_SPANS, REST_SPANS]


def test_few_paths_are_probed_at_a_time_and_one_peer_asks_at_a_time() -> None:
    paths = Paths()
    for path in range(2 * PATHS):
        paths.ask(0, path)
    assert len(paths.probes(100)) == PATHS
    paths.ask(GAP - 1, 2 * PATHS)
    assert not paths.probes(GAP - 1)
    assert paths.bench.peer.length_probes.ask(GAP - 1, 0b11) == 0
    for path in range(2 * PATHS):
        paths.ask(GAP, path)
    assert len(paths.probes(GAP + 100)) == PATHS


def test_an_answer_counts_once_and_one_to_something_else_does_not() -> None:
    paths = Paths()
    paths.ask(0)
    (request,) = paths.probes(0)
    assert not paths.lengths.answered(5, request + 1, paths.ev)
    assert paths.lengths.answered(paths.base_ns, request, -1)
    assert not paths.lengths.answered(paths.base_ns + 5, request, -1)
    assert (paths.bench.board.stats.length_probes, paths.bench.board.stats.length_replies) == (1, 1)


def test_an_answer_that_came_impossibly_soon_makes_no_path_shorter_than_the_base_rtt() -> None:
    assert Paths().measure(0, -100_000) == 0


def test_what_is_remembered_is_bounded() -> None:
    paths = Paths()
    for path in range(REMEMBERED + 200):
        paths.ask(path * GAP, path)
    assert len(paths.lengths._paths) == REMEMBERED
    assert len(paths.lengths._waiting) == WAITING


def test_an_answer_on_the_wire_reaches_its_path() -> None:
    paths = Paths()
    paths.ask(0)
    (request,) = paths.probes(0)
    paths.bench.peer.on_response(paths.base_ns - paths.packet_ns + 900, request, 1, 0, 0, paths.ev + 1)
    assert paths.ask(0) == 900
