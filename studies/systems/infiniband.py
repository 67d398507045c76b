"""Rows I1 to I6, and P1 and G4 on InfiniBand: credits, tables by LID, repair, credits that get lost, adaptive routing.

C is the rate of a link. NICs run RC with one service level; what another VL is worth is shown by the tests of switches,
whose hosts have no transport.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mrcfabric.credit_egress_config import DELIMITER_BYTES
from mrcfabric.lids import nic_of
from mrcfabric.naming import nic_name
from mrcfabric.rng import Rng
from mrcfabric.topology import Setting, Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import Instant, serialization_ns
from mrcfabric.vl_settings import life_ns
from mrcfabric.wire.flow_control import FLOW_CONTROL_BYTES
from mrcfabric.wire.lrh import LEAST, blocks_of
from nicd.core.events import Completion, SubnetSwept
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import START_NS, Flow
from studies.systems.bench_fabric import fabric, measure
from studies.systems.max_min import max_min
from studies.systems.ring_fabric import RingFabric
from studies.systems.row import Finding, Row, at_least, at_most, near, seen

_US: Final = 1_000
_MS: Final = 1_000_000
_VA: Final = 1 << 20
_ANY_ORDER: Final = "out_of_order"
_PATIENT: Final[Mapping[str, Setting]] = {"rc_timeout": 0}
"""No retransmission by time: what waits for credit waits."""


class Loop(NamedTuple):
    """One point of I1."""

    packets: int
    """That the buffer holds."""
    delay_ns: int


class Victims(NamedTuple):
    """One point of I2 and P1."""

    local: int
    remote: int


class Death(NamedTuple):
    """One point of I4."""

    how: str
    """`shield`, `manager` or `nothing`."""
    figure: int
    """How long SHIELD takes, or a manager over each answer, in nanoseconds; the exponent of the time-out."""


class Life(NamedTuple):
    """One point of I5: switches in a ring, and how old a packet may grow, as an exponent; 0: credits are lost."""

    switches: int
    exponent: int


def _ib(seed: str, nics: int, uplinks: int, nic: Any = None, switch: Any = None, **more: Any) -> Topology:
    made = with_system(fabric(seed, nics, uplinks, **more), "ib")
    return replace(made, nic={**made.nic, **(nic or {})}, switch={**made.switch, **(switch or {})})


def _packet_bytes(topology: Topology) -> int:
    return topology.mtu_bytes + LEAST


def measure_loop(point: Loop) -> Sequence[Finding]:
    """I1: a buffer of so many packets on links of so much delay, one flow between two NICs below one T0."""
    plain = _ib("i1", 2, 1, nic=_PATIENT, link_delay_ns=point.delay_ns)
    size = _packet_bytes(plain)
    blocks = point.packets * blocks_of(size)
    topology = replace(plain, switch={**plain.switch, "vl_blocks": blocks})
    packet_ns = serialization_ns(size + DELIMITER_BYTES, topology.rate_bps)
    grant_ns = serialization_ns(FLOW_CONTROL_BYTES + DELIMITER_BYTES, topology.rate_bps)
    # From the start of a packet until its credit is back: it comes, it starts on its way out, its grant returns.
    loops = [packet_ns + end.delay_ns + grant_ns + end.incoming_delay_ns for end in topology.ports(nic_name(0))]
    wanted = min(1.0, point.packets * packet_ns / max(loops))
    found = measure(topology, (Flow(0, 1, 1),), 200 * _US, 1_200 * _US)
    at = f"{blocks} blocks, loop {max(loops):,} ns"
    return (near(f"{at}: share of the line", wanted, found.shares[0], 0.02),)


def measure_bystander(point: Victims) -> Sequence[Finding]:
    """I2, and P1 over credits: a bystander on the up-link of an incast, on the same VL."""
    below = max(point.remote + 1, point.local + 2)
    topology = _ib("i2", below, 1, nic=_PATIENT, switch={"vl_blocks": 512})
    flows = [Flow(below + 2 + number, below, 1, group="local") for number in range(point.local)]
    flows += [Flow(number, below, 1, group="remote") for number in range(point.remote)]
    flows.append(Flow(point.remote, below + 1, 1, group="bystander"))
    found = measure(topology, flows, 500 * _US, 1_300 * _US)
    victim = 1 / ((point.local + 1) * point.remote)
    at = f"k {point.local}, m {point.remote}"
    lost = sum(found.outcome.drops.values()) + found.outcome.resent
    return (
        near(f"{at}: bystander", min(victim, 1 / (point.remote + 1)), found.group("bystander")[0], 0.15),
        near(f"{at}: each remote flow", victim, sum(found.group("remote")) / point.remote, 0.15),
        near(f"{at}: each local flow", 1 / (point.local + 1), sum(found.group("local")) / point.local, 0.15),
        near(f"{at}: packets lost or sent again", 0.0, float(lost), 0.0, 0),
    )


def _table_rates(topology: Topology, flows: Sequence[Flow]) -> list[float]:
    """Max-min rates over the up-links that the tables name: the T1 of a LID is its number modulo theirs."""
    spines, below = topology.t1_per_plane, topology.nics_per_t0
    ways = []
    for flow in flows:
        lid = flow.target + 1
        spine = nic_of(lid, 0) % spines
        ways.append((("up", flow.source // below, spine), ("down", spine, flow.target // below)))
    return max_min(ways, {})


def measure_tables(seeds: int) -> Sequence[Finding]:
    """I3: a shift and drawn permutations under tables."""
    size = 8
    topology = _ib("i3", size, size)
    shift = [Flow(number, size + number, 1) for number in range(size)]
    slowest = min(measure(topology, shift, 100 * _US, 400 * _US).shares)
    found = [at_least("a shift, 8 to 8: its slowest flow", 0.97, slowest)]
    ours = wanted = 0.0
    for seed in range(seeds):
        topology, flows = _drawn(seed)
        fair = _table_rates(topology, flows)
        got = measure(topology, flows, 150 * _US, 450 * _US).shares
        ours, wanted = ours + sum(got) / len(got) / seeds, wanted + sum(fair) / len(fair) / seeds
    at = f"drawn permutations of 12 NICs below three T0s, 4 up-links, {seeds} seeds: mean share"
    return [*found, near(at, wanted, ours, 0.1)]


def _drawn(seed: int, **switch: Setting) -> tuple[Topology, list[Flow]]:
    """Every NIC sends to one below another T0, and receives from one."""
    topology = _ib(f"drawn-{seed}", 4, 4, switch=switch, t0_per_plane=3)
    rng, targets = Rng("systems", "infiniband", seed), list(range(12))
    while any(number // 4 == target // 4 for number, target in enumerate(targets)):
        rng.shuffle(targets)
    return topology, [Flow(number, target, 1) for number, target in enumerate(targets)]


class _Cut:
    """One NIC writes to another while the cable of its table's up-link is cut."""

    def __init__(self, nic: Mapping[str, Any], switch: Mapping[str, Any], size: int, cut_ns: Instant) -> None:
        self.topology = _ib("i4", 1, 2, nic=nic, switch=switch)
        self.done: list[Completion] = []
        self.sweeps: list[SubnetSwept] = []
        self.fabric = SimulatedFabric(self.topology, on_events=self._note)
        # LID 2 is NIC 1: the up-link that is its number modulo theirs.
        self.fabric.inject(once("link_down", "p0-t0-0~p0-t1-1", at_ns=cut_ns))
        for node, peer in ((0, 1), (1, 0)):
            name = nic_name(node)
            connect = {"qpn": 16, "peer_index": peer, "peer_qpn": 16, "psn_send": 0, "psn_receive": 0}
            self.fabric.command(name, "register_memory", {"va": _VA, "length": size, "region_id": 1, "r_key": 1}, 1)
            self.fabric.command(name, "create_qp", {"qpn": 16}, 2)
            self.fabric.command(name, "connect_qp", connect, 3)
            self.fabric.command(name, "modify_qp", {"qpn": 16, "state": "rts"}, 4)

    def write(self, size: int, at_ns: Instant) -> None:
        work = {"qpn": 16, "wr_id": 0, "local_region": 1, "local_va": _VA, "length": size, "remote_va": _VA, "r_key": 1,
                "imm": None}  # fmt: skip
        self.fabric.command(nic_name(0), "post_write", work, at_ns)

    def _note(self, _node: str, events: list[Any]) -> None:
        self.done += [event for event in events if isinstance(event, Completion)]
        self.sweeps += [event for event in events if isinstance(event, SubnetSwept)]

    def lost(self) -> int:
        return sum(sum(port["drops"].values()) for port in self.fabric.counters("p0-t0-0")["ports"].values())


def measure_death(point: Death) -> Sequence[Finding]:
    """I4 and G4: a cable of the path is cut."""
    size = 4 << 20
    if point.how == "shield":
        cut_ns = START_NS + 100 * _US
        run = _Cut(_PATIENT, {"shield": True, "shield_ns": point.figure}, size, cut_ns)
        run.write(size, START_NS)
        run.fabric.run(2 * _MS)
        packet_ns = serialization_ns(_packet_bytes(run.topology) + DELIMITER_BYTES, run.topology.rate_bps)
        at = f"SHIELD after {point.figure:,} ns"
        return (at_most(f"{at}: packets lost on the dead link", point.figure / packet_ns + 2, float(run.lost()), 0),)
    if point.how == "manager":
        cut_ns = 20 * _MS
        nic = {"rc_timeout": 12, "sm_nics": 1, "sm_timeout_ns": 2 * _MS}
        run = _Cut(nic, {"shield": False, "flfn": False, "routing": "sm"}, size, cut_ns)
        run.write(4096, cut_ns + 1)
        run.fabric.run(400 * _MS)
        first = next(one for one in run.sweeps if one.at_ns > cut_ns)
        try_ns = life_ns(12)
        back_ns = first.at_ns - cut_ns
        # The first try that leaves after the tables are written.
        wanted = float(-(-back_ns // try_ns) * try_ns)
        return (
            # Who is behind the dead link is asked by both of its ends, four times each, two at once.
            near("tables without the dead link, ms after it", 4 * 2.0, back_ns / _MS, 0.05, 2),
            near("the write that was lost completes, ms", wanted / _MS, (run.done[0].at_ns - cut_ns) / _MS, 0.02, 2),
        )
    run = _Cut({"rc_timeout": point.figure, "rc_retry_cnt": 7}, {"shield": False, "flfn": False}, size, 1_000)
    run.write(1_000, START_NS)
    run.fabric.run(START_NS + 9 * life_ns(point.figure) + _MS)
    took = run.done[0].at_ns - START_NS
    at = f"nobody repairs, n {point.figure}: QP error, ns after the post ({run.done[0].status})"
    return (near(at, 8.0 * life_ns(point.figure), float(took), 2_000 / (8 * life_ns(point.figure)), 0),)


def measure_life(point: Life) -> Sequence[Finding]:
    """I5: a ring that waits for itself, until packets have grown too old; and credits that were lost."""
    if not point.exponent:
        return _lost_credits()
    switch = {**_ib("i5", 1, 1).switch, "vl_blocks": 130, "head_life": point.exponent, "head_life_nic": point.exponent,
              "vl_stall_count": 7}  # fmt: skip
    ring = RingFabric(point.switches, nic={**_ib("i5", 1, 1).nic, **_PATIENT}, switch=switch, dscp={})
    ring.start(1, START_NS, 0)
    still = ring.run(START_NS + 200 * _US)
    later = again = ring.run(START_NS + 250 * _US)
    life = life_ns(point.exponent)
    while not ring.run(again.at_ns).dropped and again.at_ns < START_NS + 2 * life + 10 * _MS:
        again = ring.run(again.at_ns + max(_US, life // 2_000))
    at, first_ns = f"{point.switches} switches, life {life:,} ns", float(again.at_ns - START_NS)
    return (
        near(f"{at}: bytes placed while it stands still", 0.0, float(later.placed - still.placed), 0.0, 0),
        near(f"{at}: first drop, ns after the start", float(life), first_ns, 0.02 + 200 * _US / life, 0),
    )


def _lost_credits() -> Sequence[Finding]:
    """Packets and flow control packets are lost for a while; afterwards all credit is there again."""
    topology = _ib("i5", 2, 1, nic={"rc_timeout": 8})
    run = SimulatedFabric(topology)
    for kind, link in (("loss", "p0-t0-0~p0-t1-0"), ("pfc_loss", "p0-t1-0~p0-t0-1")):
        run.inject(once(kind, link, at_ns=START_NS, until_ns=START_NS + 200 * _US, share_ppm=200_000))
    for node, peer in ((0, 2), (2, 0)):
        name = nic_name(node)
        connect = {"qpn": 16, "peer_index": peer, "peer_qpn": 16, "psn_send": 0, "psn_receive": 0}
        run.command(name, "register_memory", {"va": _VA, "length": 1 << 20, "region_id": 1, "r_key": 1}, 1)
        run.command(name, "create_qp", {"qpn": 16}, 2)
        run.command(name, "connect_qp", connect, 3)
        run.command(name, "modify_qp", {"qpn": 16, "state": "rts"}, 4)
    work = {"qpn": 16, "wr_id": 0, "local_region": 1, "local_va": _VA, "length": 1 << 20, "remote_va": _VA, "r_key": 1,
            "imm": None}  # fmt: skip
    run.command(nic_name(0), "post_write", work, START_NS)
    run.run(20 * _MS)
    missing = 0
    for name in topology.switch_names():
        for vls in run.counters(name)["vls"].values():
            missing += sum(one["blocks"] - one["credit"] for one in vls.values() if "credit" in one)
    at = "packets and grants lost for 200 us: blocks of credit missing afterwards"
    return (near(at, 0.0, float(missing), 0.0, 0),)


def measure_adaptive(seeds: int) -> Sequence[Finding]:
    """I6: drawn permutations under tables, by flowlets, and packet by packet."""
    means, resent = {}, 0
    for adaptive, recovery in (*((way, "go_back_n") for way in ("off", "flowlet", "packet")), ("packet", _ANY_ORDER)):
        total = 0.0
        for seed in range(seeds):
            topology, flows = _drawn(seed, adaptive=adaptive, flowlet_ns=50_000)
            topology = replace(topology, nic={**topology.nic, "rc_recovery": recovery})
            found = measure(topology, flows, 150 * _US, 450 * _US)
            total += sum(found.shares) / len(found.shares) / seeds
            resent += found.outcome.resent if recovery == _ANY_ORDER else 0
        means[adaptive, recovery] = total
    at = f"{seeds} seeds, mean share"
    off = means["off", "go_back_n"]
    return (
        seen(f"{at}: tables alone", off),
        near(f"{at}: by flowlets, flows that never pause", off, means["flowlet", "go_back_n"], 0.25),
        seen(f"{at}: by packets, and go-back-N, which takes what overtakes for lost", means["packet", "go_back_n"]),
        at_least(f"{at}: by packets, and NICs that place in any order", (1 + off) / 2, means["packet", _ANY_ORDER]),
        near("packets that those NICs sent again", 0.0, float(resent), 0.0, 0),
    )


ROWS: Final = (
    Row(
        "I1", "Credits against the loop of a link", "min(1, packets in the buffer x packet time / loop), "
        "which is 512 x blocks / (rate x loop) for whole packets", "IBTA 7.9.4; closed form", "2 %",
        "One flow between two NICs below one T0, bundle ib with `vl_blocks` for so many packets.",
        tuple(Loop(*figures) for figures in ((1, 1_000), (2, 1_000), (4, 1_000), (8, 1_000), (3, 5_000), (12, 5_000))),
        measure_loop,
    ),
    Row(
        "I2", "A bystander of an incast, over credits (P1 on one VL)", "as P1: C / ((k + 1) m), no more than "
        "C / (m + 1); nothing lost, nothing sent again", "closed form", "15 %",
        "k senders below the target's T0 and m flows through one up-link to the same NIC; one more flow through the "
        "up-link to another NIC. Bundle ib, 512 blocks. A NIC's data have one service level; on another VL the "
        "bystander has its due share, as the tests of switches show.",
        tuple(Victims(*figures) for figures in ((1, 1), (3, 1), (3, 2), (2, 3))), measure_bystander,
    ),
    Row(
        "I3", "Permutations under tables by LID", "a shift collides nowhere; a drawn one shares the links that the "
        "tables name as max-min says", "closed form; max-min", "3 %, 10 %",
        "The up-link is the number of the target modulo the up-links. Bundle ib.", (3,), measure_tables,
    ),
    Row(
        "I4", "A link dies (and G4)", "SHIELD: no more is lost than leaves before it acts; a manager: trap, sweep, "
        "tables, then the next time-out of RC; nobody: an error after 8 tries of 4.096 us x 2^n",
        "closed form; opensm; IBTA 9.9.2", "5 %; G4 exact",
        "One NIC writes to another over the up-link that its table names, whose cable is cut. A sweep asks what is "
        "behind a dead port four times; here each time 2 ms, where opensm waits 200.",
        (Death("shield", 0), Death("shield", 20_000), Death("shield", 200_000), Death("manager", 0),
         Death("nothing", 4), Death("nothing", 8)), measure_death,
    ),
    Row(
        "I5", "Lost credits, and a ring of credits", "what flow control packets say heals lost credits; in a ring "
        "nothing moves until packets have grown too old: 4.096 us x 2^life",
        "IBTA 7.9.4, 18.2.5.4; opensm's 18 is 1.07 s",
        "2 %, and when the ring came to stand still (200 us)",
        "Switches in a ring, each flow two links along it, buffers of two packets; and a path that loses packets and "
        "flow control packets for 200 us.",
        (Life(0, 0), Life(3, 10), Life(4, 12), Life(3, 18)), measure_life,
    ),
    Row(
        "I6", "Adaptive routing", "by flowlets no better than tables when flows never pause; packet by packet needs "
        "receivers that take packets out of order, which go-back-N is not: with them half as far from the line as with "
        "tables, or less, and nothing goes twice", "independent simulation", "a quarter; half the way to the line",
        "12 NICs below three T0s, 4 up-links; permutations that leave the own T0.", (3,), measure_adaptive, exact=False,
    ),
)  # fmt: skip
