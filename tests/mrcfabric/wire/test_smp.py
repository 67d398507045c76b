"""Directed-route packets: built and read, the way there and back, any bytes, and what a stock tshark reads."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import pcapng_writer, smp
from mrcfabric.wire.lrh import lrh_sums_ok
from mrcfabric.wire.pcapng import LINK_ERF
from mrcfabric.wire.smp import ANSWER, GET, LFT, NODE_INFO, SELF_PORT, SET, Smp, answer, encode, parse, request, step
from mrcfabric.wire.smp_attributes import NodeInfo
from tests.support.tshark import fields

NODE = NodeInfo(smp.SWITCH, 6, 1, 2, 3, 4)


def test_a_packet_is_290_bytes_and_has_both_sums() -> None:
    packet = encode(request(GET, NODE_INFO, (1, 5), 77))
    assert len(packet) == smp.SMP_PACKET_BYTES == 8 + 12 + 8 + 256 + 4 + 2
    assert packet[:8].hex() == "f002ffff0048ffff"
    assert lrh_sums_ok(packet)
    assert smp.is_directed(packet)


@given(
    st.integers(0, 255), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF), st.integers(0, (1 << 64) - 1),
    st.lists(st.integers(1, 255), max_size=63), st.binary(max_size=64),
)  # fmt: skip
def test_what_is_written_is_read(
    method: int, attribute: int, modifier: int, number: int, path: list[int], data: bytes
) -> None:
    asked = request(method, attribute, tuple(path), number, modifier, data)
    assert parse(encode(asked)) == asked
    assert parse(encode(answer(asked, 0x1C, b"x"))) == answer(asked, 0x1C, b"x")


def test_a_request_goes_along_its_path_and_the_answer_comes_back_the_same_way() -> None:
    """From port 1 of its sender by two switches: in by 4 and out by 5, in by 2 and out by 7, in by 3."""
    asked = request(GET, NODE_INFO, (1, 5, 7), 9)
    way, taken = [(SELF_PORT, 1), (4, 5), (2, 7), (3, SELF_PORT)], asked
    for in_port, out_port in way:
        found = step(taken, in_port)
        assert found is not None
        assert found[0] == out_port
        taken = found[1]
    assert taken.return_path[:5] == bytes((0, 4, 2, 3, 0))
    back = answer(taken, data=NODE.emit())
    for out_port in (3, 2, 4, SELF_PORT):
        found = step(back, 99)
        assert found is not None
        assert found[0] == out_port
        back = found[1]
    assert (back.transaction_id, back.method, NodeInfo.parse(back.data)) == (9, ANSWER, NODE)


def test_a_node_asks_itself_by_a_path_of_no_hops() -> None:
    found = step(request(GET, NODE_INFO, (), 9), SELF_PORT)
    assert found is not None
    port, taken = found
    assert port == SELF_PORT
    back = step(answer(taken), 0)
    assert back is not None
    assert back[0] == SELF_PORT


@given(
    st.integers(0, 255), st.integers(0, 255), st.integers(0, 1), st.integers(0, 255),
    st.binary(min_size=64, max_size=64), st.binary(min_size=64, max_size=64),
)  # fmt: skip
def test_any_way_gets_an_answer_and_comes_to_an_end(
    pointer: int, count: int, d: int, in_port: int, initial: bytes, returned: bytes
) -> None:
    taken = Smp(
        GET, NODE_INFO, initial_path=initial, return_path=returned, hop_pointer=pointer, hop_count=count, d=d
    )  # fmt: skip
    for _ in range(200):
        found = step(taken, in_port)
        if found is None:
            return
        port, taken = found
        if port == SELF_PORT:
            return
        in_port = max(1, in_port)
    raise AssertionError


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 289), st.integers(0, 255)), max_size=4))
def test_any_bytes_get_an_answer(data: bytes, changes: list[tuple[int, int]]) -> None:
    assert parse(data) is None
    good = encode(request(GET, NODE_INFO, (1, 5), 77))
    packet = bytearray(good)
    for place, value in changes:
        packet[place] = value
    # Bits that no sum counts are the VL, the BTH's fifth byte, and nothing else.
    assert parse(packet) is None or packet == good


def test_other_classes_and_versions_are_none_of_ours() -> None:
    asked = request(GET, NODE_INFO, (1,), 1)
    for changes in ({"mgmt_class": 1}, {"base_version": 2}, {"class_version": 2}):
        assert parse(encode(replace(asked, **changes))) is None
    assert parse(encode(asked, 5, 6)) is None, "a directed one does not go by LID"


def test_a_trap_goes_by_lid() -> None:
    told = smp.trap(b"notice")
    packet = encode(told, 0x17, 0x2E)
    assert packet[2:4] + packet[6:8] == bytes.fromhex("002e0017")
    assert not smp.is_directed(packet)
    assert parse(packet) == told


@pytest.mark.integration
def test_tshark_reads_the_same(tmp_path: Path) -> None:
    taken = step(request(SET, LFT, (1, 5), 0x1234, 3, bytes(range(64))), SELF_PORT)
    assert taken is not None
    back = replace(answer(request(GET, NODE_INFO, (1, 5), 0x99), data=NODE.emit()), hop_pointer=2)
    out = pcapng_writer.section("x") + pcapng_writer.interface("a>b", link_type=LINK_ERF)
    for one in (taken[1], back):
        packet = encode(one)
        record = pcapng_writer.record(0, packet, len(packet))
        out += pcapng_writer.packet(0, 0, record, len(record))
    (tmp_path / "x.pcapng").write_bytes(out)
    names = {
        "mad.baseversion": "base_version", "mad.mgmtclass": "mgmt_class", "mad.method": "method",
        "mad.transactionid": "transaction_id", "mad.attributeid": "attribute", "mad.attributemodifier": "modifier",
        "smpdirected.hoppointer": "hop_pointer", "smpdirected.hopcount": "hop_count", "smpdirected.drslid": "dr_slid",
    }  # fmt: skip
    node = {
        "nodeinfo.nodetype": "node_type", "nodeinfo.numports": "ports", "nodeinfo.nodeguid": "node_guid",
        "nodeinfo.localportnum": "local_port",
    }  # fmt: skip
    asked = [f"infiniband.{name}" for name in (*names, *node)]
    rows = fields(
        tmp_path / "x.pcapng",
        (*asked, "infiniband.linearforwardingtable.port", "infiniband.smpdirected.initialpath", "_ws.malformed",
         "infiniband.lrh.vl"),
        scripts=(),
    )  # fmt: skip
    for one, row in zip((taken[1], back), rows, strict=True):
        assert not row["_ws.malformed"]
        assert int(row["infiniband.lrh.vl"][0], 0) == 15
        for name, ours in names.items():
            assert int(row[f"infiniband.{name}"][0], 0) == getattr(one, ours), name
        assert bytes.fromhex(row["infiniband.smpdirected.initialpath"][0].replace(":", "")) == one.initial_path
    assert [int(port, 0) for port in rows[0]["infiniband.linearforwardingtable.port"]] == list(range(64))
    for name, ours in node.items():
        assert int(rows[1][f"infiniband.{name}"][0], 0) == getattr(NODE, ours), name
