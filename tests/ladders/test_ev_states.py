"""What an EV goes through, seen from the wire: marks, trims, losses, probes, and a receiver that insists."""

from collections import Counter
from typing import Any

import pytest

from mrcfabric.wire.layout import DATA_OPCODES, PROBE
from nicd.core.events import EvTransition
from tests.support.ladder import Ladder
from tests.support.wire import AB, Seen


def states(ladder: Ladder) -> Counter[str]:
    """How many EVs of a's QP are in which state."""
    return Counter(str(row["state"]) for row in ladder.a.nic.ev_table(ladder.a.qpn))


def row(ladder: Ladder, ev: int) -> dict[str, Any]:
    (found,) = [one for one in ladder.a.nic.ev_table(ladder.a.qpn) if one["ev"] == ev]
    return found


def ways(ladder: Ladder) -> list[tuple[str, str, str]]:
    """(from, to, cause) of the EVs of a that failed or came back, in order."""
    return [(event.source, event.target, event.cause) for event in ladder.a.told(EvTransition)]


def on(ladder: Ladder, ev: int) -> list[Seen]:
    return [seen for seen in ladder.data() if seen.ev == ev]


@pytest.mark.spec("MRC 1.0", "11.2")
def test_one_marked_packet_is_one_skip_and_nothing_else() -> None:
    ladder = Ladder()
    ladder.wire.mark(direction=AB, opcode=DATA_OPCODES, number=7, nth=1)
    ladder.write(100)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.count("ev_skips"), ladder.a.retransmits, ways(ladder)) == (1, {}, [])
    marked = ladder.data(number=7)[0]
    assert row(ladder, marked.ev)["state"] == "GOOD", "the scan forgave it"
    assert len(on(ladder, marked.ev)) > 2, "and used it again"


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_packet_trimmed_on_its_path_skips_its_ev_and_is_sent_again_on_another() -> None:
    ladder = Ladder()
    ladder.wire.trim(direction=AB, opcode=DATA_OPCODES, number=7, nth=1)
    ladder.write(60)
    assert ladder.run()
    ladder.verify()
    first, again = ladder.data(number=7)
    assert first.ev != again.ev
    assert (ladder.a.count("ev_skips"), ways(ladder)) == (1, [])


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_packet_trimmed_on_the_last_hop_says_nothing_of_its_ev() -> None:
    ladder = Ladder()
    ladder.wire.trim(last_hop=True, direction=AB, opcode=DATA_OPCODES, number=7, nth=1)
    ladder.write(60)
    assert ladder.run()
    ladder.verify()
    assert len(ladder.data(number=7)) == 2
    assert (ladder.a.count("ev_skips"), ways(ladder)) == (0, [])


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_lost_packet_retires_its_ev_and_a_reserve_ev_of_its_plane_steps_in() -> None:
    ladder = Ladder(probe_successes=100)
    ladder.wire.drop(direction=AB, number=20, nth=1)
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert ways(ladder) == [("good", "assumed_bad", "gap")]
    lost = ladder.data(number=20)[0]
    assert (row(ladder, lost.ev)["state"], row(ladder, lost.ev)["active"]) == ("ASSUMED_BAD", False)
    table = ladder.a.nic.ev_table(ladder.a.qpn)
    assert Counter(one["plane"] for one in table if one["active"]) == {0: 8, 1: 8}
    told_ns = ladder.a.told(EvTransition)[0].at_ns
    assert [seen for seen in on(ladder, lost.ev) if seen.at_ns > told_ns + ladder.base_rtt_ns] == []


@pytest.mark.spec("MRC 1.0", "11.2")
@pytest.mark.parametrize("needed", [1, 3])
def test_only_so_many_answered_probes_bring_a_bad_ev_back(needed: int) -> None:
    ladder = Ladder(probe_successes=needed)
    ladder.wire.drop(direction=AB, number=20, nth=1)
    ladder.write(200)
    assert ladder.run()
    ladder.run_for(60)
    assert ways(ladder) == [("good", "assumed_bad", "gap"), ("assumed_bad", "good", "probed_clear")]
    lost = ladder.data(number=20)[0]
    assert len([seen for seen in ladder.sent(opcode=PROBE) if seen.ev == lost.ev]) == needed


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_bad_ev_whose_probes_are_marked_comes_back_as_skip() -> None:
    ladder = Ladder(probe_successes=1)
    ladder.wire.drop(direction=AB, number=20, nth=1)
    ladder.wire.mark(direction=AB, opcode=PROBE)
    ladder.write(200)
    assert ladder.run()
    ladder.run_for(60)
    assert ways(ladder) == [("good", "assumed_bad", "gap"), ("assumed_bad", "skip", "probed_marked")]


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_bad_ev_whose_probes_are_lost_stays_bad_and_the_others_carry_on() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, number=20, nth=1)
    ladder.wire.drop(direction=AB, opcode=PROBE)
    ladder.write(200)
    assert ladder.run()
    ladder.run_for(60)
    ladder.write(200)
    assert ladder.run()
    ladder.verify()
    assert states(ladder) == {"GOOD": 23, "ASSUMED_BAD": 1}


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_receiver_that_insists_retires_the_ev_and_probes_bring_it_back() -> None:
    ladder = Ladder(always_skip_marks=2)
    first: list[int] = []

    def on_one_ev(seen: Seen) -> bool:
        if not first:
            first.append(seen.ev)
        return seen.ev == first[0]

    ladder.wire.mark(direction=AB, opcode=DATA_OPCODES, where=on_one_ev)
    ladder.write(300)
    assert ladder.run()
    ladder.run_for(60)
    ladder.verify()
    assert ways(ladder)[:2] == [("good", "assumed_bad", "always_skip"), ("assumed_bad", "good", "probed_clear")]
    assert ladder.a.retransmits == {}


@pytest.mark.spec("MRC 1.0", "11.2")
def test_by_default_marks_alone_never_retire_an_ev() -> None:
    ladder = Ladder()
    ladder.wire.mark(direction=AB, opcode=DATA_OPCODES)
    ladder.write(300)
    assert ladder.run(2_000)
    ladder.verify()
    assert (ways(ladder), ladder.a.retransmits) == ([], {})
    assert ladder.a.count("ev_skips") > 100


@pytest.mark.spec("MRC 1.0", "6")
def test_the_floor_of_active_evs_holds_however_much_is_lost() -> None:
    # Where failures were remembered, paths that lose alike would keep their EVs.
    ladder = Ladder(ev_min_active=12, probe_successes=100, path_forget_ns=1)
    ladder.wire.drop(direction=AB, number=range(0, 400, 9), rtx=False)
    ladder.write(400)
    assert ladder.run(4_000)
    ladder.verify()
    active = [one for one in ladder.a.nic.ev_table(ladder.a.qpn) if one["active"]]
    assert len(active) == 12
    assert all(one["state"] in ("GOOD", "SKIP") for one in active)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("fate", ["drop", "trim"])
def test_a_retransmission_never_takes_the_ev_that_failed(fate: str) -> None:
    ladder = Ladder()
    getattr(ladder.wire, fate)(direction=AB, opcode=DATA_OPCODES, number=range(0, 300, 13), rtx=False)
    ladder.write(300)
    assert ladder.run(2_000)
    ladder.verify()
    for number in range(0, 300, 13):
        first, *again = ladder.data(number=number)
        assert again
        assert all(seen.ev != first.ev for seen in again)
