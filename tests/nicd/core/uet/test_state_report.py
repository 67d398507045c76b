"""The state that a UET NIC holds, counted in its live structures."""

from nicd.core.uet.state_report import ACCOUNT, held, peak
from tests.nicd.core.uet.pipe import Pipe


def test_what_is_held_follows_a_run() -> None:
    pipe = Pipe(mtu=1024)
    pipe.write(1 << 18)
    pipe.run(5_000)
    link = pipe.link(0)
    assert held(link).inflight == len(link.initiator.table.by_psn) > 0
    assert held(link).work_requests == 1
    assert held(pipe.link(1)).messages == 1
    report = pipe.nics[0].state_report()
    (row,) = report["qps"]
    assert row["now"]["on_chip"] <= row["peak"]["on_chip"] <= row["reserved"]["on_chip"]
    assert report["total"]["now"] == row["now"]["on_chip"] + sum(report["nic"]["now"].values())
    pipe.run(1_000_000)
    assert held(link).inflight == held(link).work_requests == 0
    assert peak(link).inflight > 0
    assert peak(pipe.link(1)).messages == 1
    transport = pipe.transport(0)
    sizes = ACCOUNT.totals(transport.board, transport.qps)
    assert sizes["now"] < sizes["peak"]
    assert not transport.overfull()
