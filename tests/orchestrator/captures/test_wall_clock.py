"""Wall times of instants between looks."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.captures.wall_clock import LOOKS_KEPT, WallClock, iso, whose
from tests.support.recordings import HOST_PAIR, OWN_PAIR


def test_between_two_looks_time_goes_on_evenly() -> None:
    wall = WallClock()
    wall.look(1000, 5_000_000)
    wall.look(2000, 6_000_000)
    assert [wall.wall_ns(at_ns) for at_ns in (0, 1000, 1250, 2000, 9999)] == [
        5_000_000, 5_000_000, 5_250_000, 6_000_000, 6_000_000,
    ]  # fmt: skip


def test_while_the_fabric_sleeps_an_instant_is_the_last_look_s() -> None:
    wall = WallClock()
    for wall_ns in (10, 20, 30):
        wall.look(1000, wall_ns)
    wall.look(2000, 40)
    assert (wall.wall_ns(1000), wall.wall_ns(1500), wall.wall_ns(999)) == (30, 35, 10)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1), st.lists(st.integers(0, 120)))
def test_order_is_never_turned_round(looks: list[tuple[int, int]], instants: list[int]) -> None:
    wall = WallClock()
    for at_ns, wall_ns in looks:
        wall.look(at_ns, wall_ns)
    found = [wall.wall_ns(at_ns) for at_ns in sorted(instants)]
    assert found == sorted(found)


def test_old_looks_are_forgotten() -> None:
    wall = WallClock()
    for number in range(LOOKS_KEPT + 10):
        wall.look(number, number)
    assert wall.wall_ns(3) == 10


def test_a_wall_time_in_words() -> None:
    assert iso(1_774_094_400_000_001_999) == "2026-03-21T12:00:00.000001Z"


def test_of_several_hosts_it_is_said_whose_it_is_and_how_the_others_stand() -> None:
    assert whose([]) == ""
    rows = [HOST_PAIR | {"host": "vm0"}, OWN_PAIR, HOST_PAIR, OWN_PAIR | {"host": "vm0", "peer": "vm3"}]
    said = "wall time is that of host vm0; clocks of the others, which stamp nothing here, against it: "
    assert whose(rows) == said + "vm2 -12.000 ms (+-0.100)"
    assert whose([OWN_PAIR]) == "wall time is that of host vm1"
