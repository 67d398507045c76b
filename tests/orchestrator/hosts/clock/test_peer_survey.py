"""What one relay finds out about its neighbours, and when it says so."""

import asyncio
from typing import Any

from mrcfabric.clock import ClockPage
from mrcfabric.control_message import Realm
from orchestrator.hosts.clock.peer_survey import PeerSurvey
from orchestrator.hosts.clock.waiting import LOOK_S
from tests.support.ports import free_udp_ports
from tests.support.wait import eventually

ROW = [[(1, 0)], [(0, 0), (2, 0)], [(1, 1), (3, 0)], [(2, 1)]]
HOST_OF = [1, 1, 2, 2]
LEADER, LEFT, RIGHT = range(3)
REALM = Realm(bytes(range(32)), "row", 1)
DEADLINE_S = 10.0


async def test_the_way_to_a_neighbour_is_measured_when_it_is_greeted_and_told() -> None:
    addresses = [("127.0.0.1", port) for port in free_udp_ports(3)]
    lines: dict[int, list[dict[str, Any]]] = {LEADER: [], LEFT: [], RIGHT: []}
    surveys = {
        here: PeerSurvey(ClockPage.create(ROW), REALM, here, HOST_OF, ROW, addresses, 4_280, told.append)
        for here, told in lines.items()
    }
    for survey in surveys.values():
        survey.open()
    for here, survey in surveys.items():
        for other in surveys:
            survey.greet(other)
            survey.greet(other)  # it called again meanwhile
        assert len(survey._measuring) == (here != LEADER)
    await eventually(lambda: lines[LEFT] and lines[RIGHT], DEADLINE_S)
    [line] = lines[LEFT]
    assert (line["peer"], line["path"], line["clock"]) == (RIGHT, {"mtu": 65_535, "cut": True}, None)
    assert lines[RIGHT][0]["life"] != line["life"]
    await asyncio.sleep(0)
    assert not surveys[LEFT]._measuring
    for survey in surveys.values():
        survey.close()


def test_a_host_that_carries_nothing_says_nothing_of_itself() -> None:
    told: list[dict[str, Any]] = []
    page = ClockPage.create(ROW)
    page.wake()
    addresses = [("127.0.0.1", 0)] * 3
    PeerSurvey(page, REALM, LEADER, HOST_OF, ROW, addresses, 4_280, told.append).tell(LEADER)
    assert told == []
    left = PeerSurvey(page, REALM, LEFT, HOST_OF, ROW, addresses, 4_280, told.append)
    page.words[page.want_word(1, 0)] = 300  # node 0 waits for node 1
    for look in (1.0, 1.0 + LOOK_S / 2, 1.0 + LOOK_S):
        left.look(look)
    left.tell(LEFT)
    left.tell(RIGHT)
    own, other = told
    assert own["waited_ns"] == own["ran_ns"] > 0
    assert (other["waited_ns"], other["ran_ns"]) == (0, own["ran_ns"])
