"""Who is dead or deaf at an instant, and when nodes part, as the timetable says."""

from mrcfabric.units import NEVER
from orchestrator.faults.absence import dead, deaf, partings, to_come
from orchestrator.faults.fault import Fault, Window

REBOOT = Fault("reboot", "switch_reboot", ("p0-t1-0", "p0-t1-1"), (Window(100, 200, {}), Window(300, 400, {})))
CRASH = Fault("crash", "nic_crash", ("h001",), (Window(100, NEVER, {}),))
CUT = Fault("cut", "control_cut", ("p0-t1-1",), (Window(250, 350, {}),))
LOSS = Fault("loss", "loss", ("p0-t0-0~p0-t1-0",), (Window(50, 500, {"share_ppm": 10}),))
ALL = (REBOOT, CRASH, CUT, LOSS)


def test_a_node_is_dead_from_the_instant_of_its_death_until_it_returns() -> None:
    assert [sorted(dead(ALL, at_ns)) for at_ns in (99, 100, 199, 200, 300)] == [
        [],
        ["h001", "p0-t1-0", "p0-t1-1"],
        ["h001", "p0-t1-0", "p0-t1-1"],
        ["h001"],
        ["h001", "p0-t1-0", "p0-t1-1"],
    ]


def test_only_a_cut_control_channel_makes_deaf() -> None:
    assert [sorted(deaf(ALL, at_ns)) for at_ns in (249, 250, 350)] == [[], ["p0-t1-1"], []]


def test_partings_are_told_in_time_order_without_the_first_and_with_the_last_instant() -> None:
    assert partings(ALL, 0, 300) == [
        (100, ("h001", "p0-t1-0", "p0-t1-1")),
        (250, ("p0-t1-1",)),
        (300, ("p0-t1-0", "p0-t1-1")),
    ]
    assert partings(ALL, 100, 249) == []


def test_a_fault_without_an_end_is_not_waited_for_once_it_has_begun() -> None:
    assert [to_come(CRASH, at_ns) for at_ns in (99, 100)] == [True, False]
    assert [to_come(LOSS, at_ns) for at_ns in (499, 500)] == [True, False]
