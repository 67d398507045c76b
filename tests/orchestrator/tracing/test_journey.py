"""A journey as data: everything can be written as JSON, with the times that follow from others."""

import json
from dataclasses import replace

from orchestrator.faults.fault import once
from tests.support.scripts import incast
from tests.support.tracing import PAUSING, journeys


def test_every_journey_can_be_written_and_read() -> None:
    for journey in journeys(once("loss", "p0-t0-0~p0-t1-0", at_ns=1_100, until_ns=900_000, share_ppm=300_000)):
        record = json.loads(json.dumps(journey.record()))
        assert record["total_ns"] == journey.total_ns == record["acknowledged_ns"] - record["began_ns"]
        assert len(record["attempts"]) == len(journey.attempts)
        first = record["attempts"][0]["way"]
        assert first["hops"][0]["node"] == journey.source
        assert first["sent_ns"] == record["began_ns"]


def test_without_an_acknowledgement_there_is_no_total() -> None:
    journey = replace(journeys()[0], acknowledged_ns=None)
    assert (journey.total_ns, journey.complete, journey.record()["total_ns"]) == (None, False, None)


def test_pauses_of_all_hops_are_summed_up() -> None:
    found = journeys(topology=PAUSING, script=incast(PAUSING, 1 << 16))
    for journey in found:
        spans = [one for attempt in journey.attempts for hop in attempt.way.hops for one in hop.pauses]
        assert journey.paused_ns == sum(one.until_ns - one.since_ns for one in spans)
        assert journey.record()["paused_ns"] == journey.paused_ns
        assert journey.paused >= bool(journey.paused_ns)
        if journey.placed_ns is not None and len(journey.attempts) == 1:
            assert journey.paused_ns < journey.placed_ns - journey.began_ns
    assert any(journey.paused_ns for journey in found)
