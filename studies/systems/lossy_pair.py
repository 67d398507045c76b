"""Two NICs with the RC transport and a wire between them that loses or marks data packets by a rule.

Owns the wire, a node without queues, and the set-up of one QP. The NICs, their ports and the order of time are those
of every emulation. A rule sees the data packets of h000 alone: acknowledgements always arrive.
"""

from collections.abc import Callable
from typing import Any, Final

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.node import Input, Node, Transmit
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, Instant, serialization_ns
from mrcfabric.wire.roce import rc_peeker
from mrcfabric.wire.roce_layout import RC_DATA_OPCODES
from nicd.compose import nic_config
from nicd.core.events import Completion, QpChange
from nicd.core.nic import Nic
from nicd.daemon import NicDaemon

PASS: Final = 0
LOSE: Final = 1
MARK: Final = 2
Rule = Callable[[int, int], int]
"""(how many data packets came before, PSN) -> PASS, LOSE or MARK (congestion experienced)."""
START_NS: Final = 10
"""When the first message is posted."""
HEADERS: Final = 64
"""Bytes of a RoCEv2 packet beside its payload: IPv6, UDP, BTH, ICRC."""
ACK_BYTES: Final = HEADERS + 4
_QPN: Final = 16
_VA: Final = 1 << 20
_CE: Final = 3
_ECN_BYTE: Final = 1
_ECN_SHIFT: Final = 4
"""The two bits of ECN in the second byte of an IPv6 header."""


class _Wire:
    """A cable with a rule in its middle."""

    name = "wire"

    def __init__(self, delay_ns: int, rule: Rule, selective: bool) -> None:
        self.now_ns: Instant = 0
        self.times: list[Instant] = []
        """When each data packet of h000 passed the middle."""
        self._delay_ns = delay_ns
        self._rule = rule
        self._peek = rc_peeker(selective=selective)

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Pass on what came, as the rule says."""
        sent = []
        for at_ns, _, port, _, packet in inputs:
            if port == 0:
                peeked = self._peek(packet)
                if peeked[2] in RC_DATA_OPCODES:
                    fate = self._rule(len(self.times), peeked[4])
                    self.times.append(at_ns)
                    if fate == LOSE:
                        continue
                    if fate == MARK:
                        packet[_ECN_BYTE] |= _CE << _ECN_SHIFT
            sent.append((1 - port, at_ns + self._delay_ns, packet))
        self.now_ns = until
        return sent

    def next_timeout(self) -> Instant | None:
        return None

    def drain_events(self) -> list[Any]:
        return []

    def counters(self) -> dict[str, Any]:
        return {}


class LossyPair:
    """h000 writes to h001 by one QP, PSNs from 0 on."""

    def __init__(
        self, rule: Rule, *, rate_bps: int, delay_ns: int, mtu: int, size: int, **nic: Any
    ) -> None:  # fmt: skip
        """`delay_ns`: one way, over the whole wire; `size`: of the largest message."""
        half_ns = max(1, delay_ns // 2)
        topology = Topology(
            name="pair", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, rate_bps=rate_bps,
            link_delay_ns=max(100, half_ns), mtu_bytes=mtu, evs_per_qp=8, reserve_evs_per_qp=0,
            nic={"transport": "rc", **nic}, dscp={"control": 48},
        )  # fmt: skip
        self.half_ns = topology.link_delay_ns
        self.rate_bps = rate_bps
        self.mtu = mtu
        self.done: list[Completion] = []
        self.errors: list[QpChange] = []
        self.wire = _Wire(self.half_ns, rule, nic.get("rc_recovery") == "selective")
        self.sender, self.receiver = (Nic(nic_config(topology, name)) for name in ("h000", "h001"))
        nodes: dict[str, Node] = {"h000": self.sender, "wire": self.wire, "h001": self.receiver}
        links = {("h000", 0): ("wire", 0), ("wire", 0): ("h000", 0), ("wire", 1): ("h001", 0), ("h001", 0): ("wire", 1)}
        self._simulator = Simulator(nodes, links, window_ns=self.half_ns, on_events=self._note)
        self._tokens = 0
        for place, name in enumerate(("h000", "h001")):
            region = {"va": _VA, "length": size, "region_id": 1, "r_key": 1}
            ends = {"qpn": _QPN, "peer_index": 1 - place, "peer_qpn": _QPN, "psn_send": 0, "psn_receive": 0}
            self._command(name, "register_memory", region, 1)
            self._command(name, "create_qp", {"qpn": _QPN}, 2)
            self._command(name, "connect_qp", ends, 3)
            self._command(name, "modify_qp", {"qpn": _QPN, "state": "rts"}, 4)

    def write(self, length: int, at_ns: Instant = START_NS) -> None:
        """Post a message."""
        work = {"qpn": _QPN, "wr_id": self._tokens, "local_region": 1, "local_va": _VA, "length": length,
                "remote_va": _VA, "r_key": 1}  # fmt: skip
        self._command("h000", "post_write", work, at_ns)

    def run(self, until_ns: Instant) -> None:
        """Everything up to `until_ns`."""
        self._simulator.run(until_ns)

    def finish(self, messages: int, limit_ns: Instant) -> Instant:
        """Run until so many messages are done; when the last one was. RuntimeError beyond `limit_ns`."""
        step = 1_000_000
        while len(self.done) < messages:
            if self._simulator.now_ns >= limit_ns or self.errors:
                raise RuntimeError(f"{len(self.done)} of {messages} messages done")
            self.run(min(limit_ns, self._simulator.now_ns + step))
            step *= 2
        return self.done[messages - 1].at_ns

    def packet_ns(self) -> float:
        """A full packet's time on the wire."""
        return (self.mtu + HEADERS + OVERHEAD_BYTES) * 8 * NS_PER_S / self.rate_bps

    def round_ns(self) -> float:
        """From a packet's start until its acknowledgement is back."""
        return self.packet_ns() + serialization_ns(ACK_BYTES + OVERHEAD_BYTES, self.rate_bps) + 4 * self.half_ns

    @property
    def now_ns(self) -> Instant:
        """Everything up to here has happened."""
        return self._simulator.now_ns

    def row(self) -> dict[str, Any]:
        """The sender's QP."""
        return next(row for row in self.sender.qp_table() if row["qpn"] == _QPN)

    def rc(self, name: str) -> int:
        """One of the sender's counters of RC."""
        return int(self.sender.counters()["rc"][name])

    def _command(self, node: str, op: str, args: dict[str, Any], at_ns: Instant) -> None:
        self._tokens += 1
        self._simulator.command(node, at_ns, NicDaemon.commands.build(op, args, self._tokens))

    def _note(self, node: str, events: list[Any]) -> None:
        for event in events:
            if isinstance(event, Completion) and node == "h000":
                self.done.append(event)
            elif isinstance(event, QpChange) and event.target == "error":
                self.errors.append(event)
            elif getattr(event, "error", None):
                raise RuntimeError(f"{node}: {event.error}")
