"""What a daemon has done between two looks."""

from mrcfabric.glance import Glance, Head, NicRest, PortGlance, SwitchRest
from orchestrator.live.track import Track


def said(now_ns: int, drops: int, sent: int = 0, queue: int = 0, incarnation: int = 0, frames: int = 0) -> Glance:
    head = Head(now_ns, incarnation, 0, frames, frames // 10, frames // 100)
    return [list(head), [[sent, queue, 0, 0, 0]], [1, drops]]


def track() -> Track[SwitchRest]:
    return Track(1, SwitchRest(1, 0))


def grown(one: Track[SwitchRest]) -> int:
    return one.rest.drops - one.rest_before.drops


def test_nobody_knows_what_was_done_before_the_first_look() -> None:
    one = track()
    one.enter(said(1000, drops=7, sent=50, queue=9))
    assert (one.span_ns, grown(one), one.ports) == (0, 0, [PortGlance(0, 9, 0, 0, 0)])
    assert one.rate(100) == 0.0


def test_counters_grow_from_look_to_look() -> None:
    one = track()
    one.enter(said(1000, drops=7, sent=50))
    one.enter(said(3000, drops=10, sent=90, queue=4))
    assert (one.span_ns, grown(one), one.ports) == (2000, 3, [PortGlance(40, 4, 0, 0, 0)])
    assert one.rate(40) == 2e7


def test_who_says_nothing_has_done_nothing_and_what_it_did_comes_with_the_next_look() -> None:
    one = track()
    one.enter(said(1000, drops=7, sent=50))
    one.enter(None)
    assert (one.span_ns, grown(one), one.ports) == (0, 0, [PortGlance(0, 0, 0, 0, 0)])
    one.enter(said(3000, drops=9, sent=60))
    assert (one.span_ns, grown(one), one.ports[0].wire_bytes) == (2000, 2, 10)


def test_who_is_late_goes_on_as_before_and_nothing_is_counted_twice() -> None:
    one: Track[NicRest] = Track(1, NicRest([0], 0, 0, 0, 0, [[0]], ()))
    one.enter([[1000, 0, 0, 0, 0, 0], [[50, 9, 1, 2, 3]], [[100], 4, 0, 0, 1, [[8]], []]])
    one.enter([[3000, 0, 0, 0, 0, 0], [[90, 4, 5, 6, 7]], [[140], 9, 0, 0, 1, [[8]], []]])
    told = one.rate(one.rest.placed[0] - one.rest_before.placed[0])
    for _ in range(2):
        one.enter([[3000, 0, 0, 0, 0, 0], [[90, 4, 5, 6, 7]], [[140], 9, 0, 0, 1, [[8]], []]], late=True)
        assert one.ports == [PortGlance(40, 4, 0, 0, 0)]
        assert one.rate(one.rest.placed[0] - one.rest_before.placed[0]) == told == 2e7
        assert one.rest.retransmits == one.rest_before.retransmits
    one.enter([[5000, 0, 0, 0, 0, 0], [[99, 4, 8, 6, 7]], [[160], 9, 0, 0, 1, [[8]], []]], late=True)
    assert (one.span_ns, one.ports) == (2000, [PortGlance(9, 4, 3, 0, 0)])


def test_who_answers_and_has_done_nothing_has_done_nothing() -> None:
    one = track()
    one.enter(said(1000, drops=7, sent=50))
    one.enter(said(3000, drops=9, sent=90))
    one.enter(said(3000, drops=9, sent=90))
    assert (one.span_ns, grown(one), one.ports[0].wire_bytes) == (0, 0, 0)


def test_a_daemon_that_began_anew_has_done_all_that_it_counts() -> None:
    one = track()
    one.enter(said(1000, drops=70, sent=500, frames=1000))
    one.enter(said(3000, drops=2, sent=30, incarnation=1, frames=300))
    assert (one.span_ns, grown(one), one.ports[0].wire_bytes) == (2000, 2, 30)


def test_frames_are_counted_over_all_lives() -> None:
    one = track()
    one.enter(said(1000, drops=0, frames=1000))
    one.enter(said(3000, drops=0, incarnation=1, frames=300))
    one.enter(said(4000, drops=0, incarnation=1, frames=400))
    assert (one.frames, one.late_frames, one.host_drops) == (1400, 140, 14)
