"""The timetable while a run goes on."""

from dataclasses import replace

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Window
from orchestrator.measures.recording import Injected
from orchestrator.runs.timetable import Entry, timetable, window
from tests.support.plans import BEGIN_NS, CRASH, FLAP, sample_plan

PLAN = sample_plan()
RTT = PLAN.topology.base_rtt_ns()
AWAY = replace(CRASH, windows=(Window(50_000, 70_000, {}),))


def test_before_it_begins_everything_is_to_come_and_conditions_wait() -> None:
    assert timetable(PLAN, [], [], BEGIN_NS) == [
        Entry(
            "to come",
            f"{30_000 / RTT:,.0f} RTT",
            f"{30_000 / RTT:,.0f} RTT",
            "a link flaps",
            "p0-t0-0~p0-t1-1",
            f"in {30_000 / RTT:,.0f} RTT",
        ),
        Entry("waiting", "", "", "a T1 dies: when steps of train at least 2", "p1-t1-0", "waits"),
    ]


def test_a_flap_rests_between_its_windows() -> None:
    injected = [Injected(FLAP), Injected(AWAY, why="steps of train at least 2")]

    def at(at_ns: int) -> list[str]:
        return [entry.status for entry in timetable(PLAN, injected, ["kill"], at_ns)]

    assert at(45_000) == ["IN FORCE", f"in {5_000 / RTT:,.0f} RTT"]
    assert at(55_000) == ["IN FORCE, resting", "IN FORCE"]
    assert at(70_000) == ["over", "over"]


def test_the_fault_that_was_over_last_says_so_while_evs_come_back() -> None:
    injected = [Injected(FLAP), Injected(AWAY, why="steps of train at least 2")]

    def at(at_ns: int) -> list[str]:
        return [entry.status for entry in timetable(PLAN, injected, ["kill"], at_ns, recovering=True)]

    assert at(55_000) == ["IN FORCE, resting", "IN FORCE"]
    assert at(70_000) == ["over", "recovering"]


def test_what_was_healed_says_so_and_what_nobody_ends_says_so_too() -> None:
    healed = Injected(replace(AWAY, windows=(Window(50_000, NEVER, {}),)), healed_ns=60_000)
    entries = timetable(PLAN, [healed], ["kill"], 65_000)
    assert [(entry.what, entry.status) for entry in entries][-1] == ("a T1 dies", "healed")
    open_ended = timetable(PLAN, [replace(healed, healed_ns=None)], ["kill"], 65_000)
    assert (open_ended[-1].lasts, open_ended[-1].status) == ("until healed", "IN FORCE")


def test_a_trigger_waits_as_often_as_it_may_still_fire() -> None:
    plan = replace(PLAN, triggers=(replace(PLAN.triggers[0], times=3),))
    assert timetable(plan, [], [], BEGIN_NS)[-1].status == "waits, 3 times"
    assert timetable(plan, [], ["kill", "kill"], BEGIN_NS)[-1].status == "waits"
    assert len(timetable(plan, [], ["kill"] * 3, BEGIN_NS)) == 1


def test_of_a_long_timetable_what_is_on_and_next_is_shown() -> None:
    entries = [Entry("over" if place < 50 else "to come", "", "", str(place), "", "") for place in range(100)]
    before, shown, behind = window(entries, 8)
    assert (before, [entry.what for entry in shown], behind) == (48, [str(place) for place in range(48, 56)], 44)
    assert window(entries[:60], 8)[2] == 4
    assert [entry.what for entry in window(entries[:50], 8)[1]] == [str(place) for place in range(42, 50)]
    assert window(entries[:8], 8) == (0, entries[:8], 0)
