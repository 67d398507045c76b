"""What an RC NIC holds, counted in its live structures."""

import pytest

from nicd.core.rc.footprint import EARLY, SENT, slot_bytes
from nicd.core.widths import WORK_REQUEST, record_bytes
from tests.nicd.core.rc.pipe import QPN_A, Pipe, Seen

MTU = 4096


def test_go_back_n_holds_a_context_and_nothing_that_grows() -> None:
    pipe = Pipe(cc="dcqcn")
    for number in range(3):
        pipe.write(16 * MTU, number)
    pipe.run(2_000)
    sender = pipe.nics[0].state_report()
    (row,) = sender["qps"]
    assert (row["qpn"], row["peer_index"], row["resident"]) == (QPN_A, 1, True)
    assert row["now"]["on_chip"] == row["peak"]["on_chip"] == row["reserved"]["on_chip"] == 106 + 42
    assert row["now"]["pieces"]["work_queue"] == 3 * record_bytes(WORK_REQUEST)
    pipe.run(1_000_000)
    (row,) = pipe.nics[0].state_report()["qps"]
    assert row["now"]["pieces"]["work_queue"] == 0
    assert row["peak"]["pieces"]["work_queue"] == 3 * record_bytes(WORK_REQUEST)
    assert row["process"]["bytes"] > 0


@pytest.mark.parametrize("lost", [1, 5, 20])
def test_selective_recovery_holds_what_is_out_and_what_came_early(lost: int) -> None:
    count = [0]

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        count[0] += seen.is_data
        return not seen.is_data or count[0] != lost

    pipe = Pipe(fate, rc_recovery="selective")
    pipe.write(32 * MTU)
    pipe.run(10_000_000)
    assert len(pipe.completions()) == 1
    sender, receiver = (nic.state_report()["qps"][0] for nic in pipe.nics)
    assert sender["now"]["pieces"]["inflight"] == receiver["now"]["pieces"]["early"] == 0
    assert 2 * record_bytes(SENT) <= sender["peak"]["pieces"]["inflight"] <= 32 * record_bytes(SENT)
    early = receiver["peak"]["pieces"]["early"]
    assert record_bytes(EARLY) <= early <= (32 - lost) * record_bytes(EARLY)
    for row in (sender, receiver):
        assert row["now"]["on_chip"] <= row["peak"]["on_chip"] <= row["reserved"]["on_chip"]


def test_totals_and_gauges_are_the_sums_of_the_rows() -> None:
    pipe = Pipe(rc_recovery="selective")
    pipe.connect(101, 201)
    pipe.write(32 * MTU)
    pipe.run(3_000)
    for nic in pipe.nics:
        report = nic.state_report()
        assert len(report["qps"]) == 2
        for moment, own in (("now", "now"), ("peak", "now"), ("reserved", "reserved")):
            rows = sum(row[moment]["on_chip"] for row in report["qps"])
            assert report["total"][moment] == rows + sum(report["nic"][own].values())
        assert nic.counters()["state_bytes"] == {
            moment: sum(row[moment]["on_chip"] for row in report["qps"]) for moment in ("now", "peak")
        }
    assert pipe.nics[0].counters()["state_bytes"]["now"] > pipe.nics[1].counters()["state_bytes"]["now"]


def test_a_chip_with_room_for_one_shows_who_is_on_it() -> None:
    pipe = Pipe(sram_bytes=600)
    pipe.connect(101, 201)
    pipe.write(MTU)
    pipe.write(MTU, 2, qpn=101)
    pipe.run(1_000_000)
    assert len(pipe.completions()) == 2
    report = pipe.nics[0].state_report()
    assert [row["resident"] for row in report["qps"]].count(True) == 1
    chip = report["chip"]
    assert (chip["capacity"], chip["spilled"], chip["slot_bytes"]) == (1, 1, 512)
    assert chip["slot_bytes"] == slot_bytes(pipe.nics[0].config.settings)


@pytest.mark.parametrize("recovery", ["go_back_n", "selective"])
@pytest.mark.parametrize("psns", [8, 16])
def test_no_table_grows_beyond_its_limit(recovery: str, psns: int) -> None:
    count = [0]

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        count[0] += seen.is_data
        return not seen.is_data or count[0] % 7 != 3

    pipe = Pipe(fate, rc_recovery=recovery, rc_psns_max=psns, rc_window_bytes=1 << 20, work_requests_max=4)
    for number in range(4):
        pipe.write(16 * MTU, number)
    pipe.run(50_000_000)
    assert len(pipe.completions()) == 4
    assert [nic.overfull() for nic in pipe.nics] == [[], []]
    peaks = pipe.nics[0].state_report()["qps"][0]
    assert peaks["peak"]["pieces"]["work_queue"] == peaks["reserved"]["pieces"]["work_queue"]
    if recovery == "selective":
        assert peaks["peak"]["pieces"]["inflight"] > peaks["reserved"]["pieces"]["inflight"] // 2


def test_the_process_holds_what_is_used_and_not_the_limit() -> None:
    sizes = []
    for psns in (8, 1 << 20):
        pipe = Pipe(rc_recovery="selective", rc_psns_max=psns, rc_window_bytes=1 << 16)
        idle = pipe.nics[0].state_report()["process_bytes"]
        pipe.write(4 * MTU)
        pipe.run(1_000_000)
        sizes.append((idle, pipe.nics[0].state_report()["process_bytes"]))
    assert abs(sizes[0][0] - sizes[1][0]) < 200
    assert abs(sizes[0][1] - sizes[1][1]) < 2_000
