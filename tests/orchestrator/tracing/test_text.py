"""What a terminal shows of a journey."""

from orchestrator.faults.fault import once
from orchestrator.tracing.journey import Journey
from orchestrator.tracing.text import headline, render
from tests.support.tracing import journeys


def lines(journey: Journey) -> list[str]:
    return render(journey).splitlines()


def test_a_packet_that_went_well() -> None:
    journey = journeys()[0]
    text = lines(journey)
    assert text[0] == headline(journey)
    assert text[0].startswith(f"{journey.source} > {journey.destination} QP {journey.destination_qpn}, PSN ")
    assert ": placed after " in text[0]
    assert ", acknowledged after " in text[0]
    assert text[1].startswith(f"  sent at {journey.began_ns / 1000:.3f} us: EV 0x")
    assert [line.split()[1] for line in text[3:7]] == [hop.node for hop in journey.attempts[0].way.hops]
    assert text[7].strip().startswith(f"placed at {journey.destination} at ")
    assert text[8].startswith("  answered at ")
    assert "SACK up to PSN" in text[8]
    assert text[-1].strip().startswith(f"arrived at {journey.source} at ")


def test_a_packet_that_was_lost_and_sent_again() -> None:
    found = journeys(once("link_down", "p1-t0-0>p1-t1-1", at_ns=1_100, until_ns=200_000))
    text = render(next(journey for journey in found if len(journey.attempts) == 2))
    assert "    lost on p1-t0-0>p1-t1-1 at " in text
    assert ": link_down\n  sent again (" in text
    assert text.splitlines()[0].endswith(", sent 2 times")


def test_a_packet_that_is_not_there_yet() -> None:
    texts = [render(journey) for journey in journeys(until=2_000)]
    assert any("still waiting at h00" in text for text in texts)
    assert any("on its way to p" in text for text in texts)


def test_a_dead_switch_and_a_frozen_one() -> None:
    dead = "\n".join(map(render, journeys(once("switch_crash", "p0-t1-0", at_ns=3_000, until_ns=300_000))))
    assert "    never seen at p0-t1-0\n" in dead
    frozen = "\n".join(map(render, journeys(once("switch_freeze", "p0-t1-0", at_ns=3_000, until_ns=300_000))))
    assert "    dropped at p0-t1-0 at " in frozen
