"""The rows an operator sees are the core's figures, and they add up."""

from dataclasses import replace

from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.wire.usid import build
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.switch import Switch
from switchd.rows import port_rows, usid_rows

TOPOLOGY = replace(Topology.demo(), switch={"adjacency": True, "data_last_hop": 0.1, "control": 0.02})
NAME = "p3-t0-1"


def overrun(packets: int) -> Switch:
    """A T0 whose port 2 has been offered so many packets of 2000 bytes at once."""
    config = switch_config(TOPOLOGY, NAME)
    switch = Switch(config)
    usid = next(usid for usid, port in config.fib.items() if port == 2)
    head = (6 << 12 | config.dscp.trimmable << 6 | 2 << 4).to_bytes(2, "big")
    body = head + bytes(4) + bytes([41, 64]) + bytes(16) + build(config.block, (config.usid, usid)) + bytes(1960)
    switch.advance([Input(10, Rank.FRAME, 4, number, bytearray(body)) for number in range(packets)], 10)
    return switch


def test_what_left_the_data_queue_trimmed_was_sent_or_dropped_by_the_control_queue() -> None:
    switch = overrun(40)
    row = port_rows(switch)[2]
    data, control = row["data"], row["control"]
    assert data["trimmed"] == control["trim_admitted"] + control["trim_dropped"]
    assert control["trim_admitted"] == control["sent_packets"] + control["waiting_packets"] > 0
    assert control["trim_dropped"] > 0
    sent = data["sent_packets"] + control["sent_packets"]
    assert sent + data["waiting_packets"] + control["waiting_packets"] + control["trim_dropped"] == 40
    assert (row["towards"], row["trim_dscp"], row["ecn"]) == ("nic", switch.config.dscp.trimmed_lasthop, False)
    assert row["impairment"] == {}
    assert port_rows(switch)[3]["data"]["sent_packets"] == 0


def test_the_table_in_rows() -> None:
    switch = overrun(3)
    rows = usid_rows(switch)
    assert [row["kind"] for row in rows] == ["uN"] * 8 + ["uA"] * 8
    assert {row["port"]: (row["packets"], row["bytes"]) for row in rows if row["packets"]} == {2: (3, 6000)}


def test_without_directions_they_are_left_blank() -> None:
    bare = Switch(replace(switch_config(TOPOLOGY, NAME), towards=()))
    assert {row["towards"] for row in port_rows(bare)} == {""}


def test_ports_of_a_lossless_switch_show_their_lossless_classes() -> None:
    topology = replace(Topology.demo(), switch={"forwarding": "ecmp", "lossless": "pfc", "pfc_classes": "3,4"})
    switch = build_switch(switch_config(topology, NAME))
    core = switch.counters()
    for row in port_rows(switch):
        assert row["classes"] == {str(cls): counts for cls, counts in core["pfc"][row["port"]].items()}
        assert list(row["classes"]) == ["3", "4"]
    assert usid_rows(switch) == [], "it forwards by addresses"
    assert all("classes" not in row for row in port_rows(overrun(0)))
