"""Attributes of nodes, switches and ports: their sizes, places that matter, and what a stock tshark reads."""

from pathlib import Path

import pytest

from mrcfabric.wire import pcapng_writer
from mrcfabric.wire.header import Header
from mrcfabric.wire.pcapng import LINK_ERF
from mrcfabric.wire.smp import ANSWER, NOTICE, PORT_INFO, SM_INFO, SWITCH_INFO, TRAP, Smp, encode
from mrcfabric.wire.smp_attributes import LINK_STATE_CHANGE, NodeInfo, Notice, PortInfo, SmInfo, SwitchInfo
from tests.support.tshark import fields

PORT = PortInfo(
    0x1234, 4, 7, lmc=3, master_sm_lid=9, head_life=18, vl_stall_count=7, vl_high_limit=255, operational_vls=2
)
SWITCH = SwitchInfo(0xC000, 99, 1, life_time=18)
MANAGER = SmInfo(0xABCDEF, 5, 14, 3)
LINK = Notice(LINK_STATE_CHANGE, 77, details=(77).to_bytes(2, "big") + bytes(52))


def test_sizes() -> None:
    sizes = {NodeInfo: 40, SwitchInfo: 17, PortInfo: 60, SmInfo: 21, Notice: 64}
    assert {kind: kind.SIZE for kind in sizes} == sizes


@pytest.mark.parametrize("one", [PORT, SWITCH, MANAGER, LINK], ids=lambda one: one.NAME)
def test_what_is_written_is_read(one: Header) -> None:
    assert type(one).parse(one.emit().ljust(64, b"\0")) == one


@pytest.mark.integration
def test_tshark_reads_the_same(tmp_path: Path) -> None:
    expected = (
        (PORT_INFO, PORT, {
            "portinfo.lid": "lid", "portinfo.mastersmlid": "master_sm_lid", "portinfo.portstate": "state",
            "portinfo.lmc": "lmc", "portinfo.hoqlife": "head_life", "portinfo.vlstallcount": "vl_stall_count",
            "portinfo.vlhighlimit": "vl_high_limit", "portinfo.operationalvls": "operational_vls",
            "portinfo.localportnum": "local_port", "portinfo.mtucap": "mtu_cap",
            "portinfo.subnettimeout": "subnet_timeout",
        }),
        (SWITCH_INFO, SWITCH, {
            "switchinfo.linearfdbcap": "linear_cap", "switchinfo.linearfdbtop": "linear_top",
            "switchinfo.portstatechange": "port_state_change", "switchinfo.lifetimevalue": "life_time",
        }),
        (SM_INFO, MANAGER, {
            "sminfo.guid": "guid", "sminfo.actcount": "act_count", "sminfo.priority": "priority",
            "sminfo.smstate": "state",
        }),
        (NOTICE, LINK, {
            "notice.isgeneric": "generic", "notice.type": "kind", "notice.trapnumberdeviceid": "trap",
            "notice.issuerlid": "issuer_lid", "notice.producertypevendorid": "producer", "trap.lidaddr": "issuer_lid",
        }),
    )  # fmt: skip
    out = pcapng_writer.section("x") + pcapng_writer.interface("a>b", link_type=LINK_ERF)
    for attribute, one, _ in expected:
        method = TRAP if attribute == NOTICE else ANSWER
        packet = encode(Smp(method, attribute, data=one.emit().ljust(64, b"\0"), d=1))
        record = pcapng_writer.record(0, packet, len(packet))
        out += pcapng_writer.packet(0, 0, record, len(record))
    (tmp_path / "x.pcapng").write_bytes(out)
    names = sorted({f"infiniband.{name}" for _, _, kinds in expected for name in kinds})
    rows = fields(tmp_path / "x.pcapng", (*names, "_ws.malformed"), scripts=())
    for (_, one, kinds), row in zip(expected, rows, strict=True):
        assert not row["_ws.malformed"]
        for name, ours in kinds.items():
            assert int(row[f"infiniband.{name}"][0], 0) == getattr(one, ours), name
