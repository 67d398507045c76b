"""One session: what is said and when, what ends it, and neighbours that are not who they should be."""

from itertools import pairwise
from typing import Any

import pytest

from mrcfabric.units import NS_PER_S
from mrcfabric.wire import bgp, local, tcp
from mrcfabric.wire.bgp import Notification, Open
from switchd.core.events_routing import SessionChange
from switchd.core.routing.session import ESTABLISHED
from tests.support.speakers import DELAY_NS, S, Speakers, clos


def messages(graph: Speakers, name: str, port: int = 0) -> list[tuple[int, int, bytes]]:
    """(instant, kind, body) of the messages that have come to a port, repeated segments aside."""
    stream, found, seen = bytearray(), [], set()
    for at_ns, packet in graph.arrivals[name, port]:
        segment = tcp.parse(local.parse(packet))
        if segment.payload and (segment.source_port, segment.sequence) not in seen:
            seen.add((segment.source_port, segment.sequence))
            stream += segment.payload
        while (message := bgp.take(stream)) is not None:
            found.append((at_ns, *message))
    return found


def test_both_say_who_they_are_and_then_keep_the_session_alive() -> None:
    graph = clos(1, 1)
    graph.run(30 * S)
    for name, other in (("t0-0", "t1-0"), ("t1-0", "t0-0")):
        said = messages(graph, name)
        assert [kind for _, kind, _ in said[:2]] == [bgp.OPEN, bgp.KEEPALIVE]
        assert bgp.parse_open(said[0][2]) == Open(graph.asns[other], 9, graph.config(other).router_id)
        kept = [at_ns for at_ns, kind, _ in said if kind == bgp.KEEPALIVE][1:]
        gaps = [later - sooner for sooner, later in pairwise(kept)]
        assert all(0.75 * 3 * S <= gap <= 3 * S for gap in gaps)
        assert len(set(gaps)) > 3, "jitter"


@pytest.mark.parametrize(("hold_s", "keepalive_s", "gap_s"), [(9, 3, 3), (180, 60, 60), (9, 60, 3), (30, 2, 2)])
def test_keepalives_without_jitter_go_at_a_third_of_the_hold_time_at_the_latest(
    hold_s: int, keepalive_s: int, gap_s: int
) -> None:
    graph = clos(1, 1, bgp_jitter=False, bgp_hold_ns=hold_s * S, bgp_keepalive_ns=keepalive_s * S)
    graph.run(10 * gap_s * S)
    kept = [at_ns for at_ns, kind, _ in messages(graph, "t1-0") if kind == bgp.KEEPALIVE][1:]
    assert {later - sooner for sooner, later in pairwise(kept[1:])} == {gap_s * S}


def test_without_a_hold_time_nobody_keeps_it_alive() -> None:
    graph = clos(1, 1, bgp_hold_ns=0)
    graph.run(1_000 * S)
    graph.cut("t0-0", "t1-0", carrier=False)
    graph.run(100_000 * S)
    assert graph.routers["t0-0"].sessions[0].state == ESTABLISHED
    assert len([kind for _, kind, _ in messages(graph, "t1-0") if kind == bgp.KEEPALIVE]) == 1


@pytest.mark.parametrize("retry_s", [10, 120])
def test_a_neighbour_that_does_not_answer_is_called_again(retry_s: int) -> None:
    graph = clos(1, 1, bgp_connect_retry_ns=retry_s * S, bgp_jitter=False)
    graph.cut("t0-0", "t1-0", carrier=False)
    graph.run(3 * retry_s * S)
    graph.cut("t0-0", "t1-0", carrier=False, up=True)
    graph.run(4 * retry_s * S + 1 * S)
    (up,) = graph.told("t0-0", SessionChange)
    assert 3 * retry_s * S < up.at_ns <= 4 * retry_s * S + 1 * S


def test_a_returning_carrier_starts_it_at_once() -> None:
    graph = clos(1, 1)
    graph.run(20 * S)
    graph.cut("t0-0", "t1-0")
    graph.run(25 * S)
    graph.cut("t0-0", "t1-0", up=True)
    graph.run(26 * S)
    changes = [(event.up, event.why) for event in graph.told("t0-0", SessionChange)]
    assert changes == [(True, ""), (False, "carrier"), (True, "")]


def test_a_carrier_that_blinks_is_not_noticed() -> None:
    graph = clos(1, 1)
    graph.run(20 * S)
    graph.cut("t0-0", "t1-0")
    graph.run(20 * S + 900_000)
    graph.cut("t0-0", "t1-0", up=True)
    graph.run(60 * S)
    assert [event.up for event in graph.told("t0-0", SessionChange)] == [True]


def test_without_fast_failover_the_hold_time_decides() -> None:
    graph = clos(1, 1, bgp_fast_external_failover=False)
    graph.run(20 * S)
    graph.cut("t0-0", "t1-0")
    graph.run(40 * S)
    (_, down) = graph.told("t0-0", SessionChange)
    assert down.why == "hold_time"
    assert 6 * S - DELAY_NS <= down.at_ns - 20 * S <= 9 * S


def test_who_gives_up_says_so_to_whoever_can_hear_it() -> None:
    graph = clos(1, 1)
    graph.run(20 * S)
    graph.cut("t0-0", "t1-0", carrier=False, both=False)
    graph.run(60 * S)
    whys = [[event.why for event in graph.told(name, SessionChange) if not event.up] for name in ("t1-0", "t0-0")]
    assert whys == [["hold_time"], ["notification"]]
    (told,) = [body for _, kind, body in messages(graph, "t0-0") if kind == bgp.NOTIFICATION]
    assert bgp.parse_notification(told) == Notification(bgp.HOLD_EXPIRED, 0)


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"asn": 1}, (2, 2)),
        ({"identifier": 2}, (2, 3)),
        ({"ipv6": False}, (2, 7)),
        ({"hold_s": 2}, (2, 6)),
    ],
)
def test_a_neighbour_that_is_not_who_it_should_be_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], codes: tuple[int, int]
) -> None:
    encode = bgp.encode_open

    def other(said: Open) -> bytes:
        return encode(said._replace(**change) if said.identifier == 1 else said)

    monkeypatch.setattr("mrcfabric.wire.bgp.encode_open", other)
    graph = clos(1, 1)
    graph.run(5 * S)
    assert not graph.told("t1-0", SessionChange)
    told = [bgp.parse_notification(body) for _, kind, body in messages(graph, "t0-0") if kind == bgp.NOTIFICATION]
    assert {(one.code, one.subcode) for one in told} == {codes}
    assert graph.now == 5 * NS_PER_S
