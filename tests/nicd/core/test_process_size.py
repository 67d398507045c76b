"""Walking what an object refers to."""

from sys import getsizeof

from nicd.core.process_size import reachable
from nicd.core.timers import Timer, Timers


def test_containers_count_once_and_small_things_not_at_all() -> None:
    inner = [1, "two", None]
    found = reachable({"a": inner, "b": inner}, "nicd.core")
    assert found == (2, getsizeof({"a": 1, "b": 2}) + getsizeof(inner))


def test_slots_are_walked_inside_the_package_and_shared_parts_left_out() -> None:
    timers = Timers()
    timer = Timer(timers, print)
    assert reachable(timer, "nicd.core", (timers,)).objects == 2
    assert reachable(timer, "nicd.core").objects == 4
    assert reachable(timer, "switchd").objects == 1


def test_a_bitmap_of_many_bits_has_a_size() -> None:
    assert reachable(1 << 4096, "nicd").size_bytes == getsizeof(1 << 4096)
    assert reachable(7, "nicd").size_bytes == 0
