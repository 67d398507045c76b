"""A switch of the size that the large fabrics are built from: 256 ports down, 256 up."""

import pytest

from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.wire.usid import build
from switchd.compose import switch_config
from switchd.core.switch import Switch

# The paper's plane: 512 T0s, 256 T1s, 131,072 NICs.
TOPOLOGY = Topology(
    planes=8, t0_per_plane=512, t1_per_plane=256, nics_per_t0=256, evs_per_qp=128, reserve_evs_per_qp=32
)
PORTS = 512
PACKET_BYTES = 300


@pytest.fixture(scope="module", params=["p7-t0-511", "p0-t1-255"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def packets(switch: Switch) -> dict[int, bytes]:
    """Port -> a packet that leaves by it."""
    config = switch.config
    head = (6 << 12 | config.dscp.trimmable << 6 | 2 << 4).to_bytes(2, "big") + bytes(4) + bytes([41, 64]) + bytes(16)
    return {
        port: head + build(config.block, (config.usid, usid)) + bytes(PACKET_BYTES - 40)
        for usid, port in config.fib.items()
    }


def test_every_port_has_its_packets_and_nobody_elses(name: str) -> None:
    switch = Switch(switch_config(TOPOLOGY, name))
    bodies = packets(switch)
    assert sorted(bodies) == list(range(PORTS))
    frames = [
        Input(10 + turn, Rank.FRAME, (port * 7) % PORTS, turn * PORTS + port, bytearray(bodies[port]))
        for turn in range(3)
        for port in range(PORTS)
    ]
    out = switch.advance(sorted(frames), 10_000)
    assert len(out) == 3 * PORTS
    for transmit in out:
        assert transmit[2][40:] == bodies[transmit[0]][40:]
        assert transmit[2][28:30] == bodies[transmit[0]][30:32]
    counters = switch.counters()
    assert {port: figures["packets"] for port, figures in counters["ports"].items()} == dict.fromkeys(range(PORTS), 3)
    assert len(counters["usids"]) == PORTS
    assert all(entry == {"packets": 3, "bytes": 3 * PACKET_BYTES} for entry in counters["usids"].values())
    assert switch.next_timeout() is None


def test_only_ports_with_packets_are_looked_at(name: str) -> None:
    """What a call costs follows the ports that have something waiting, not the ports there are."""
    switch = Switch(switch_config(TOPOLOGY, name))
    body = packets(switch)[200]
    switch.advance([Input(10, Rank.FRAME, 0, number, bytearray(body)) for number in range(3)], 10)
    assert [door.port for door in switch.busy] == [200]
    assert switch.next_timeout() == switch.egress[200].busy_until
    switch.advance([], 10_000)
    assert switch.busy == ()
