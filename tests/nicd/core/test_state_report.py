"""The report of a transport: what it counts, times the widths it was given, and never a sum of something else."""

import pytest

from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.commands import CreateQp
from nicd.core.nic import Nic
from nicd.core.rc.transport import RcTransport
from nicd.core.state_report import Account
from tests.nicd.core.rc.lone import LoneNic

ACCOUNT: Account[object, int] = Account(
    held=lambda link: 3,
    peak=lambda link: 5,
    limits=lambda knobs: 7,
    qp_bytes=lambda knobs, count: {"table": 10 * count, "work_queue": count},
    on_chip_bytes=lambda pieces: pieces["table"],
    nic_bytes=lambda regions: {"memory_keys": regions * 1000},
    slot_bytes=lambda knobs: 64,
)


def transport_of(lone: LoneNic) -> RcTransport:
    transport = lone.nic._transport
    assert isinstance(transport, RcTransport)
    return transport


@pytest.mark.parametrize("sram_bytes", [0, 640])
def test_every_sum_is_of_its_own_moment(sram_bytes: int) -> None:
    lone = LoneNic(sram_bytes=sram_bytes, sram_qp_bytes=64 if sram_bytes else 0)
    lone.do(CreateQp(0, 300))  # not connected: it holds nothing
    transport = transport_of(lone)
    report = ACCOUNT.report(transport.board, transport.qps, (transport.rc, transport))
    (row,) = report["qps"]
    assert {moment: row[moment]["on_chip"] for moment in ("now", "peak", "reserved")} == {
        "now": 30, "peak": 50, "reserved": 70,
    }  # fmt: skip
    assert row["now"]["pieces"] == {"table": 30, "work_queue": 3}
    assert report["nic"]["now"] == {"memory_keys": 1000}
    assert report["total"] == {
        "now": 1030, "peak": 1050, "reserved": 70 + report["nic"]["reserved"]["memory_keys"], "host_now": 3,
    }  # fmt: skip
    assert report["process_bytes"] == row["process"]["bytes"] > 0
    assert (report["chip"]["sram_bytes"], report["chip"]["slot_bytes"]) == (sram_bytes, 64)
    assert ACCOUNT.totals(transport.board, transport.qps) == {"now": 30, "peak": 50}


def test_of_nobody_it_is_empty() -> None:
    topology = Topology(name="idle", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8,
                        reserve_evs_per_qp=0, nic={"transport": "rc"})  # fmt: skip
    report = Nic(nic_config(topology, "h000")).state_report()
    assert (report["qps"], report["process_bytes"], report["total"]["now"]) == ([], 0, 0)
