"""P4: the exact headroom loses nothing, and one byte less than what was needed loses a packet."""

import pytest

from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from switchd.core.buffer import NO_HEADROOM
from switchd.core.lossless import LosslessSwitch
from tests.support.roce_hosts import SPORT, HostFabric

SWITCH = "p0-t0-0"


def incast(
    headroom: str, *, senders: int, rate_gbps: int, delay_ns: int, mtu: int, size: int, until: int
) -> HostFabric:
    """Senders against one NIC that takes nothing, so that nothing of what comes can leave.

    It sends to each of them, so that pauses wait for data on the wire.
    """
    topology = Topology(
        planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=senders + 1, evs_per_qp=8, reserve_evs_per_qp=0,
        rate_bps=rate_gbps * 10**9, link_delay_ns=delay_ns, mtu_bytes=mtu,
        switch={
            "forwarding": "ecmp", "lossless": "pfc", "ecn": False, "pfc_threshold": "static",
            "pfc_xoff_bytes": 20 * (mtu + 256), "pfc_headroom": headroom, "buffer_bytes": 64 << 20,
        },
    )  # fmt: skip
    fabric = HostFabric(topology)
    for sender in range(senders):
        fabric.flow(sender, senders, size=size, start_ns=5 * delay_ns + 7 * sender)
        fabric.flow(senders, sender, sport=SPORT + sender, size=size)
    fabric.pause(senders, 1)
    fabric.run(until)
    return fabric


def needed(fabric: HostFabric) -> int:
    switch = fabric.switches[SWITCH]
    assert isinstance(switch, LosslessSwitch)
    return max(switch.buffer.headroom_peak)


@pytest.mark.parametrize("senders", [2, 3, 5])
@pytest.mark.parametrize(
    ("rate_gbps", "delay_ns", "mtu", "size"),
    [
        (100, 1_000, 4096, 4160),
        (100, 100, 4096, 4160),
        (400, 3_000, 4096, 4160),
        (10, 1_000, 1024, 1088),
        (25, 500, 256, 320),
        (100, 1_000, 4096, 300),
    ],
)
def test_the_exact_headroom_loses_nothing_and_one_byte_less_than_needed_does(
    senders: int, rate_gbps: int, delay_ns: int, mtu: int, size: int
) -> None:
    packets_ns = 60 * (mtu + 256) * 8 // rate_gbps
    figures = {
        "senders": senders, "rate_gbps": rate_gbps, "delay_ns": delay_ns, "mtu": mtu, "size": size,
        "until": 20 * delay_ns + packets_ns,
    }  # fmt: skip
    exact = incast("exact", **figures)
    assert exact.drops() == {}
    assert exact.heard, "it did pause"
    switch = exact.switches[SWITCH]
    assert isinstance(switch, LosslessSwitch)
    found, granted = needed(exact), switch.buffer.config.headroom_bytes[0]
    assert found <= granted
    if size > mtu:
        # Not generous either: framing of what is under way, and at most two packets by the phase of the wires.
        under_way = granted // size
        frame = mtu + DATA_PACKET_EXTRA_BYTES + 38
        assert granted - found <= 2 * frame + 38 * under_way
    # Nothing else of the run depends on the headroom, so the same bytes come.
    assert incast(str(found), **figures).drops() == {}
    short = incast(str(found - 1), **figures)
    assert short.drops()[NO_HEADROOM] >= 1


def test_without_any_pause_the_same_traffic_would_need_all_of_the_excess() -> None:
    """A neighbour that does not obey fills its headroom and loses, and the others do not."""
    fabric = incast("exact", senders=3, rate_gbps=100, delay_ns=1_000, mtu=4096, size=4160, until=5_000)
    fabric.host(0).obeys = False
    fabric.run(300_000)
    switch = fabric.switches[SWITCH]
    assert isinstance(switch, LosslessSwitch)
    lost = [switch.buffer.drops[NO_HEADROOM][port * 8 + 3] for port in range(4)]
    assert lost[0] > 10
    assert lost[1:] == [0, 0, 0]
