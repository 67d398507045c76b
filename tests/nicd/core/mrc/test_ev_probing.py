"""The controller asks EVs: answers with their port and round trip, silence, planes that are down."""

from typing import Any

import pytest

from nicd.core.commands import SetCarrier
from nicd.core.commands_paths import DenyPaths, ProbeEvs
from nicd.core.events import CommandDone, EvTransition
from tests.support.ladder import Ladder
from tests.support.wire import AB


def ask(ladder: Ladder, **args: Any) -> int:
    """Send a batch from a; returns its number once it is under way."""
    ladder.a.command(ProbeEvs(77, ladder.a.qpn, **args))
    ladder.run_for(0.1)
    (done,) = [event for event in ladder.a.told(CommandDone) if event.token == 77]
    assert done.error is None, done.error
    return int(done.result["batch"])


def outcomes(ladder: Ladder, batch: int) -> dict[int, str]:
    return {row["ev"]: row["outcome"] for row in ladder.a.nic.ev_probes(batch)["rows"]}


@pytest.mark.spec("MRC 1.0", "2.6")
def test_every_ev_answers_with_its_round_trip() -> None:
    ladder = Ladder()
    ladder.run_for(1)
    batch = ask(ladder)
    assert not ladder.a.nic.ev_probes(batch)["done"]
    ladder.run_for(5)
    answer = ladder.a.nic.ev_probes(batch)
    assert answer["done"]
    assert len(answer["rows"]) == 24
    for row in answer["rows"]:
        assert (row["outcome"], row["service_time"]) == ("answered", False)
        assert 0 < row["rtt_ns"] < 3 * ladder.base_rtt_ns
        assert row["answer_port"] in (1, 2)


@pytest.mark.spec("MRC 1.0", "2.6")
def test_what_is_lost_is_said_when_the_time_is_over_and_changes_no_state() -> None:
    ladder = Ladder()
    ladder.wire.drop(direction=AB, plane=1)
    ladder.run_for(1)
    batch = ask(ladder, timeout_ns=10 * ladder.base_rtt_ns)
    ladder.run_for(9)
    assert not ladder.a.nic.ev_probes(batch)["done"]
    ladder.run_for(2)
    assert ladder.a.nic.ev_probes(batch)["done"]
    planes = {row["ev"]: row["plane"] for row in ladder.a.nic.ev_table(ladder.a.qpn)}
    assert outcomes(ladder, batch) == {ev: "lost" if plane else "answered" for ev, plane in planes.items()}
    assert ladder.a.told(EvTransition) == []


def test_some_evs_barred_or_on_a_port_that_is_down() -> None:
    ladder = Ladder()
    ladder.run_for(1)
    table = ladder.a.nic.ev_table(ladder.a.qpn)
    barred = next(row["ev"] for row in table if row["plane"] == 0)
    down = next(row["ev"] for row in table if row["plane"] == 1)
    ladder.a.command(DenyPaths(0, 0))
    ladder.a.command(SetCarrier(0, 1, False))
    ladder.run_for(3)
    batch = ask(ladder, evs=[f"{barred:#x}", f"{down:#x}"])
    ladder.run_for(30)
    assert outcomes(ladder, batch) == {barred: "answered", down: "not_sent"}


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ({"qpn": 9}, "no QP 9"),
        ({"evs": ["0x7"]}, "EV '0x7' is not in the profile"),
        ({"evs": ["seven"]}, "EV 'seven' is not in the profile"),
        ({"evs": []}, "0 EVs in one batch"),
        ({"timeout_ns": 0}, "a timeout of 0 ns"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(args: dict[str, Any], reason: str) -> None:
    ladder = Ladder()
    ladder.run_for(1)
    ladder.a.command(ProbeEvs(0, **{"qpn": ladder.a.qpn, **args}))
    ladder.run_for(1)
    assert any(reason in refusal for refusal in ladder.a.refusals)


def test_only_so_many_batches_are_kept() -> None:
    ladder = Ladder(ev_probe_batches_max=2)
    ladder.run_for(1)
    for _ in range(3):
        ladder.a.command(ProbeEvs(0, ladder.a.qpn))
        ladder.run_for(5)
    assert ladder.a.nic.ev_probes(3)["done"]
    with pytest.raises(Exception, match="no batch 1"):
        ladder.a.nic.ev_probes(1)
