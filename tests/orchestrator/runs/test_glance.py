"""What a look says in a few figures, and what changed since the look before."""

from orchestrator.measures.goodput import Goodput
from orchestrator.measures.recording import Injected, Recording
from orchestrator.runs.glance import FaultChange, Follower, StepChange, glance, in_force, rates_gbps
from tests.support.plans import FLAP
from tests.support.recordings import FLAP as FLAP_NS
from tests.support.recordings import LOOK, sample_look, sample_recording


def up_to(at_ns: int) -> Recording:
    """The sample as it was at a look."""
    whole = sample_recording()
    whole.looks = [look for look in whole.looks if look.at_ns <= at_ns]
    return whole


def test_the_figures_are_those_of_the_newest_look() -> None:
    seen = glance(up_to(140_000))
    assert seen.at_ns == 140_000
    # In these 20 us plane 1 held nothing.
    assert seen.planes_gbps == (360.0, 0.0)
    assert seen.evs == {"good": 4 * 44, "skip": 0, "assumed_bad": 16, "denied": 0}
    assert (seen.retransmits, seen.packets_lost, seen.qp_errors, seen.ports_down) == (40, 40, 0, 0)
    assert seen.faults == ("flaps",)
    assert seen.steps == {"train": 2, "aside": 0}


def test_ports_down_are_counted_over_all_nics() -> None:
    recording = up_to(140_000)
    recording.looks[-1].nics["h001"].ports_up[0] = False
    assert glance(recording).ports_down == 1


def test_where_no_whole_bin_fits_the_newest_one_stands_for_all() -> None:
    goodput = Goodput(5_000, 1)
    goodput.enter("h000", [(0, [62_500]), (5_000, [31_250])])
    assert rates_gbps(goodput, 10_500, 11_000) == (50.0,)
    assert rates_gbps(goodput, 0, 10_000) == (75.0,)


def test_a_fault_is_in_force_from_its_begin_to_its_end_pauses_included() -> None:
    assert [in_force(Injected(FLAP), at_ns) for at_ns in (39_999, 40_000, 55_000, 70_000)] == [False, True, True, False]


def told(recording: Recording, until_ns: int, step_ns: int) -> list[tuple[int, str]]:
    """What a follower that looks every so often tells, as text."""
    follower, looks, found = Follower(), recording.looks, []
    for at_ns in range(20_000, until_ns + 1, step_ns):
        recording.looks = [look for look in looks if look.at_ns <= at_ns]
        for change in follower.changes(recording):
            if isinstance(change, FaultChange):
                found.append((change.at_ns, f"{change.injected.fault.id} {change.phase}"))
            else:
                found.append((change.at_ns, f"{change.program} {change.finished}"))
    recording.looks = looks
    return found


def test_faults_are_told_at_their_own_instants_however_often_it_is_looked() -> None:
    faults = [(120_000, "flaps begins"), (180_000, "flaps ends"), (300_000, "kill begins"), (360_000, "kill ends")]
    for step_ns in (LOOK, 5 * LOOK):
        assert [line for line in told(sample_recording(), 500_000, step_ns) if "train" not in line[1]] == faults


def test_steps_are_told_when_there_are_more() -> None:
    steps = [line for line in told(sample_recording(), 200_000, LOOK) if "train" in line[1]]
    assert steps == [(80_000, "train 1"), (140_000, "train 2"), (200_000, "train 3")]
    follower = Follower()
    assert follower.changes(sample_recording(looks=[sample_look(140_000)]))[-1] == StepChange(140_000, "train", 2)


def test_a_fault_healed_in_time_never_was_and_one_healed_early_says_so() -> None:
    recording = sample_recording()
    recording.faults[0].healed_ns = FLAP_NS[0] + 30_000
    recording.faults[1].healed_ns = 100_000
    lines = [line for line in told(recording, 500_000, LOOK) if "train" not in line[1]]
    assert lines == [(100_000, "kill healed"), (120_000, "flaps begins"), (150_000, "flaps healed")]


def test_bytes_compared_and_on_daemons_how_fast_it_goes() -> None:
    recording = up_to(140_000)
    recording.looks[-1].verified, recording.looks[-1].wrong = 7, 2
    seen = glance(recording)
    assert (seen.verified, seen.wrong, seen.wall_s, seen.dilation) == (7, 2, None, None)
    recording.clocks = [(0.0, 20_000), (1.2, 140_000)]
    seen = glance(recording)
    assert (seen.wall_s, seen.dilation) == (1.2, 10_000)
