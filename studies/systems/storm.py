"""A fabric in which one NIC pauses its switch for ever: the storm of PFC, and the slowest receiver there can be.

Owns that node, which takes nothing and sends pause frames, and the set-up of QPs of the other NICs. They may send to
the storm too: nothing comes back.
"""

from typing import Any, Final

from mrcfabric.naming import nic_name, port_mac
from mrcfabric.node import Input, Node, Transmit
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant
from mrcfabric.wire.pfc import QUANTA_MAX, encode
from orchestrator.sim.fabric import SimulatedFabric
from switchd.core.headroom import PFC_WIRE_BYTES

DATA_CLASS: Final = 3
_VA: Final = 1 << 20
_SIZE: Final = 1 << 20
_REPEAT_NS: Final = 50_000
"""A pause lasts longer at 100 Gb/s: 335 us."""


class Storm:
    """A NIC that stopped taking packets, and says so."""

    def __init__(self, name: str, rate_bps: int, delay_ns: int, start_ns: Instant) -> None:
        self.name = name
        self.now_ns: Instant = 0
        self._next_ns = start_ns
        self._way_ns = delay_ns + pause_ns(rate_bps)
        self._frame = encode(port_mac(name, 0), {DATA_CLASS: QUANTA_MAX})

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Swallow what comes, and pause again and again."""
        sent: list[Transmit] = []
        while self._next_ns <= until:
            sent.append((0, self._next_ns + self._way_ns, self._frame))
            self._next_ns += _REPEAT_NS
        self.now_ns = until
        return sent

    def next_timeout(self) -> Instant | None:
        return self._next_ns

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return {}


def pause_ns(rate_bps: int) -> int:
    """A PFC frame's time on the wire."""
    return -(-PFC_WIRE_BYTES * 8 * NS_PER_S // rate_bps)


class StormFabric(SimulatedFabric):
    """A fabric whose NIC `storm` pauses from `start_ns` on."""

    def __init__(self, topology: Topology, storm: int, start_ns: Instant) -> None:
        self._storm = nic_name(storm)
        self._start_ns = start_ns
        self._qpn = 16
        super().__init__(topology)
        for name in topology.nic_names():
            if name != self._storm:
                region = {"va": _VA, "length": _SIZE, "region_id": 1, "r_key": 1}
                self.command(name, "register_memory", region, 1)

    def _core(self, name: str, start_ns: Instant) -> Node:
        if name != self._storm:
            return super()._core(name, start_ns)
        end = self.topology.ports(name)[0]
        return Storm(name, end.rate_bps, end.delay_ns, self._start_ns)

    def send(self, source: int, target: int, messages: int, at_ns: Instant) -> None:
        """Messages of a MiB from one NIC to another, by a QP of their own."""
        qpn = self._qpn
        self._qpn += 1
        for nic, peer in ((source, target), (target, source)):
            name = nic_name(nic)
            if name != self._storm:
                ends = {"qpn": qpn, "peer_index": peer, "peer_qpn": qpn, "psn_send": 0, "psn_receive": 0}
                self.command(name, "create_qp", {"qpn": qpn}, at_ns - 3)
                self.command(name, "connect_qp", ends, at_ns - 2)
                self.command(name, "modify_qp", {"qpn": qpn, "state": "rts"}, at_ns - 1)
        work = {
            "qpn": qpn,
            "wr_id": 0,
            "local_region": 1,
            "local_va": _VA,
            "length": _SIZE,
            "remote_va": _VA,
            "r_key": 1,
        }
        for _ in range(messages):
            self.command(nic_name(source), "post_write", work, at_ns)

    def pauses(self, switch: str, port: int) -> dict[str, int]:
        """What a switch counts of the class of data on one of its ports."""
        counts: dict[str, int] = self.counters(switch)["pfc"][port][DATA_CLASS]
        return counts
