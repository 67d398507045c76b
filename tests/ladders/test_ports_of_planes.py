"""A NIC whose ports are numbered otherwise than the planes does the same as one whose numbers agree.

Port of ours, port of the peer and plane of an EV are equal in every fabric that a topology file can describe, so only a
cabling made for it can show that no code takes one for another.
"""

from typing import Any

import pytest

from nicd.core.commands import SetCarrier
from nicd.core.events import EvTransition, PeerPortChange, PortChange
from tests.support.ladder import Ladder
from tests.support.wire import AB

AGREED = (0, 1, 2)
A_PORTS = (1, 2, 0)
B_PORTS = (2, 1, 0)


def scenes() -> dict[str, Any]:
    def calm(_: Ladder) -> None: ...

    def lossy(ladder: Ladder) -> None:
        for number in range(3, 90, 7):
            ladder.wire.drop(direction=AB, number=number, nth=1)

    def dead_port(ladder: Ladder) -> None:
        ladder.a.command(SetCarrier(0, ladder.port(ladder.a, 1), False), 20_000)
        ladder.a.command(SetCarrier(0, ladder.port(ladder.a, 1), True), 900_000)

    def dead_peer_port(ladder: Ladder) -> None:
        ladder.b.command(SetCarrier(0, ladder.port(ladder.b, 2), False), 20_000)

    return {"calm": calm, "lossy": lossy, "dead port": dead_port, "dead port of the peer": dead_peer_port}


def run(scene: str, ports: tuple[tuple[int, ...], tuple[int, ...]]) -> Ladder:
    ladder = Ladder(planes=3, ports=ports)
    scenes()[scene](ladder)
    for packets in (60, 60, 120):
        ladder.write(packets)
    ladder.write(80, end=ladder.b)
    ladder.run()
    return ladder


def outcome(ladder: Ladder) -> dict[str, Any]:
    """What is told and counted by plane. Which of two packets of one instant comes first is a matter of port numbers,
    so instants are left out.
    """
    return {
        end.name: {
            "completed": end.completed,
            "planes with a transition": {(event.plane, event.target) for event in end.told(EvTransition)},
            "retransmits": set(end.retransmits),
            "drops": set(end.drops),
            "planes": end.qp["planes"],
            "reverse": [(row["plane"], row["usable"]) for row in end.nic.reverse_paths()],
            "states": end.counters["ev_states"],
            "bytes": bytes(end.target),
        }
        for end in (ladder.a, ladder.b)
    }


@pytest.mark.parametrize("scene", sorted(scenes()))
@pytest.mark.parametrize("ports", [(A_PORTS, B_PORTS), (AGREED, B_PORTS), (B_PORTS, A_PORTS)])
def test_numbers_of_ports_change_nothing(scene: str, ports: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    ladder = run(scene, ports)
    assert outcome(ladder) == outcome(run(scene, (AGREED, AGREED)))
    to = ladder.a.nic.config.paths.towards(2)
    assert all(to.path(seen.ev).plane == seen.plane for seen in ladder.wire.seen)
    assert {seen.plane for seen in ladder.wire.seen} == {0, 1, 2}


@pytest.mark.parametrize("scene", ["dead port", "dead port of the peer"])
def test_no_data_take_the_plane_of_a_dead_port(scene: str) -> None:
    ladder = run(scene, (A_PORTS, B_PORTS))
    dead = 1 if scene == "dead port" else 2
    # The peer hears of it within a round trip.
    told_ns = 20_000 + 2 * ladder.base_rtt_ns
    quiet = [seen for seen in ladder.wire.seen if told_ns < seen.at_ns < 900_000]
    assert len(quiet) > 50
    assert {seen.plane for seen in quiet} == {0, 1, 2} - {dead}


def test_what_is_told_of_a_port_names_the_port() -> None:
    ladder = Ladder(planes=3, ports=(A_PORTS, B_PORTS))
    scenes()["dead port"](ladder)
    ladder.write(900)
    ladder.run()
    ladder.run(1_000_000)
    assert [(event.port, event.up) for event in ladder.a.told(PortChange)] == [(2, False), (2, True)]
    assert [(event.port, event.up) for event in ladder.b.told(PeerPortChange)] == [(2, False), (2, True)]
