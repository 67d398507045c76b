"""Acknowledgements have paths of their own: one that dies in one direction costs them nothing for long.

A real fabric, two NICs below different T0s; a failure is of one direction of one link, so that the way there and the
way back fail apart. The far NIC is idle (it only receives) or busy (it sends as much as it gets).
"""

from typing import Any

import pytest

from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.paths import ev_of
from mrcfabric.topology import Topology
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from nicd.core.commands_paths import CreateEvProfile, ModifyEvProfile
from nicd.core.events import QpChange
from tests.nicd.core.fabric import READY_NS, Fabric

DEAD = Impairment(up=False)
PATHS = 4
SIZE = 1 << 20
A, B = "h000", "h001"


class Pair(Fabric):
    """Two NICs, one below each T0 of a plane; a writes to b, and b to a if it is busy."""

    def __init__(self, planes: int, busy: bool, **nic: Any) -> None:
        super().__init__(
            Topology(
                name="pair", planes=planes, t0_per_plane=2, t1_per_plane=PATHS, nics_per_t0=1, evs_per_qp=8 * planes,
                reserve_evs_per_qp=4 * planes, nic=nic,
            )
        )  # fmt: skip
        self.busy = busy
        self.rtt_ns = self.core(A).config.settings.base_rtt_ns
        for name in (A, B):
            self.memory(name, SIZE)
        self.connect(A, B, 100, 200)
        self.connect(B, A, 101, 201)

    def carry(self, pieces: int = 16) -> None:
        """One more megabyte from a, and from b if it is busy, in pieces; wait until all is complete."""
        piece = SIZE // pieces
        at_ns = max(READY_NS, self.simulator.now_ns + 1)
        for name, qpn in ((A, 100), (B, 101))[: 2 if self.busy else 1]:
            for number in range(pieces):
                self.write(name, qpn, self.posted, number * piece, piece, at_ns)
        assert self.finish(self.simulator.now_ns + 2_000 * self.rtt_ns)
        assert not self.errors()

    def uplink(self, switch: str, path: int) -> int:
        """The port of a T0 towards a T1."""
        t1 = switch.partition("-")[0] + f"-t1-{path}"
        return next(end.port for end in self.topology.ports(switch) if end.peer == t1)

    def kill(self, back: bool, plane: int, path: int, fault: Impairment = DEAD) -> None:
        """One direction of one link: what a sends over this path is lost, or (`back`) what b sends."""
        switch = f"p{plane}-t0-{1 if back else 0}"
        self.impair(switch, self.uplink(switch, path), fault, max(2, self.simulator.now_ns + 1))

    def reverse(self, name: str = B) -> dict[int, int]:
        """Plane -> path of acknowledgements of a NIC."""
        return {int(row["plane"]): int(row["path"]) for row in self.core(name).reverse_paths()}

    def bad(self, name: str, qpn: int) -> set[tuple[int, int]]:
        rows = self.core(name).ev_table(qpn)
        return {(int(row["plane"]), int(row["path"])) for row in rows if row["state"] == "ASSUMED_BAD"}


@pytest.mark.spec("arXiv 2605.04333", "2")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
@pytest.mark.parametrize("planes", [1, 2])
def test_a_way_back_that_dies_is_left(planes: int, busy: bool) -> None:
    pair = Pair(planes, busy)
    pair.carry()
    dead = pair.reverse()
    for plane, path in dead.items():
        pair.kill(True, plane, path)
    pair.carry()
    after = pair.reverse()
    assert all(after[plane] != path for plane, path in dead.items())
    # What a sends was never at fault: no EV of a is blamed for acknowledgements that were lost, but for a start.
    before = pair.total("packets_lost")
    pair.carry()
    if not busy:
        assert pair.total("packets_lost") == before
        assert pair.bad(A, 100) == set()


@pytest.mark.spec("arXiv 2605.04333", "2")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_way_there_that_dies_is_left_and_the_way_back_over_it_stays(busy: bool) -> None:
    pair = Pair(2, busy)
    pair.carry()
    pair.kill(False, 0, 1)
    pair.carry()
    assert pair.bad(A, 100) == {(0, 1)}
    assert pair.bad(B, 101) == set(), "the other direction of the same path is alive"
    if busy:
        assert any(row["path"] == 1 and row["active"] for row in pair.core(B).ev_table(101))


@pytest.mark.spec("arXiv 2605.04333", "2")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_the_path_that_was_just_refreshed_may_die_again_and_again(busy: bool) -> None:
    pair = Pair(1, busy)
    pair.carry()
    for _ in range(6):
        path = pair.reverse()[0]
        pair.kill(True, 0, path)
        pair.carry(4)
        assert pair.reverse()[0] != path
        pair.kill(True, 0, path, HEALTHY)
    assert not pair.found(QpChange, lambda event: event.target == "error")


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_both_directions_at_once() -> None:
    pair = Pair(2, True)
    pair.carry()
    for plane in range(2):
        pair.kill(True, plane, pair.reverse(B)[plane])
        pair.kill(False, plane, pair.reverse(A)[plane])
    pair.carry()
    pair.carry()
    assert len(pair.bad(A, 100)) <= 2
    assert len(pair.bad(B, 101)) <= 2


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_a_plane_that_own_data_do_not_use_is_still_probed() -> None:
    """b sends all the time, but by a profile of plane 0 alone: its acknowledgements of plane 1 need probes."""
    pair = Pair(2, True)
    simulator = pair.simulator
    evs = [f"{ev_of(0, path, draw):#x}" for draw in range(2) for path in range(PATHS)]
    simulator.command(B, 5, CreateEvProfile(0, 1))
    simulator.command(B, 6, ModifyEvProfile(0, 1, mode="explicit", evs=evs, min_active=1, state="offline"))
    simulator.command(B, 7, ModifyEvProfile(0, 1, state="online"))
    for name, qpn, peer, peer_qpn, profile in ((B, 300, 0, 301, 1), (A, 301, 1, 300, None)):
        simulator.command(name, 8, CreateQp(0, qpn, profile=profile))
        simulator.command(name, 9, ConnectQp(0, qpn, peer, peer_qpn, 5, 5))
        simulator.command(name, 10, ModifyQp(0, qpn, "rts"))
    piece = SIZE // 16

    def both() -> None:
        at_ns = max(READY_NS, simulator.now_ns + 1)
        for number in range(16):
            pair.write(A, 100, pair.posted, number * piece, piece, at_ns)
            pair.write(B, 300, pair.posted, number * piece, piece, at_ns)
        assert pair.finish(simulator.now_ns + 2_000 * pair.rtt_ns)

    both()
    path = pair.reverse()[1]
    pair.kill(True, 1, path)
    both()
    assert pair.reverse()[1] != path


@pytest.mark.spec("arXiv 2605.04333", "2")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_plane_that_is_gone_costs_no_acknowledgements_for_long_and_comes_back(busy: bool) -> None:
    pair = Pair(2, busy)
    pair.carry()
    for path in range(PATHS):
        pair.kill(True, 1, path)
        pair.kill(False, 1, path)
    pair.carry(64)
    usable = [row["usable"] for row in pair.core(B).reverse_paths()]
    assert usable == [True, False]
    # Nothing is lost any more, so nothing is asked for twice.
    before = pair.total("packets_lost"), pair.total("timeouts")
    pair.carry(64)
    assert (pair.total("packets_lost"), pair.total("timeouts")) == before
    for path in range(PATHS):
        pair.kill(True, 1, path, HEALTHY)
        pair.kill(False, 1, path, HEALTHY)
    pair.carry(64)
    assert all(row["usable"] for row in pair.core(B).reverse_paths())
