"""One switch on an operator's test bench: real MRC packets in at chosen instants, what left each port, the counters.

    bench = SwitchBench()
    bench.fill(UPLINK)                     # as much data at once as the queue holds
    bench.offer(UPLINK, 3)                 # three packets more
    bench.run()
    assert bench.row(UPLINK)["data"]["trimmed"] == 3

The switch is a T0 of the demonstration's topology: ports 0 to 3 lead to NICs, 4 to 7 to T1s, 100 Gb/s each. Every data
packet has its own PSN, in the order of the offers. What a switch must do is the tests'; this only builds and asks.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.topology import Topology
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.dscp import ECT_0, NOT_ECT, dscp_of, ecn_of
from mrcfabric.wire.layout import WRITE_MIDDLE
from mrcfabric.wire.packet import dissect
from mrcfabric.wire.templates import ControlTemplate, DataTemplate
from mrcfabric.wire.usid import build
from switchd.compose import switch_config
from switchd.core.switch import Switch
from switchd.rows import port_row

NAME: Final = "p0-t0-0"
DOWNLINK, UPLINK = 1, 5
"""A port towards a NIC, one towards a T1."""
AT_NS: Final = 10
PAYLOAD: Final = 4096
_BODY: Final = bytes(range(256))
_SETTLE_NS: Final = 1_000_000_000


class SwitchBench:
    """One switch, its inputs so far, and what it sent."""

    def __init__(
        self,
        *,
        topology: Topology | None = None,
        seed: str = "bench",
        port: Mapping[int, Mapping[str, Any]] | None = None,
        **switch: Any,
    ) -> None:
        """`switch`: settings of the switch; `port`: settings of single ports."""
        special = {
            f"{NAME}.{number}.{knob}": value for number, own in (port or {}).items() for knob, value in own.items()
        }
        self.topology = replace(topology or Topology.demo(), seed=seed, switch=switch | special)
        self.config = switch_config(self.topology, NAME)
        self.switch = Switch(self.config)
        self.dscp = self.config.dscp
        self.bdp_bytes = self.topology.plane_bdp_bytes
        self.sent: list[Transmit] = []
        self.offered: list[bytes] = []
        """Every packet as it came in."""
        self._inputs: list[Input] = []
        self._psn = 0
        self._templates = {
            (trimmable, capable): DataTemplate(
                nic_address(0), nic_address(9), 17, dscp=self.dscp, trimmable=trimmable,
                ecn=ECT_0 if capable else NOT_ECT, ts=True,
            )
            for trimmable in (True, False) for capable in (True, False)
        }  # fmt: skip
        self._usid = {port: usid for usid, port in self.config.fib.items()}

    # -- building

    def data(self, port: int, *, payload: int = PAYLOAD, kind: str = "new", capable: bool = True) -> bytearray:
        """A WRITE that leaves by `port`; `kind`: `new`, `retx`, or `no_trim` for a class that must not be trimmed."""
        template = self._templates[kind != "no_trim", capable]
        self._psn += 1
        body = (_BODY * (payload // len(_BODY) + 1))[:payload]
        return template.build(
            WRITE_MIDDLE, self._psn - 1, 0, 0, 0, 1, 1 << 20, 0x1234, self._outer(port), body, rtx=kind == "retx"
        )

    def acknowledgement(self, port: int) -> bytearray:
        """A transport ACK, of the control class."""
        template = ControlTemplate(nic_address(0), nic_address(9), 17, 16, dscp=self.dscp)
        return template.acknowledge(0x1234, self._outer(port), 5, 0x1F, 1)

    def _outer(self, port: int) -> bytes:
        return build(self.config.block, (self.config.usid, self._usid[port], 0x7001))

    # -- the script

    def take(self, packet: bytearray, at_ns: int = AT_NS) -> None:
        """A packet arrives."""
        self.offered.append(bytes(packet))
        self._inputs.append(Input(at_ns, Rank.FRAME, 0, len(self.offered), packet))

    def offer(self, port: int, count: int = 1, *, at_ns: int = AT_NS, gap_ns: int = 0, **packet: Any) -> None:
        """Data packets for `port`, at once or with a gap; `packet` as for `data`."""
        for number in range(count):
            self.take(self.data(port, **packet), at_ns + number * gap_ns)

    def acknowledge(self, port: int, count: int = 1, *, at_ns: int = AT_NS, gap_ns: int = 0) -> None:
        """Control packets for `port`."""
        for number in range(count):
            self.take(self.acknowledgement(port), at_ns + number * gap_ns)

    def fits(self, port: int, **packet: Any) -> int:
        """How many data packets the port's queue holds."""
        psn, size = self._psn, len(self.data(port, **packet))
        self._psn = psn
        return self.config.ports[port].data_bytes_max // size

    def fill(self, port: int, *, at_ns: int = AT_NS, **packet: Any) -> int:
        """As many data packets at once as the port's queue holds; returns how many."""
        count = self.fits(port, **packet)
        self.offer(port, count, at_ns=at_ns, **packet)
        return count

    def command(self, command: Any, at_ns: int = AT_NS) -> None:
        """A command of the core."""
        self._inputs.append(Input(at_ns, Rank.COMMAND, 0, len(self._inputs), command))

    def run(self, until: int | None = None) -> None:
        """Everything up to and including `until`; without it until the switch is empty."""
        inputs = sorted(self._inputs, key=lambda entry: entry[:4])
        last = inputs[-1].at_ns if inputs else self.switch.now_ns
        end = last + _SETTLE_NS if until is None else until
        self._inputs = [entry for entry in inputs if entry.at_ns > end]
        self.sent += self.switch.advance([entry for entry in inputs if entry.at_ns <= end], end)

    # -- what came of it

    def out(self, port: int, *dscps: int) -> list[bytes]:
        """What left a port, in order; with code points only packets that have one of them."""
        packets = [bytes(entry[2]) for entry in self.sent if entry[0] == port]
        return [packet for packet in packets if not dscps or dscp_of(packet) in dscps]

    def row(self, port: int) -> dict[str, Any]:
        """The port's row as an operator sees it."""
        return port_row(self.switch.egress[port])

    @property
    def counters(self) -> dict[str, Any]:
        return self.switch.counters()

    @property
    def drops(self) -> dict[str, int]:
        """Drops of the switch by reason, reasons without any left out."""
        return {reason: count for reason, count in self.counters["drops"].items() if count}


def psn_of(packet: bytes) -> int:
    """The PSN of a packet, trimmed or not."""
    found, reason = dissect(packet, trimmed_ok=True)
    assert reason is None, reason
    return int(found.get(Bth).psn)


def marks_of(packets: list[bytes]) -> list[bool]:
    """Which of them are marked CE."""
    return [ecn_of(packet) == 3 for packet in packets]
