"""What a NIC holds, counted in its live structures."""

from mrcfabric.topology import Topology
from nicd.core.mrc.footprint import INFLIGHT, MESSAGE
from nicd.core.mrc.state_report import held, peak, reserved, state_bytes, state_report
from nicd.core.widths import WORK_REQUEST, record_bytes
from tests.nicd.core.bench import PLANES, QPN, Bench
from tests.nicd.core.fabric import Fabric
from tests.nicd.core.mrc.test_profile_control import EVS, Controlled

PAIR = Topology(
    name="pair", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=8
)
SIZE = 1 << 18
RESERVED = 1 << 17
"""A QP's tables at their limits are larger than this; what it holds in a small transfer is much less."""


def test_a_fresh_qp_holds_its_evs_and_nothing_else() -> None:
    bench = Bench()
    counts = held(bench.link)
    assert (counts.evs, counts.planes) == (24, PLANES)
    assert (counts.inflight, counts.bitmap_bits, counts.messages, counts.stash) == (0, 0, 0, 0)
    assert (counts.probes, counts.probation, counts.work_requests) == (0, 0, 0)


def test_what_is_sent_is_in_flight_until_it_is_acknowledged() -> None:
    bench = Bench()
    bench.post(0, 4_096 * 2)
    sent = len(bench.pump(10_000))
    assert sent == 2
    counts = held(bench.link)
    assert (counts.inflight, counts.work_requests) == (sent, 1)
    row = state_report(bench.board, bench.table.qps, bench.table.peers)["qps"][0]
    assert row["qpn"] == QPN
    assert row["now"]["pieces"]["inflight"] == sent * record_bytes(INFLIGHT)
    assert row["now"]["pieces"]["work_queue"] == record_bytes(WORK_REQUEST)
    assert peak(bench.link).inflight == sent


def test_limits_are_those_that_both_ends_agreed_on() -> None:
    bench = Bench(mpr_units=4, max_wimm=40, messages_open_max=9, work_requests_max=77)
    counts = reserved(bench.board, bench.link)
    assert (counts.inflight, counts.bitmap_bits, counts.messages, counts.stash) == (512, 512, 10, 41)
    assert (counts.evs, counts.probation, counts.work_requests) == (24, 24, 77 + 512)


def test_peaks_stay_when_a_transfer_is_over() -> None:
    fabric = Fabric(PAIR)
    fabric.permutation(1, SIZE)
    fabric.write_all(SIZE, 8)
    assert fabric.finish(10_000_000)
    report = fabric.core("h000").state_report()
    sender, receiver = report["qps"]
    for row in (sender, receiver):
        assert row["now"]["pieces"]["inflight"] == row["now"]["pieces"]["messages"] == 0
        assert row["now"]["on_chip"] <= row["peak"]["on_chip"] < RESERVED < row["reserved"]["on_chip"]
        assert row["process"]["bytes"] > row["now"]["on_chip"] // 2
        assert row["resident"]
    assert sender["peak"]["pieces"]["inflight"] >= 8 * record_bytes(INFLIGHT)
    assert receiver["peak"]["pieces"]["messages"] >= record_bytes(MESSAGE)
    assert report["total"]["now"] < report["total"]["peak"] < report["total"]["reserved"]
    assert report["chip"]["spilled"] == 0


def test_totals_are_the_sums_of_their_rows() -> None:
    bench = Bench()
    report = state_report(bench.board, bench.table.qps, bench.table.peers)
    for moment, own in (("now", "now"), ("peak", "now"), ("reserved", "reserved")):
        parts = [row[moment]["on_chip"] for row in report["qps"]] + [row["bytes"] for row in report["peers"]]
        assert report["total"][moment] == sum(parts) + sum(report["nic"][own].values())
    assert report["process_bytes"] == sum(row["process"]["bytes"] for row in report["qps"])


def test_the_process_holds_more_while_packets_are_out() -> None:
    bench = Bench()
    before = state_report(bench.board, bench.table.qps, bench.table.peers)["process_bytes"]
    bench.post(0, 4_096 * 2)
    bench.pump(10_000)
    assert state_report(bench.board, bench.table.qps, bench.table.peers)["process_bytes"] > before


def test_a_chip_with_room_for_one_shows_who_is_on_it() -> None:
    fabric = Fabric(Topology.from_dict({**PAIR.to_dict(), "nic": {"sram_bytes": 1}}))
    fabric.permutation(1, SIZE)
    fabric.write_all(SIZE, 4)
    assert fabric.finish(20_000_000)
    report = fabric.core("h000").state_report()
    assert [row["resident"] for row in report["qps"]].count(True) == 1
    assert (report["chip"]["capacity"], report["chip"]["spilled"]) == (1, 1)


def test_qps_of_one_profile_keep_numbers_and_the_nic_the_values() -> None:
    bench = Controlled()
    for qpn in (40, 41):
        bench.qp(qpn)
    report = state_report(bench.board, bench.table.qps, bench.table.peers)
    # 24 EVs of 32 bits drawn by the bench's own QP; eight of the profile, 12 bits each; their values 71 bits, once.
    assert [row["now"]["pieces"]["ev_table"] for row in report["qps"]] == [
        24 * 4,
        len(EVS) * 12 // 8,
        len(EVS) * 12 // 8,
    ]
    assert report["nic"]["now"]["ev_profiles"] == len(EVS) * 9


def test_gauges_are_the_sums_of_the_report() -> None:
    bench = Bench()
    bench.post(0, 4_096 * 2)
    bench.pump(10_000)
    report = state_report(bench.board, bench.table.qps, bench.table.peers)
    gauges = state_bytes(bench.board, bench.table.qps)
    assert gauges == {moment: sum(row[moment]["on_chip"] for row in report["qps"]) for moment in ("now", "peak")}
