"""Where packets of UET went, in virtual time: entropies and up-links, trims, losses, and the answers."""

from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.topology import Topology
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.journey import Journey, Way
from orchestrator.tracing.text import render
from tests.support.scripts import incast, permutation
from tests.support.tracing import journeys, told

SPRAYED = Topology(
    name="sprayed", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=0,
    nic={"transport": "uet"}, switch={"forwarding": "ecmp"},
)  # fmt: skip
SIZE = 1 << 17
PACKETS = SIZE // SPRAYED.mtu_bytes
LATE_NS = 20_000_000


def with_nic(**nic: Any) -> Topology:
    return Topology.from_dict({**SPRAYED.to_dict(), "nic": {**SPRAYED.nic, **nic}})


def across(topology: Topology, *faults: Any, choice: Choice | None = None) -> list[Journey]:
    """Every NIC writes to one below the other T0."""
    script = permutation(topology, shift=2, size=SIZE, pieces=4)
    return journeys(*faults, topology=topology, script=script, choice=choice, until=LATE_NS)


def ways(found: list[Journey]) -> list[Way]:
    return [attempt.way for journey in found for attempt in journey.attempts]


@pytest.mark.parametrize(
    "nic",
    [{"uet_path": "oblivious"}, {"uet_path": "reps"}, {"uet_cc": "rccc"}, {"uet_mode": "rod"}, {"uet_crc": "none"}],
)
def test_every_packet_is_placed_and_its_sender_hears_so(nic: dict[str, Any]) -> None:
    found = across(with_nic(**nic))
    assert len(found) == 4 * PACKETS
    for journey in found:
        assert journey.complete
        (attempt,) = journey.attempts
        assert (attempt.way.what, attempt.way.ev) == ("placed", None)
        assert attempt.way.sport is not None
        answer = attempt.answers[-1]
        assert (answer.kind, answer.outcome, answer.where) == ("sack", "taken", journey.source)
        assert [hop.node.split("-")[1] if "-" in hop.node else "nic" for hop in attempt.way.hops] == [
            "nic", "t0", "t1", "t0"
        ]  # fmt: skip
        assert "source port" in render(journey)
    pairs = {(way.hops[0].node, way.sport) for way in ways(found)}
    assert len(pairs) == (4 if nic.get("uet_mode") == "rod" else 4 * 16)


def test_the_upper_bits_of_psns_do_not_matter_where_they_wrap() -> None:
    choice = Choice(every=7)
    found = across(SPRAYED, choice=choice)
    assert all(journey.complete for journey in found)
    assert 4 * PACKETS // 7 - 4 <= len(found) <= 4 * PACKETS // 7 + 8


@pytest.mark.parametrize("mode", ["rud", "rod"])
def test_a_lost_packet_is_sent_again_and_says_so(mode: str) -> None:
    fault = once("loss", "p0-t0-0~p0-t1-0", "p0-t0-0~p0-t1-1", at_ns=1_000, until_ns=LATE_NS, share_ppm=100_000)
    found = across(with_nic(uet_mode=mode), fault)
    assert len(found) == 4 * PACKETS
    assert all(journey.complete for journey in found)
    lost = [way for way in ways(found) if way.outcome == "lost"]
    assert lost
    for journey in found:
        flags = [attempt.way.rtx for attempt in journey.attempts]
        assert flags == [False] + [True] * (len(flags) - 1)
        assert all(attempt.way.cause in ("gap", "timeout", "nack") for attempt in journey.attempts[1:])


def test_a_trimmed_packet_and_the_nack_that_asks_for_it() -> None:
    topology = Topology.from_dict({**SPRAYED.to_dict(), "switch": {**SPRAYED.switch, "data_last_hop": 0.3}})
    fabric = SimulatedFabric(topology)
    fabric.follow(Choice())
    for step in incast(topology, SIZE):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.run(LATE_NS)
    found = told(fabric)
    assert all(journey.complete for journey in found)
    trimmed = [attempt for journey in found for attempt in journey.attempts if attempt.way.what == "trimmed"]
    assert len(trimmed) == sum(fabric.counters("h000")["trims"].values()) > 0
    for attempt in trimmed:
        assert attempt.answers[0].kind == "nack"
        assert attempt.answers[0].says["reason"] == "trimmed at the last hop"
