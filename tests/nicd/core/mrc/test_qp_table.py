"""Commands and what they leave behind; refusals are shown in test_nic."""

from nicd.core.commands import ConnectQp, CreateQp, DeregisterMemory, DestroyQp, ModifyQp, SetCarrier
from nicd.core.commands_paths import AllowEv, DenyEv
from nicd.core.events import CommandDone, Completion, QpChange
from nicd.core.qp_state import QpState
from tests.nicd.core.bench import PEER_QPN, QPN, Bench


def results(bench: Bench) -> list[tuple[str | None, dict[str, object]]]:
    return [(event.error, event.result) for event in bench.told(CommandDone)]


def test_numbers_are_chosen_when_left_open() -> None:
    bench = Bench()
    for _ in range(3):
        bench.executor.execute(0, CreateQp(5))
    numbers = [result["qpn"] for _, result in results(bench)]
    assert len(set(numbers)) == 3
    assert all(event.token == 5 for event in bench.told(CommandDone))


def test_destroying_a_qp_flushes_its_work_and_frees_its_memory() -> None:
    bench = Bench()
    bench.post(0, 10_000, wr_id=1)
    bench.post(0, 10, wr_id=2)
    bench.executor.execute(1, DeregisterMemory(0, 1))
    assert results(bench)[-1][0] is not None
    bench.executor.execute(2, DestroyQp(0, QPN))
    assert [(event.wr_id, event.status) for event in bench.told(Completion)] == [(1, "flushed"), (2, "flushed")]
    assert bench.table.qps == {}
    assert bench.table.peer_of(bench.peer.address) is None
    assert not bench.board.scheduler.busy
    bench.executor.execute(3, DeregisterMemory(0, 1))
    assert results(bench)[-1] == (None, {"region_id": 1})
    bench.fire(1_000_000)
    assert bench.board.timers.next_ns() > 1_000_000


def test_two_qps_share_a_peer() -> None:
    bench = Bench()
    bench.executor.execute(0, CreateQp(0, 101))
    bench.executor.execute(0, ConnectQp(0, 101, 2, PEER_QPN + 1, 0, 0))
    link = bench.table.find(101).link
    assert link is not None
    assert link.peer is bench.peer
    assert link.requestor.windows is bench.link.requestor.windows
    bench.executor.execute(0, DestroyQp(0, QPN))
    assert bench.table.peer_of(bench.peer.address) is bench.peer


def test_a_qp_moved_to_error_takes_no_more_work() -> None:
    bench = Bench()
    bench.executor.execute(0, ModifyQp(0, QPN, "error"))
    assert bench.table.find(QPN).state == QpState.ERROR
    bench.post(1, 10)
    assert "error" in str(results(bench)[-1][0])
    assert [event.target for event in bench.told(QpChange)] == ["error"]


def test_evs_are_denied_and_allowed_by_their_value() -> None:
    bench = Bench()
    profile = bench.link.profile
    ev = profile.evs[0]
    bench.executor.execute(0, DenyEv(0, QPN, ev))
    assert profile.table()[0]["state"] == "DENIED"
    bench.executor.execute(0, AllowEv(0, QPN, ev))
    assert profile.table()[0]["state"] == "GOOD"
    bench.executor.execute(0, DenyEv(0, QPN, next(iter(set(range(99)) - set(profile.evs)))))
    assert "not in the profile" in str(results(bench)[-1][0])


def test_a_port_without_carrier_leaves_every_qp() -> None:
    bench = Bench()
    bench.executor.execute(5, SetCarrier(0, 1, False))
    assert bench.link.planes == 0b01
    assert bench.link.profile.down_ns == [-1, 5]
    bench.executor.execute(6, SetCarrier(0, 1, False))
    assert bench.board.stats.port_updates_sent == 1
    bench.executor.execute(7, SetCarrier(0, 1, True))
    assert bench.link.planes == 0b11


def test_tracking_windows_in_use_and_ports_that_peers_lack() -> None:
    bench = Bench()
    granted = bench.link.requestor.mpr
    assert bench.table.mpr() == {"granted_packets": granted, "used_packets": 0, "used_ppm_max": 0}
    bench.post(0, 3 * 4_096)
    bench.pump(0)
    out = bench.link.requestor.psn_next - bench.link.requestor.cack - 1
    assert out > 0
    assert bench.table.mpr() == {
        "granted_packets": granted, "used_packets": out, "used_ppm_max": out * 1_000_000 // granted
    }  # fmt: skip
    assert bench.table.peer_ports_down() == [0, 0]
    bench.peer.up = 0b01
    assert bench.table.peer_ports_down() == [0, 1]
