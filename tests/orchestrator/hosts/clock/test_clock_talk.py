"""Questions and answers about clocks, between two hosts whose clocks are the test's."""

import pytest

from mrcfabric.units import NS_PER_MS, NS_PER_S
from orchestrator.hosts.clock.clock_talk import ASKS_MAX, Clocks, ClockTalk, StrangeStampsError

HERE, THERE = 0, 1


class Hosts:
    """Two hosts in one time: the other was booted later, and its wall clock is an hour ahead."""

    def __init__(self) -> None:
        self.now_ns = 100 * NS_PER_S
        self.booted_ns = 40 * NS_PER_S
        self.wall_ahead_ns = 3600 * NS_PER_S
        self.here = ClockTalk(Clocks(lambda: self.now_ns, lambda: self.now_ns))
        self.there = ClockTalk(Clocks(lambda: self.now_ns - self.booted_ns, lambda: self.now_ns + self.wall_ahead_ns))

    def exchange(self, way_ns: int = NS_PER_MS) -> None:
        question = self.here.ask(THERE)
        self.now_ns += way_ns
        answer = self.there.take(HERE, question)
        assert answer is not None
        self.now_ns += way_ns
        assert self.here.take(THERE, answer) is None


def test_both_clocks_of_the_other_host_are_known_after_one_exchange() -> None:
    hosts = Hosts()
    assert hosts.here.report(THERE) is None
    hosts.exchange()
    said = hosts.here.report(THERE)
    assert said is not None
    assert (said["offset_ns"], said["wall_offset_ns"]) == (-hosts.booted_ns, hosts.wall_ahead_ns)
    assert NS_PER_MS <= said["error_ns"] <= said["wall_error_ns"] < NS_PER_MS + 1000
    assert said["drift_ppm"] is None


def test_a_wall_clock_that_is_set_is_seen_at_once_and_a_host_that_is_booted_anew_too() -> None:
    hosts = Hosts()
    hosts.exchange()
    hosts.wall_ahead_ns = -NS_PER_S
    hosts.exchange()
    said = hosts.here.report(THERE)
    assert said is not None
    assert (said["wall_offset_ns"], said["jumps"]) == (-NS_PER_S, 0)
    hosts.here.lost(THERE)
    hosts.now_ns += 20 * NS_PER_S
    hosts.booted_ns = hosts.now_ns - NS_PER_S
    hosts.exchange()
    said = hosts.here.report(THERE)
    assert said is not None
    assert (said["offset_ns"], said["wall_offset_ns"], said["jumps"]) == (-hosts.booted_ns, -NS_PER_S, 1)


def test_only_what_was_asked_is_heard_and_once() -> None:
    hosts = Hosts()
    question = hosts.here.ask(THERE)
    answer = hosts.there.take(HERE, question)
    assert answer is not None
    assert hosts.here.is_talk(question)
    assert hosts.here.is_talk(answer)
    assert not hosts.here.is_talk((1 << 32).to_bytes(8, "little") * 9)
    hosts.there.take(HERE, answer)  # it has not asked
    assert hosts.there.report(HERE) is None
    hosts.here.take(THERE, answer)
    assert not hosts.here._peers[THERE].asked
    first = hosts.here.report(THERE)
    hosts.now_ns += NS_PER_S
    hosts.here.take(THERE, answer)
    again = hosts.here.report(THERE)
    assert first is not None
    assert again is not None
    assert again["error_ns"] > first["error_ns"]
    for _ in range(ASKS_MAX + 1):
        hosts.now_ns += 1
        hosts.here.ask(THERE)
    assert len(hosts.here._peers[THERE].asked) == ASKS_MAX


def test_what_was_asked_in_a_conversation_that_is_lost_is_not_heard_in_the_next() -> None:
    hosts = Hosts()
    answer = hosts.there.take(HERE, hosts.here.ask(THERE))
    assert answer is not None
    hosts.here.lost(THERE)
    hosts.here.take(THERE, answer)
    assert hosts.here.report(THERE) is None


def test_strange_stamps_are_refused() -> None:
    hosts = Hosts()
    question = hosts.here.ask(THERE)
    with pytest.raises(StrangeStampsError, match="neither a question nor an answer"):
        hosts.here.take(THERE, question + b"?")
    hosts.now_ns += NS_PER_S
    answer = hosts.there.take(HERE, question)
    assert answer is not None
    hosts.now_ns -= 2 * NS_PER_S
    with pytest.raises(StrangeStampsError, match="backwards"):
        hosts.here.take(THERE, answer)
