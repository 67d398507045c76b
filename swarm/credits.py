"""Random fabrics of InfiniBand under watch: `python -m swarm.credits --seeds N`; exit code 1 when one broke a rule.

Owns the draw, the rules of credits, and the end of a run. Every instant of every node is looked at. For each direction
of each link and each VL: what came in is in its buffer or has left it; a packet starts only with credit for all of it;
and as long as no fault has been there, what the sender may send, what is on the link, what is in the buffer and what
was granted and has not been heard make up the whole buffer. Where nothing breaks nothing is lost, and nothing is sent
again but what adaptive routing per packet brings out of order. When all faults are over, all credit comes back.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from mrcfabric.credit_egress import CreditEgress
from mrcfabric.node import Input, Node, Rank, Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from mrcfabric.wire.flow_control import BLOCKS_MAX, MODULUS
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import BLOCK_BYTES, MANAGEMENT_VL, blocks_of
from nicd.core.credit_ports import CreditPorts
from nicd.core.events import STATUS_OK, STATUS_RETRY_EXCEEDED, Completion
from nicd.core.nic import Nic
from orchestrator.faults.fault import Fault, once
from orchestrator.process.job_arguments import count
from orchestrator.sim.fabric import SimulatedFabric
from swarm.draw import one_of
from swarm.invariant import InvariantError
from swarm.watched import Steps, Watched
from switchd.core.credited import CreditSwitch

STREAM: Final = "swarm credits"
STEPS_MAX: Final = 400_000
BEGIN_NS: Final = 2_000
FAULTS_END_NS: Final = 400_000
REST_NS: Final = 30_000_000
"""Longer than all retries and than a few periods in which ports say how things stand."""
_KINDS: Final = (
    "loss", "link_retry", "link_down", "pfc_loss", "rate_limit", "delay", "corruption", "slow_receiver", "pause_storm",
    "switch_reboot", "switch_freeze",
)  # fmt: skip

Way = tuple[str, int]
"""A direction of a link: the sending node and its port."""


class Book:
    """What is on the links of a fabric, in blocks by direction and VL."""

    def __init__(self, topology: Topology, calm: bool) -> None:
        self.calm = calm
        """No fault and no death touches this fabric."""
        self.under_way: Counter[tuple[str, int, int]] = Counter()
        self.peers: dict[Way, Way] = {
            (name, end.port): (end.peer, end.peer_port)
            for name in topology.node_names()
            for end in topology.ports(name)
        }
        self.ports: dict[str, tuple[CreditEgress, ...]] = {}
        """Of the present life of each node."""


class CreditRules:
    """The checks of one node."""

    def __init__(self, name: str, core: Node, book: Book) -> None:
        self._name = name
        self._core = core
        self._book = book
        if isinstance(core, Nic):
            ports = core._board.ports
            assert isinstance(ports, CreditPorts)
            book.ports[name] = tuple(ports._credited)
        else:
            assert isinstance(core, CreditSwitch)
            book.ports[name] = core.egress

    def before(self, inputs: list[Input], at_ns: Instant) -> None:
        """Packets come off their links."""
        for _, rank, port, _, packet in inputs:
            if rank == Rank.FRAME and not isinstance(packet, ControlFrame) and packet[0] >> 4 != MANAGEMENT_VL:
                sender = self._book.peers[self._name, port]
                self._book.under_way[(*sender, packet[0] >> 4)] -= blocks_of(len(packet))

    def after(self, transmits: list[Transmit], events: list[Any], at_ns: Instant) -> None:
        """Raises InvariantError."""
        book, name = self._book, self._name
        for port, _, packet in transmits:
            if not isinstance(packet, ControlFrame) and packet[0] >> 4 != MANAGEMENT_VL:
                book.under_way[name, port, packet[0] >> 4] += blocks_of(len(packet))
        for egress in book.ports[name]:
            for vl in range(egress.config.vls):
                self._inside(at_ns, egress, vl)
                if book.calm:
                    self._whole(at_ns, (name, egress.port), vl)
                    self._whole(at_ns, book.peers[name, egress.port], vl)

    def _broken(self, at_ns: Instant, way: Way, vl: int, what: str) -> InvariantError:
        return InvariantError("credits", way[0], at_ns, f"port {way[1]} VL {vl}: {what}")

    def _inside(self, at_ns: Instant, egress: CreditEgress, vl: int) -> None:
        """Counts stay inside their bounds, and a buffer holds what waits from it."""
        count, way = egress.credits, (self._name, egress.port)
        held, blocks = count.held[vl], count.blocks[vl]
        if not 0 <= held <= blocks:
            raise self._broken(at_ns, way, vl, f"{held} blocks held of {blocks}")
        if count.begun[vl] and (count.limit[vl] - count.sent[vl]) % MODULUS > BLOCKS_MAX:
            raise self._broken(at_ns, way, vl, "more was sent than was granted")
        if isinstance(self._core, CreditSwitch):
            waiting = sum(self._core._waiting.held[egress.port << 4 | vl].values())
            if waiting > held * BLOCK_BYTES or (held > 0) != (waiting > 0):
                raise self._broken(at_ns, way, vl, f"{held} blocks held, {waiting} bytes wait that came in there")

    def _whole(self, at_ns: Instant, way: Way, vl: int) -> None:
        """Credit, what is on the link, what is held and what was granted and not heard make up the buffer."""
        book = self._book
        name, port = book.peers[way]
        if way[0] not in book.ports or name not in book.ports:
            return
        there, here = book.ports[way[0]][way[1]].credits, book.ports[name][port].credits
        if not (there.begun[vl] and here.begun[vl]):
            return
        credit, under_way = (there.limit[vl] - there.sent[vl]) % MODULUS, book.under_way[(*way, vl)]
        unheard = (here.grant(vl) - there.limit[vl]) % MODULUS
        held, blocks = here.held[vl], here.blocks[vl]
        if under_way < 0 or credit + under_way + held + unheard != blocks:
            what = f"{credit} credit + {under_way} on the link + {held} held + {unheard} not heard of, not {blocks}"
            raise self._broken(at_ns, way, vl, what)


class WatchedFabric(SimulatedFabric):
    """Every node with its checks."""

    def __init__(self, topology: Topology, calm: bool, **more: Any) -> None:
        self._book = Book(topology, calm)
        self._steps = Steps(STEPS_MAX)
        super().__init__(topology, **more)

    def _core(self, name: str, start_ns: Instant) -> Node:
        core = super()._core(name, start_ns)
        return Watched(core, [CreditRules(name, core, self._book)], True, self._steps)

    def ports(self) -> Iterator[tuple[str, CreditEgress]]:
        """Of nodes that live."""
        for name, ports in self._book.ports.items():
            for egress in ports if self.simulator.alive(name) else ():
                yield name, egress


def draw(seed: int) -> tuple[Topology, list[Fault]]:
    """The fabric of a seed, and what breaks in it: nothing in every other one."""
    rng = Rng(STREAM, seed)
    planes, t0 = one_of(rng, (1, 1, 2)), one_of(rng, (1, 2, 2, 3))
    mtu = one_of(rng, (256, 1_024, 2_048, 4_096))
    vls = one_of(rng, (1, 2, 2, 4, 15))
    frame = blocks_of(mtu + 46)
    blocks = min(BLOCKS_MAX, frame * one_of(rng, (1, 2, 3, 8, 30)))
    topology = Topology(
        name="credits", planes=planes, t0_per_plane=t0, t1_per_plane=one_of(rng, (1, 2, 3)),
        nics_per_t0=one_of(rng, (1, 2, 3)) if t0 > 1 else one_of(rng, (2, 3)), mtu_bytes=mtu,
        rate_bps=one_of(rng, (10, 25, 100, 400)) * 1_000_000_000, link_delay_ns=one_of(rng, (100, 500, 1_000)),
        evs_per_qp=8 * planes, reserve_evs_per_qp=0, seed=f"{STREAM} {seed}",
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "rc_timeout": 9, "rc_retry_cnt": 7,
             "lid_lmc": rng.below(3), "lid_sl": rng.below(16), "apm": rng.chance(PPM // 3),
             "rc_recovery": one_of(rng, ("go_back_n", "out_of_order"))},
        switch={"forwarding": "lft", "lossless": "credits", "vls": vls, "vl_blocks": blocks,
                "credit_update_blocks": 1 + rng.below(blocks) if rng.chance(PPM // 3) else 1,
                "adaptive": one_of(rng, ("off", "flowlet", "packet")), "flowlet_ns": rng.below(20_000),
                "shield": rng.chance(PPM // 2), "shield_ns": rng.below(20_000), "flfn": rng.chance(PPM // 2),
                "arn_bytes": rng.below(3 * mtu), "arn_ns": 128 + rng.below(20_000)},
    )  # fmt: skip
    if topology.switch["adaptive"] != "off" and rng.chance(PPM // 2):
        topology = replace(topology, switch={**topology.switch, "arn": True})
    faults = [] if seed % 2 == 0 else [_fault(rng, topology, number) for number in range(1 + rng.below(3))]
    return topology, faults


def _fault(rng: Rng, topology: Topology, number: int) -> Fault:
    kind = one_of(rng, _KINDS)
    at_ns = BEGIN_NS + 1 + rng.below(50_000)
    figures: dict[str, Any] = {}
    target = one_of(rng, [link.name for link in topology.links()])
    if kind in ("switch_reboot", "switch_freeze"):
        target = one_of(rng, list(topology.switch_names()))
    elif kind in ("slow_receiver", "pause_storm"):
        target = one_of(rng, list(topology.nic_names()))
        if kind == "pause_storm":
            target += f":{rng.below(topology.planes)}"
        else:
            figures = {"rate_bps": topology.rate_bps // 5, "buffer_bytes": rng.below(20_000)}
    elif kind in ("loss", "corruption", "pfc_loss"):
        figures = {"share_ppm": one_of(rng, (20_000, 200_000, PPM))}
    elif kind == "link_retry":
        figures = {"share_ppm": one_of(rng, (20_000, 200_000)), "retry_ns": one_of(rng, (0, 0, 3_000))}
    elif kind == "rate_limit":
        figures = {"rate_bps": topology.rate_bps // one_of(rng, (2, 10))}
    elif kind == "delay":
        figures = {"delay_ns": 1 + rng.below(5_000), "jitter_ns": rng.below(5_000)}
    until_ns = at_ns + 1_000 + rng.below(FAULTS_END_NS - at_ns - 1_000)
    return once(kind, target, at_ns=at_ns, until_ns=until_ns, fault_id=f"{kind} {number}", **figures)


def work(fabric: SimulatedFabric, seed: int) -> int:
    """Tell NICs to write to one another; returns how many messages there are."""
    rng, topology = Rng(STREAM, seed, "work"), fabric.topology
    names = list(topology.nic_names())
    meet = one_of(rng, names) if rng.chance(PPM // 2) else None
    count = 0
    for number in range(1 + rng.below(6)):
        one = one_of(rng, names)
        other = one_of(rng, [name for name in names if name != one]) if meet in (None, one) else meet
        size = one_of(rng, (1, 3_000, 20_000, 60_000))
        for node, peer, own, theirs in ((one, other, 100, 200), (other, one, 200, 100)):
            region = {"va": 1 << 20, "length": 1 << 17, "region_id": own + number, "r_key": own + number}
            connect = {"qpn": own + number, "peer_index": topology.nic_index(peer), "peer_qpn": theirs + number,
                       "psn_send": own, "psn_receive": theirs}  # fmt: skip
            fabric.command(node, "register_memory", region, BEGIN_NS - 900)
            fabric.command(node, "create_qp", {"qpn": own + number}, BEGIN_NS - 800)
            fabric.command(node, "connect_qp", connect, BEGIN_NS - 700)
            fabric.command(node, "modify_qp", {"qpn": own + number, "state": "rts"}, BEGIN_NS - 600)
        for message in range(1 + rng.below(3)):
            write = {"qpn": 100 + number, "wr_id": message, "local_region": 100 + number, "local_va": 1 << 20,
                     "length": size, "remote_va": 1 << 20, "r_key": 200 + number, "imm": None}  # fmt: skip
            fabric.command(one, "post_write", write, BEGIN_NS + rng.below(40_000))
            count += 1
    return count


def run(seed: int) -> None:
    """One seed to its end. Raises InvariantError."""
    topology, faults = draw(seed)
    done: list[Completion] = []

    def note(_node: str, events: list[Any]) -> None:
        done.extend(event for event in events if isinstance(event, Completion))

    fabric = WatchedFabric(topology, not faults, on_events=note)
    for fault in faults:
        fabric.inject(fault)
    messages = work(fabric, seed)
    fabric.run(FAULTS_END_NS + 1)
    fabric.run(FAULTS_END_NS + REST_NS)
    judge(fabric, done, messages, not faults)


def judge(fabric: WatchedFabric, done: list[Completion], messages: int, calm: bool) -> None:
    """What must hold at the end. Raises InvariantError."""
    now = fabric.now_ns
    statuses = Counter(event.status for event in done)
    if statuses.total() != messages or (calm and statuses.keys() != {STATUS_OK}):
        raise InvariantError("verdict", "fabric", now, f"{messages} messages, ended {dict(statuses)}")
    allowed = {STATUS_OK, STATUS_RETRY_EXCEEDED, "flushed"}
    if not statuses.keys() <= allowed:
        raise InvariantError("verdict", "fabric", now, f"messages ended {dict(statuses)}")
    for name in fabric.topology.switch_names():
        # When all is healed, and notices have been said often enough, nobody goes round anything any more.
        left_out = fabric.counters(name)["notices"]["avoided_lids"] if fabric.simulator.alive(name) else 0
        if left_out:
            raise InvariantError("rest", name, now, f"a way is left out for {left_out} LIDs")
    for name, egress in fabric.ports():
        for vl, blocks in enumerate(egress.credits.blocks):
            found = egress.credits.credit(vl), egress.credits.held[vl]
            if found != (blocks, 0):
                what = f"port {egress.port} VL {vl}: credit {found[0]}, held {found[1]} of {blocks}"
                raise InvariantError("rest", name, now, what)
    if calm:
        _nothing_lost(fabric)


def _nothing_lost(fabric: WatchedFabric) -> None:
    reorders = fabric.topology.switch["adaptive"] == "packet"
    for name in fabric.topology.node_names():
        counters = fabric.counters(name)
        lost = {key: count for key, count in counters["drops"].items() if count and key != "out_of_sequence"}
        for port in counters["ports"].values():
            lost |= {key: count for key, count in port["drops"].items() if count}
        again = sum(counters.get("retransmits", {}).values())
        if lost or (again and not reorders):
            raise InvariantError("lossless", name, fabric.now_ns, f"lost {lost}, {again} packets sent again")


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m swarm.credits", description="Random fabrics of InfiniBand.")
    parser.add_argument("--seeds", type=count, default=20, help="how many seeds (default: 20)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    arguments = parser.parse_args(argv)
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        try:
            run(seed)
        except InvariantError as broken:
            failed += 1
            print(f"FAILED seed {seed}: {broken}", flush=True)
    print(f"{arguments.seeds} seeds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
