"""One switch on one CPU: the T0 of the demo's topology under its real driver, from four down-links to four up-links.

Everything between the sockets is the product's own: the page is read, trains are taken, stamps decide, the core
forwards with queues, ECN and hop limits, trains go out, the horizon is published. Packets are real MRC packets, 4096
bytes of payload with ICRC, at line rate in fabric time, spread evenly over the up-links. The neighbours are the rig's:
they publish counts and horizons into the page as daemons would.

`pps_trainN` leaves 15 frames waiting at each of four ports, having come in trains of N. `pps_step` is the hard case
of a running fabric, where links of 1 us allow a turn no more than 1 us of fabric time: three frames per port and turn.
`core_pps` is the core alone, without any I/O.
"""

import os
from functools import partial
from typing import Any

from bench.machine import pin_to_one_cpu
from bench.measure import repeat, rounded
from bench.reference import FRAMES_PER_TURN, RUN_S, RUNS, TRAINS
from bench.rig import Rig, rate
from mrcfabric.clock import ClockPage
from mrcfabric.link_port import LinkEnd
from mrcfabric.naming import nic_address, t0_name
from mrcfabric.node import Input, Rank
from mrcfabric.paths import PathTable, ev_of
from mrcfabric.runner import Runner
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Topology
from mrcfabric.units import NEVER, serialization_ns
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import WRITE_MIDDLE
from mrcfabric.wire.link import link_frame, link_stamp
from mrcfabric.wire.templates import DataTemplate
from switchd.compose import switch_config
from switchd.core.switch import Switch

FRAMES_PER_STEP = 3
_TAG = 0xBE7C


class Traffic:
    """What the four NICs below one T0 send to the NICs below another, in plane 0, at line rate."""

    def __init__(self, topology: Topology, frames: int) -> None:
        self.ports = topology.nics_per_t0
        self.frames = frames
        # A packet of the size on the wire every so often, per port.
        self.gap_ns = serialization_ns(topology.mtu_bytes + DATA_PACKET_EXTRA_BYTES + 38, topology.rate_bps)
        self._packets = [
            [self._packet(topology, port, number) for number in range(frames)] for port in range(self.ports)
        ]

    def _packet(self, topology: Topology, nic: int, number: int) -> bytes:
        peer = topology.nics_per_t0 + nic
        uplink = (nic + number) % topology.t1_per_plane
        ev = ev_of(0, uplink, number)
        template = DataTemplate(nic_address(nic), nic_address(peer), 17, dscp=Dscp(), ts=True)
        outer = PathTable(topology, nic).towards(peer).path(ev).outer
        payload = os.urandom(topology.mtu_bytes)
        return bytes(template.build(WRITE_MIDDLE, number, 0, 0, 4096 * number, 1, 1 << 20, ev, outer, payload))

    def turn_ns(self) -> int:
        """Fabric time that one turn's frames take on a port."""
        return self.frames * self.gap_ns

    def inputs(self, since_ns: int) -> list[Input]:
        """One turn's frames of all ports as a core gets them, in fresh buffers."""
        arrivals = [
            Input(since_ns + 1 + number * self.gap_ns + port, Rank.FRAME, port, since_ns + number, bytearray(packet))
            for port, packets in enumerate(self._packets)
            for number, packet in enumerate(packets)
        ]
        return sorted(arrivals)

    def frames_of(self, port: int, since_ns: int, sent: int) -> list[bytes]:
        """One turn's frames of one port as they stand on the cable: link header, then packet."""
        return [
            link_frame(since_ns + 1 + number * self.gap_ns + port, sent + number + 1, link_stamp(0, 0, _TAG), packet)
            for number, packet in enumerate(self._packets[port])
        ]


class Hop:
    """A switch under its driver, with the rig for neighbours. `fill`, `tick`, `drain` are what `rig.rate` wants."""

    def __init__(self, topology: Topology, traffic: Traffic, train: int) -> None:
        name = t0_name(0, 0)
        links = topology.ports(name)
        self._traffic = traffic
        self._train = train
        self._page = ClockPage.create([[(1 + link.port, 0) for link in links], *([(0, link.port)] for link in links)])
        self._page.wake()
        self._rig = Rig(len(links))
        ends = [
            LinkEnd(link.port, near, far, 1 + link.port, 0, link.delay_ns, tag=_TAG, peer_tag=_TAG)
            for link, (near, far) in zip(links, self._rig.ends, strict=True)
        ]
        self._doorbell = os.eventfd(0)
        self._drive = Runner(self._page, self._doorbell).add(Switch(switch_config(topology, name)), 0, ends)
        self._delay_ns = topology.link_delay_ns
        self._fabric_ns = self._sent = 0
        self.drain = self._rig.drain

    def fill(self) -> int:
        """One turn of traffic into the sockets, then the neighbours' counts and horizons into the page."""
        traffic, words = self._traffic, self._page.words
        since_ns = self._fabric_ns
        for port in range(traffic.ports):
            self._rig.feed(port, traffic.frames_of(port, since_ns, self._sent), self._train)
            words[self._page.sent_word(1 + port, 0)] = self._sent + traffic.frames
        self._sent += traffic.frames
        self._fabric_ns = since_ns + traffic.turn_ns()
        for node in range(1, self._page.nodes):
            words[self._page.horizon_word(node)] = self._fabric_ns - self._delay_ns
        return traffic.ports * traffic.frames

    def tick(self) -> None:
        moved = self._drive.tick(NEVER, 1)
        assert moved, "the neighbours have published enough for a full step"

    def close(self) -> None:
        self._drive.close()
        self._rig.close()
        os.close(self._doorbell)
        self._page.close()


def hop_rate(train: int, frames: int, seconds: float) -> float:
    """Frames per CPU second of the switch with its I/O; each turn finds `frames` per port, in trains of `train`."""
    topology = Topology.demo()
    hop = Hop(topology, Traffic(topology, frames), train)
    try:
        return rate(seconds, hop.fill, hop.tick, hop.drain)
    finally:
        hop.close()


def core_rate(seconds: float) -> float:
    """Packets per CPU second of the core alone, in turns of the same size."""
    topology = Topology.demo()
    traffic = Traffic(topology, FRAMES_PER_TURN)
    switch = Switch(switch_config(topology, t0_name(0, 0)))
    inputs: list[Input] = []
    out = 0

    def fill() -> int:
        inputs[:] = traffic.inputs(switch.now_ns)
        return len(inputs)

    def turn() -> None:
        nonlocal out
        out = len(switch.advance(inputs, switch.now_ns + traffic.turn_ns()))

    return rate(seconds, fill, turn, lambda: out)


def run() -> dict[str, Any]:
    """Section `hop`: the switch at each length of train, at single steps, and its core alone."""
    pin_to_one_cpu()
    wanted = {f"pps_train{train}": partial(hop_rate, train, FRAMES_PER_TURN, RUN_S) for train in TRAINS}
    wanted["pps_step"] = partial(hop_rate, FRAMES_PER_STEP, FRAMES_PER_STEP, RUN_S)
    wanted["core_pps"] = partial(core_rate, RUN_S)
    figures = {name: repeat(RUNS, measure) for name, measure in wanted.items()}
    result: dict[str, Any] = {name: rounded(figure.median) for name, figure in figures.items()}
    result["egress_ports"] = Topology.demo().t1_per_plane
    result["detail"] = {name: figure.record() for name, figure in figures.items()}
    return result
