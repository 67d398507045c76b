"""Timers fire in order, once, and not after they were cancelled."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.units import NEVER
from nicd.core.timers import Timer, Timers


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["set", "set_by", "cancel"]), st.integers(0, 30))))
def test_timers_agree_with_a_dictionary(steps: list[tuple[int, str, int]]) -> None:
    timers = Timers()
    fired: list[tuple[int, int]] = []
    made = [Timer(timers, lambda now, number=number: fired.append((now, number))) for number in range(5)]
    due: dict[int, int] = {}
    for number, action, at_ns in steps:
        if action == "cancel":
            made[number].cancel()
            due.pop(number, None)
        elif action == "set":
            made[number].set(at_ns)
            due[number] = at_ns
        else:
            made[number].set_by(at_ns)
            due[number] = min(at_ns, due.get(number, NEVER))
    assert timers.next_ns() == min(due.values(), default=NEVER)
    while (now := timers.next_ns()) != NEVER:
        timers.fire(now)
    assert sorted(fired) == sorted((at_ns, number) for number, at_ns in due.items())
    assert [now for now, _ in fired] == sorted(due.values())


def test_a_timer_may_set_itself_again() -> None:
    timers = Timers()
    fired: list[int] = []

    def again(now: int) -> None:
        fired.append(now)
        if now < 3:
            timer.set(now + 1)

    timer = Timer(timers, again)
    timer.set(1)
    while (now := timers.next_ns()) != NEVER:
        timers.fire(now)
    assert fired == [1, 2, 3]
