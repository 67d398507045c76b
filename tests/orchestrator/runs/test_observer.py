"""Whoever listens to a run hears of everything, in the order in which it happens."""

from orchestrator.faults.fault import Fault, Window
from orchestrator.runs.backends import simulated
from orchestrator.runs.observer import RunObserver
from orchestrator.runs.runner import Runner
from tests.support.runs import BEGIN_NS, RTT_NS, Ears, after_bytes, pair, plan, reboot


async def test_an_observer_hears_of_the_begin_and_then_of_all_in_the_order_of_fabric_time() -> None:
    ears = Ears()
    everybody: RunObserver = ears
    cut = Fault("cut", "link_down", ("p0-t0-0~p0-t1-0",), (Window(0, 10 * RTT_NS, {}),))
    what = plan(faults=(reboot(8, 30),), triggers=(after_bytes(1 << 20, cut),), programs=(pair(messages=64),))
    recording = await Runner(simulated(what), everybody).carry_out()
    assert ears.heard[:2] == [(f"began {what.name} on sim", 0), ("looked", BEGIN_NS)]
    told = [line.partition(" ")[0] for line, _ in ears.heard]
    assert told.count("looked") == len(recording.looks)
    assert [line for line in told if line != "looked"] == ["began", "injected", "triggered", "injected"]
    # A fault of the timetable is told of when it is handed to the fabric, up to a look before it begins.
    instants = [at_ns for line, at_ns in ears.heard if not line.startswith("injected reboot")]
    assert instants == sorted(instants)
