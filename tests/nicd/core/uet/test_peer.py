"""What QPs to one destination share."""

from nicd.core.congestion.nscc import Nscc
from nicd.core.congestion.open_window import OpenWindow
from tests.nicd.core.uet.pipe import QPN_B, Pipe


def test_the_control_of_congestion_is_a_setting() -> None:
    for name, window, credited in (
        ("nscc", Nscc, False), ("rccc", OpenWindow, True), ("both", Nscc, True), ("none", OpenWindow, False),
    ):  # fmt: skip
        pipe = Pipe(uet_cc=name)
        pipe.run(100)
        peer = pipe.link(0).peer
        assert {type(one) for one in peer.windows.contexts} == {window}
        assert (peer.credit is not None) == credited
        assert (peer.credited() is not None) == (name == "rccc")


def test_qps_share_window_and_credit() -> None:
    pipe = Pipe(connect=False, uet_cc="both")
    pipe.connect(100, QPN_B)
    pipe.connect(101, QPN_B + 1)
    for number, qpn in enumerate((100, 101)):
        pipe.write(200_000, wr_id=number, qpn=qpn, offset=200_000 * number)
    pipe.run(3_000)
    first, second = pipe.link(0, 100), pipe.link(0, 101)
    assert first.peer is second.peer
    assert not first.peer.idle
    assert first.waiting_bytes > 0
    assert second.waiting_bytes > 0
    out = sum(sent.size for link in (first, second) for sent in link.initiator.table.by_psn.values())
    assert first.peer.windows.inflight_bytes == out
    pipe.run(1_000_000)
    assert first.peer.idle
    assert first.peer.credit is not None
    assert first.peer.credit.open, "it may speculate again"
    assert pipe.target()[:400_000] == bytes(pipe.source[:400_000])
    done = {one.wr_id: one.at_ns for one in pipe.completions()}
    assert abs(done[0] - done[1]) < 2_000, "packet by packet in turn"


def test_speculation_is_a_share_of_the_bandwidth_delay_product() -> None:
    """Without an answer a sender sends what it may speculate, to the packet."""
    for share in (500, 1_500):
        pipe = Pipe(lambda at_ns, side, seen: side == 0, uet_cc="rccc", uet_speculation_ppt=share)
        pipe.write(1 << 20)
        pipe.run(20_000)
        settings = pipe.nics[0].config.settings
        product = pipe.nics[0].config.ports[0].rate_bps * settings.base_rtt_ns // 8_000_000_000
        packet = 4_096 + pipe.link(0).peer.overhead
        assert len(pipe.data()) == -(-(product * share // 1000) // packet)
