"""The course of a run in virtual time: when it looks, what it waits for, how it ends."""

from typing import Any

from mrcfabric.units import NEVER
from nicd.programs.program import Program
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.judge import verdict
from orchestrator.measures.recording import Injected, Recording
from orchestrator.runs.backend import BackendLostError
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.plan import Plan, Trigger
from orchestrator.sim.backend import SimBackend
from tests.support.runs import BEGIN_NS, END_NS, RTT_NS, TOPOLOGY, after_bytes, offsets, pair, plan, reboot, simulated
from tests.support.scenarios import plan_of

LINK = "p0-t0-0~p0-t1-0"


def cut(begin_rtts: int, lasting_rtts: int | None, name: str = "cut") -> Fault:
    start_ns = BEGIN_NS + begin_rtts * RTT_NS
    end_ns = NEVER if lasting_rtts is None else start_ns + lasting_rtts * RTT_NS
    return Fault(name, "link_down", (LINK,), (Window(start_ns, end_ns, {}),))


class Listener:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []

    def began(self, plan: Plan, backend: str) -> None: ...

    def looked(self, recording: Recording) -> None:
        self.told.append(("looked", recording.looks[-1].at_ns))

    def injected(self, injected: Injected) -> None:
        self.told.append(("injected", (injected.fault.id, injected.fault.start_ns, injected.why)))

    def triggered(self, trigger: Trigger, at_ns: int) -> None:
        self.told.append(("triggered", (trigger.name, at_ns)))

    def ended(self, report: dict[str, Any]) -> None: ...

    def closed(self) -> None: ...


async def heard(what: Plan) -> tuple[Recording, list[tuple[str, Any]]]:
    backend, listener = SimBackend(what.topology), Listener()
    recording = await RunLoop(what, backend, Recorder(what, backend), listener).run()
    return recording, listener.told


async def test_a_run_ends_when_its_work_is_done_and_nothing_is_pending() -> None:
    recording = await simulated(plan())
    assert recording.ended == "complete"
    assert [rank.state for rank in recording.programs[0].ranks] == ["done", "done"]
    assert recording.looks[0].at_ns == BEGIN_NS
    assert recording.looks[-1].at_ns == recording.end_ns < END_NS
    assert [look.at_ns for look in recording.looks[:3]] == [BEGIN_NS + n * 5 * RTT_NS for n in range(3)]
    assert recording.looks[-1].flows == {"pair:h000>h001": 2 << 20}
    assert recording.wall is None


async def test_what_is_sent_at_the_very_instant_of_the_begin_is_counted() -> None:
    what = plan()
    backend = SimBackend(what.topology)
    recording = await RunLoop(what, backend, Recorder(what, backend), Listener()).run()
    assert recording.looks[0].at_ns == BEGIN_NS
    assert not any(nic.counts["data_packets"] for nic in recording.looks[0].nics.values())
    for name, nic in recording.looks[-1].nics.items():
        assert nic.counts["data_packets"] == backend.fabric.counters(name)["data_packets"]


async def test_it_waits_for_the_timetable_and_then_settles() -> None:
    recording = await simulated(plan(faults=(cut(200, 20),)))
    assert recording.ended == "complete"
    assert recording.end_ns >= BEGIN_NS + 220 * RTT_NS
    assert [one.fault.id for one in recording.faults] == ["cut"]


async def test_a_fault_without_an_end_is_not_waited_for() -> None:
    recording = await simulated(plan(faults=(cut(20, None),)))
    assert recording.ended == "complete"
    assert recording.end_ns < END_NS


async def test_time_is_up_at_the_length_of_the_run() -> None:
    recording = await simulated(plan(programs=(pair(messages=4096),), length_ns=12 * RTT_NS))
    assert (recording.ended, recording.end_ns) == ("length", BEGIN_NS + 12 * RTT_NS)
    assert [rank.state for rank in recording.programs[0].ranks] == ["running", "running"]


async def test_work_that_can_never_go_on_is_a_stall() -> None:
    """The receiver dies, the sender's QP fails in the end, and nobody has anything more to do: no stall. But a rank
    that waits for a message that nobody will send waits for ever."""
    lonely = Program("lonely", "p2p", 0, (0, 1), BEGIN_NS, "seed", {"messages": 2})
    crash = Fault("crash", "nic_crash", ("h000",), (Window(BEGIN_NS + 1, NEVER, {}),))
    recording = await simulated(
        plan(programs=(lonely,), faults=(crash,), length_ns=20_000 * RTT_NS, look_ns=500 * RTT_NS)
    )
    assert recording.programs[0].ranks[0].state == "lost"
    assert recording.ended in ("stalled", "complete")
    assert recording.end_ns < BEGIN_NS + 20_000 * RTT_NS


async def test_faults_are_handed_over_before_they_begin_and_looks_go_on_in_order() -> None:
    _, told = await heard(plan(faults=(cut(7, 5), cut(22, 5, "again"))))
    assert told[:5] == [
        ("looked", BEGIN_NS),
        ("looked", BEGIN_NS + 5 * RTT_NS),
        ("injected", ("cut", BEGIN_NS + 7 * RTT_NS, "")),
        ("looked", BEGIN_NS + 10 * RTT_NS),
        ("looked", BEGIN_NS + 15 * RTT_NS),
    ]
    assert ("injected", ("again", BEGIN_NS + 22 * RTT_NS, "")) in told


async def test_a_condition_lets_its_faults_begin_right_after_the_look_that_saw_it() -> None:
    trigger = after_bytes(1 << 20, offsets(cut(0, 10)))
    recording, told = await heard(plan(triggers=(trigger,)))
    at_ns = next(what[1] for kind, what in told if kind == "triggered")
    assert recording.faults[0].fault.windows == (Window(at_ns + 1, at_ns + 1 + 10 * RTT_NS, {}),)
    assert recording.faults[0].why == "1048576 bytes"
    assert [kind for kind, _ in told].count("triggered") == 1
    flows = {look.at_ns: sum(look.flows.values()) for look in recording.looks}
    assert flows[at_ns] >= 1 << 20 > flows[at_ns - 5 * RTT_NS]


async def test_a_condition_fires_again_only_after_it_was_seen_not_to_hold() -> None:
    wanted = iter([True, True, False, True, True, False, True])

    def holds(_recording: Recording) -> bool:
        return next(wanted, False)

    trigger = Trigger("now and then", "sometimes", holds, (offsets(cut(0, 1)),), times=2)
    recording = await simulated(plan(programs=(pair(messages=128),), triggers=(trigger,)))
    assert [one.fault.id for one in recording.faults] == ["cut", "cut-2"]


async def test_who_dies_is_heard_before() -> None:
    recording = await simulated(plan(faults=(reboot(8, 30),)), trace=True)
    before, during, after = (
        next(look for look in recording.looks if look.at_ns == BEGIN_NS + rtts * RTT_NS).switches["packets"]
        for rtts in (5, 10, 40)
    )
    assert before < during < after
    assert recording.trace_digest


async def test_the_same_plan_gives_the_same_recording() -> None:
    what = plan(faults=(reboot(8, 30),), triggers=(after_bytes(1 << 20, offsets(cut(0, 10))),))
    first, second = await simulated(what, trace=True), await simulated(what, trace=True)
    assert first == second


async def test_an_interrupted_run_ends_at_its_next_look() -> None:
    what = plan(programs=(pair(messages=4096),))
    backend, listener = SimBackend(TOPOLOGY), Listener()
    run_loop = RunLoop(what, backend, Recorder(what, backend), listener)
    listener.looked = lambda recording: run_loop.interrupt()  # type: ignore[method-assign]
    recording = await run_loop.run()
    assert (recording.ended, recording.end_ns) == ("interrupted", BEGIN_NS + 5 * RTT_NS)


class LosingBackend(SimBackend):
    """A backend that is lost after some time, as real ones are when a daemon dies by itself."""

    async def run_until(self, at_ns: int) -> None:
        if at_ns > BEGIN_NS + 10 * RTT_NS:
            raise BackendLostError("h001: exit code 1\n  its last words")
        await super().run_until(at_ns)


async def test_a_lost_backend_leaves_what_was_recorded() -> None:
    what, backend = plan(), LosingBackend(TOPOLOGY)
    recording = await RunLoop(what, backend, Recorder(what, backend), Listener()).run()
    assert (recording.ended, recording.lost) == ("lost", "h001: exit code 1\n  its last words")
    assert recording.looks[-1].at_ns == BEGIN_NS + 10 * RTT_NS


class OvertakenBackend(SimBackend):
    """Its time went on without the run, which had been stopped."""

    async def confirm(self) -> None:
        raise BackendLostError("run-7 has lost its lease")


async def test_a_run_that_time_has_left_behind_is_lost_and_judges_nothing() -> None:
    what, backend = plan(), OvertakenBackend(TOPOLOGY)
    recording = await RunLoop(what, backend, Recorder(what, backend), Listener()).run()
    assert (recording.ended, recording.lost) == ("lost", "run-7 has lost its lease")


async def test_work_whose_paths_are_all_denied_is_not_held() -> None:
    text = (
        "name: denied\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1}\nlength: 60rtt\n"
        "workload:\n  - {name: pair, kind: p2p, message_bytes: 64KiB, messages: 2}\n"
        "deny:\n  - {nics: h000, plane: 0}\n  - {nics: h000, plane: %d, cut_off: true}\n"
    )
    for plane, outcome in ((0, "held"), (1, "not held")):
        found = plan_of(text % plane)
        judged = verdict(found.expectations, await simulated(found))
        assert judged.outcome == outcome
    assert judged.findings[0].why == "not tried: no byte of pair arrived"
    waited = plan_of(text % 1 + "expect:\n  - {measure: completed, at_most: 0}\n")
    assert verdict(waited.expectations, await simulated(waited)).outcome == "held"
