"""A pipeline of a fixed length: order, spacing, and nothing left of what is cleared."""

from mrcfabric.units import NEVER
from nicd.core.lag import Lag
from nicd.core.timers import Timers


def played(timers: Timers) -> None:
    while (now := timers.next_ns()) != NEVER:
        timers.fire(now)


def test_what_goes_in_comes_out_as_far_apart_and_in_order() -> None:
    timers, seen = Timers(), []
    lag: Lag[str] = Lag(timers, 100, lambda now, thing: seen.append((now, thing)))
    for now, thing in ((5, "a"), (5, "b"), (6, "c"), (104, "d")):
        lag.put(now, thing)
    played(timers)
    assert seen == [(105, "a"), (105, "b"), (106, "c"), (204, "d")]


def test_what_is_put_while_something_comes_out_waits_as_long() -> None:
    timers, seen = Timers(), []

    def again(now: int, thing: int) -> None:
        seen.append((now, thing))
        if thing < 3:
            lag.put(now, thing + 1)

    lag: Lag[int] = Lag(timers, 10, again)
    lag.put(0, 1)
    played(timers)
    assert seen == [(10, 1), (20, 2), (30, 3)]


def test_what_is_cleared_never_comes_out_and_no_timer_is_left() -> None:
    timers, seen = Timers(), []
    lag: Lag[str] = Lag(timers, 10, lambda now, thing: seen.append(thing))
    lag.put(0, "gone")
    lag.clear()
    assert timers.next_ns() == NEVER
    lag.put(3, "here")
    played(timers)
    assert seen == ["here"]
