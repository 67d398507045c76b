"""What a daemon has done between two looks."""

from mrcfabric.glance import Glance, Head, PortGlance, SwitchRest
from orchestrator.lookout.track import Track


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
