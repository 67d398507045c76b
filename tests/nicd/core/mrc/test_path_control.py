"""What a controller does to paths: ladders of commands and what follows."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp
from nicd.core.commands_paths import AllowEv, AllowPaths, DenyEv, DenyPaths
from nicd.core.ev_state import EvState
from nicd.core.events import CommandDone
from tests.nicd.core.bench import QPN, Bench
from tests.nicd.core.fabric import Fabric

SIZE = 128 * 1024


def ask(bench: Bench, command: Any) -> CommandDone:
    bench.board.events.clear()
    bench.executor.execute(0, command)
    (done,) = bench.told(CommandDone)
    assert isinstance(done, CommandDone)
    return done


def denied(bench: Bench) -> set[tuple[int, int]]:
    """(plane, path) of the barred EVs of the bench's QP."""
    profile = bench.link.profile
    return {
        (profile.plane[index], profile.path[index])
        for index, state in enumerate(profile.states)
        if state == EvState.DENIED
    }


def test_a_denied_path_is_left_by_data_and_acknowledgements() -> None:
    bench = Bench()
    done = ask(bench, DenyPaths(1, 0, 1))
    profile = bench.link.profile
    # 24 EVs over two planes of two paths: half of a plane's are on each.
    assert done.result == {"plane": 0, "path": 1, "peer_index": None, "entries": 1, "evs": 6}
    assert denied(bench) == {(0, 1)}
    assert {profile.path[card] for card in profile.decks[0].cards} == {0}
    assert bench.peer.destination.path(bench.peer.reverse[0][1]).number == 0
    # What is known to work is not believed for a barred path.
    barred = next(index for index, state in enumerate(profile.states) if state == EvState.DENIED)
    bench.peer.confirm(1, 0, profile.path[barred], profile.evs[barred], profile.outer[barred])
    assert bench.peer.destination.path(bench.peer.reverse[0][1]).number == 0


def test_an_acknowledging_path_that_own_data_brought_in_is_left_too() -> None:
    bench = Bench(reverse_candidates=1)
    bench.peer.confirm(1, 0, 1 - bench.peer.reverse_rows()[0]["path"], 0x77, bytes(16))
    path = bench.peer.reverse_rows()[0]["path"]
    ask(bench, DenyPaths(1, 0, path))
    assert bench.peer.reverse_rows()[0]["path"] == 1 - path
    ask(bench, DenyPaths(1, 0, 1 - path))
    assert [row["usable"] for row in bench.peer.reverse_rows()] == [False, True]
    ask(bench, AllowPaths(1, 0, path))
    assert bench.peer.reverse_rows()[0] == {
        "peer_index": 2, "plane": 0, "ev": bench.peer.reverse[0][1], "path": path, "usable": True,
    }  # fmt: skip


def test_a_denied_plane_is_left_altogether() -> None:
    bench = Bench()
    ask(bench, DenyPaths(1, 1))
    assert bench.link.planes == 0b01
    assert {bench.reply_port() for _ in range(4)} == {0}
    ask(bench, AllowPaths(1, 1))
    assert bench.link.planes == 0b11
    assert {bench.reply_port() for _ in range(4)} == {0, 1}


def test_the_list_outlives_qps_and_peers() -> None:
    bench = Bench()
    ask(bench, DenyPaths(1, 0, 0, 2))
    ask(bench, DestroyQp(2, QPN))
    ask(bench, CreateQp(3, QPN))
    ask(bench, ConnectQp(4, QPN, 2, 200, 0, 0))
    link = bench.table.find(QPN).link
    assert link is not None
    assert {link.profile.path[card] for card in link.profile.decks[0].cards} == {1}
    assert link.peer.destination.path(link.peer.reverse[0][1]).number == 1


def test_other_peers_are_left_alone() -> None:
    bench = Bench()
    assert ask(bench, DenyPaths(1, 0, 1, 3)).result["evs"] == 0
    assert denied(bench) == set()


def test_paths_through_a_t1_say_nothing_about_a_neighbour() -> None:
    bench = Bench()
    ask(bench, CreateQp(1, 101))
    ask(bench, ConnectQp(1, 101, 1, 200, 0, 0))
    ask(bench, DenyPaths(1, 0, 0))
    neighbour = bench.table.find(101).link
    assert neighbour is not None
    assert EvState.DENIED not in neighbour.profile.states
    ask(bench, DenyPaths(1, 0, 0, 1))
    assert neighbour.planes == 0b10


def test_a_bar_stays_while_somebody_holds_it() -> None:
    bench = Bench()
    profile = bench.link.profile
    index = next(card for card in profile.decks[0].cards if profile.path[card] == 1)
    ask(bench, DenyEv(1, QPN, profile.evs[index]))
    ask(bench, DenyPaths(1, 0, 1))
    assert ask(bench, AllowPaths(1, 0)).result["removed"] == 1
    assert [state for state in profile.states if state == EvState.DENIED] == [EvState.DENIED]
    ask(bench, DenyPaths(1, 0, 1))
    ask(bench, AllowEv(1, QPN, profile.evs[index]))
    assert profile.states[index] == EvState.DENIED
    ask(bench, AllowPaths(1, 0, 1))
    assert profile.states[index] == EvState.GOOD


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (DenyPaths(1, 2), "no plane 2; this NIC has 2"),
        (DenyPaths(1, 0, 2), "no path 2; a plane has 2"),
        (AllowPaths(1, 0, 0, 4), "no NIC 4; the fabric has 4"),
        (DenyEv(1, 9, 0), "no QP 9"),
        (DenyEv(1, QPN, 5), "EV 0x5 is not in the profile"),
    ],
)
def test_what_cannot_be_is_refused(command: Any, reason: str) -> None:
    error = ask(Bench(), command).error
    assert error is not None
    assert reason in error


def test_a_full_list_refuses() -> None:
    bench = Bench(deny_entries_max=1)
    assert ask(bench, DenyPaths(1, 0, 0)).error is None
    assert "full" in str(ask(bench, DenyPaths(1, 0, 1)).error)


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_nothing_is_sent_over_a_denied_path() -> None:
    whole = Fabric(
        Topology(
            name="denied", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
            reserve_evs_per_qp=8,
        )
    )  # fmt: skip
    names = whole.permutation(1, SIZE)
    for name in names:
        whole.simulator.command(name, 2, DenyPaths(0, 0, 0))
        whole.simulator.command(name, 2, DenyPaths(0, 1, 1))
    whole.write_all(SIZE, 4)
    assert whole.finish(100_000_000)
    whole.verify(SIZE)
    assert whole.total("packets_lost") == 0
    for name in ("p0-t1-0", "p1-t1-1"):
        assert whole.simulator.node(name).counters()["received"] == 0  # type: ignore[attr-defined]
    for name in ("p0-t1-1", "p1-t1-0"):
        assert whole.simulator.node(name).counters()["received"] > 20  # type: ignore[attr-defined]
