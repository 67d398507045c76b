"""Where packets of InfiniBand went, in virtual time: ports of the table, VLs, waits for credit, packets sent again."""

from typing import Any

import pytest

from mrcfabric.lids import base_lid
from mrcfabric.topology import Topology
from mrcfabric.witness_packets import covers
from orchestrator.faults.fault import once
from orchestrator.tracing.text import render
from tests.support.scripts import incast, permutation
from tests.support.tracing import journeys

LMC = 1
SIZE = 1 << 16
LATE_NS = 20_000_000


def topology(**switch: Any) -> Topology:
    return Topology(
        name="lids", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=4,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "lid_lmc": LMC, "lid_sl": 1, "rc_timeout": 4},
        switch={"forwarding": "lft", "lossless": "credits", **switch},
    )  # fmt: skip


def test_every_packet_is_placed_and_its_way_is_that_of_its_lid() -> None:
    fabric = topology()
    script = permutation(fabric, shift=4, size=SIZE, pieces=2)
    found = journeys(topology=fabric, script=script, until=LATE_NS)
    assert len(found) == 8 * SIZE // fabric.mtu_bytes
    for journey in found:
        (attempt,) = journey.attempts
        way = attempt.way
        assert journey.complete
        assert (way.what, way.ev) == ("placed", None)
        number = fabric.nic_index(journey.destination)
        assert way.sport is not None
        assert way.dlid == base_lid(number, LMC) + way.sport
        assert [hop.node[-4:-1] for hop in way.hops][1:] == ["t0-", "t1-", "t0-"]
        assert way.hops[2].node == f"p0-t1-{(number + way.sport) % 2}"
        assert {hop.traffic_class for hop in way.hops} == {1}
        (answer,) = attempt.answers
        assert covers(answer.says, journey.psn)


def test_waits_for_credit_are_told() -> None:
    fabric = topology(vl_blocks=65)
    found = journeys(topology=fabric, script=incast(fabric, size=SIZE), until=LATE_NS)
    hops = [hop for journey in found for attempt in journey.attempts for hop in attempt.way.hops]
    paused = [hop for hop in hops if hop.pauses]
    assert paused
    for hop in paused:
        assert hop.start_ns is not None
        assert 0 < hop.paused_ns <= hop.start_ns - hop.at_ns


@pytest.mark.parametrize("share", [20_000, 100_000])
def test_packets_that_are_lost_and_sent_again_are_told_apart(share: int) -> None:
    fabric = topology()
    fault = once("loss", "p0-t0-0>p0-t1-1", at_ns=1_000, until_ns=LATE_NS, share_ppm=share)
    script = permutation(fabric, shift=4, size=SIZE, pieces=2)
    found = journeys(fault, topology=fabric, script=script, until=LATE_NS)
    lost = [attempt for journey in found for attempt in journey.attempts if attempt.way.outcome == "lost"]
    assert lost
    for journey in found:
        assert journey.complete
        assert [attempt.way.what for attempt in journey.attempts].count("placed") == 1
        assert [attempt.way.rtx for attempt in journey.attempts] == [False, *[True] * (len(journey.attempts) - 1)]
    text = render(next(journey for journey in found if len(journey.attempts) > 1))
    assert "LID " in text
