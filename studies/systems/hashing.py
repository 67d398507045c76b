"""Rows E1, E4 and E5: what a hash over paths of equal cost does to a permutation.

E1 compares every fabric with max-min over the hash that it drew, and the mean over seeds with draws of an oracle that
knows no fabric. There is no congestion control in the way: every QP has one bandwidth-delay product in flight, and the
queues hold all of them, so that QPs on a link share it evenly.
"""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, NamedTuple

from mrcfabric.naming import nic_address, nic_name, t0_name
from mrcfabric.rng import seed_of
from mrcfabric.topology import Setting, Topology
from mrcfabric.wire.roce import RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_ONLY
from studies.flows import START_NS, permutation
from studies.systems.bench_fabric import CONTROL_DSCP, PLAIN_ECMP, PLAIN_RC, fabric, measure
from studies.systems.formulas import links_used
from studies.systems.max_min import drawn_permutation, permutation_rates
from studies.systems.row import Finding, Row, at_most, near
from switchd.compose import ecmp_config, switch_settings
from switchd.core.forwarding.ecmp import EcmpConfig, EcmpForwarding

_DRAWS: Final = 20_000
_TABLES: Final = 3_000
"""Tables of switches that are asked without a fabric."""
_FLOWS_PER_LINK: Final = 16
"""Of the second stage."""


class Permutation(NamedTuple):
    """One point of E1."""

    nics: int
    """Of each T0."""
    uplinks: int
    qps: int = 1
    seeds: int = 100


class Stages(NamedTuple):
    """One point of E4."""

    links: int
    """Of every switch of both stages."""
    seed: str
    hash: str


def _topology(seed: str, point: Permutation) -> Topology:
    total = 2 * point.nics * point.qps
    settings: dict[str, Setting] = {**PLAIN_ECMP, "data": float(total), "data_last_hop": float(total)}
    sizes: dict[str, Any] = {"switch": settings, "dscp": CONTROL_DSCP, "link_delay_ns": 300}
    bdp = fabric(seed, point.nics, point.uplinks, **sizes).plane_bdp_bytes
    windows: dict[str, Setting] = {"rc_window_bytes": 3 * bdp // 2, "rc_ack_every": 1}
    return fabric(seed, point.nics, point.uplinks, nic={**PLAIN_RC, **windows}, **sizes)


def uplink_of(forwarding: EcmpForwarding, source: int, target: int, sport: int) -> int:
    """The port that a switch's table has for a flow between two NICs."""
    template = RcDataTemplate(nic_address(source), nic_address(target), 16, sport, dscp=26)
    found = forwarding.route(1, 0, template.make(RC_WRITE_ONLY, 0, memoryview(b"x"), 0, 0, 1, False, None))
    assert not isinstance(found, str), found
    return found[0]


def _table(topology: Topology) -> EcmpForwarding:
    """Of the first T0."""
    return EcmpForwarding(ecmp_config(topology, t0_name(0, 0), switch_settings(topology)))


def measure_permutation(point: Permutation) -> Sequence[Finding]:
    """E1 at one size: fabrics against max-min over their draws, and draws against the oracle."""
    worst = 0.0
    ours, wanted = _Means(), _Means()
    for seed in range(point.seeds):
        shares, drawn = _one_fabric(_topology(f"e1-{seed}", point), point)
        worst = max(worst, *(abs(share / rate - 1) for share, rate in zip(shares, drawn, strict=True)))
        ours.add(shares)
        wanted.add(drawn)
    tables, used = _drawn_tables(point)
    oracle = drawn_permutation(point.nics, point.uplinks, point.qps, _DRAWS)
    size = f"N {point.nics}, M {point.uplinks}, {point.qps} QPs each"
    fabrics, drawn_at = f"{size}, {point.seeds} fabrics", f"{size}, {_TABLES} tables"
    found = [
        near(f"{fabrics}: mean share, against max-min over their draws", wanted.mean, ours.mean, 0.02),
        near(f"{fabrics}: slowest share, likewise", wanted.slowest, ours.slowest, 0.02),
        near(f"{drawn_at}: mean share by max-min, against Monte Carlo", oracle.mean, tables.mean, 0.02),
        near(f"{drawn_at}: slowest share, likewise", oracle.slowest, tables.slowest, 0.02),
        near(f"{drawn_at}: links used", links_used(point.nics * point.qps, point.uplinks), used, 0.02),
    ]
    if point.qps == 1:
        found.append(at_most(f"{fabrics}: furthest NIC from its rate by max-min", 0.02, worst))
    return found


class _Means:
    """Sums up permutations."""

    def __init__(self) -> None:
        self._count = 0
        self._mean = self._slowest = 0.0

    def add(self, rates: Sequence[float]) -> None:
        self._count += 1
        self._mean += sum(rates) / len(rates)
        self._slowest += min(rates)

    @property
    def mean(self) -> float:
        return self._mean / self._count

    @property
    def slowest(self) -> float:
        return self._slowest / self._count


def _one_fabric(topology: Topology, point: Permutation) -> tuple[list[float], list[float]]:
    """(shares of NICs as measured, rates by max-min over the hash that this fabric drew)."""
    both = permutation(topology, point.qps, qps=point.qps)
    # One way, so that no acknowledgements are beside the data; at one instant, so that packets of several flows
    # alternate in a queue, and a short watch shows their shares.
    flows = [replace(flow, start_ns=START_NS) for flow in both[: point.nics]]
    # So long do the windows of half of all QPs take on one link.
    turn = topology.base_rtt_ns() * (point.nics * point.qps // 2 + 2)
    found = measure(topology, flows, turn, 5 * turn)
    table = _table(topology)
    ups = [
        [uplink_of(table, flow.source, flow.target, found.watch.qp(nic_name(flow.source), qpn)["sport"])
         for qpn in qpns]
        for flow, qpns in found.watch.lines
    ]  # fmt: skip
    return found.shares, permutation_rates(ups)


def _drawn_tables(point: Permutation) -> tuple[_Means, float]:
    """(rates by max-min over many tables of switches, mean share of links used)."""
    random = Random(point.nics)
    means, used = _Means(), 0
    for seed in range(_TABLES):
        table = _table(_topology(f"e1-table-{seed}", point))
        ups = [
            [uplink_of(table, nic, point.nics + nic, random.randrange(0xC000, 1 << 16)) for _ in range(point.qps)]
            for nic in range(point.nics)
        ]
        means.add(permutation_rates(ups))
        used += len({up for own in ups for up in own})
    return means, used / _TABLES / point.uplinks


def measure_stages(point: Stages) -> Sequence[Finding]:
    """E4: flows through two switches, each of which picks one of its links."""
    random = Random(point.links)
    up = tuple(range(1, 1 + point.links))

    def stage(name: str) -> EcmpForwarding:
        own = (name,) if point.seed == "per_switch" else ()
        return EcmpForwarding(
            EcmpConfig(
                nics=1 << 20, first=0, down=(0,), nics_per_port=1, up=up, seed=seed_of("e4", "ecmp", *own),
                crc=point.hash == "crc",
            )
        )  # fmt: skip

    first, second = stage("first"), {port: stage(f"second {port}") for port in up}
    used: dict[int, set[int]] = {port: set() for port in up}
    for _ in range(_FLOWS_PER_LINK * point.links**2):
        ends = nic_address(random.randrange(2, 1 << 20)), nic_address(random.randrange(2, 1 << 20))
        template = RcDataTemplate(*ends, 16, random.randrange(0xC000, 1 << 16), dscp=26)
        found = first.route(1, 0, template.make(RC_WRITE_ONLY, 0, memoryview(b"x"), 0, 0, 1, False, None))
        assert not isinstance(found, str), found
        onward = second[found[0]].route(1, 0, found[1])
        assert not isinstance(onward, str), onward
        used[found[0]].add(onward[0])
    shares = [len(links) / point.links for links in used.values()]
    # XOR leaves the remainder by a power of two fixed, and mixes the rest.
    part = point.links if point.seed == "common" else (point.links & -point.links) if point.hash == "crc" else 1
    wanted = 1 / part
    at = f"k {point.links}, ecmp_seed {point.seed}, ecmp_hash {point.hash}: links used of the second stage"
    return (near(at, wanted, sum(shares) / len(shares), 0.0),)


ROWS: Final = (
    Row(
        "E1", "A permutation under ECMP, two tiers",
        "links used 1 - (1 - 1/M)^N; mean and slowest rate by max-min over the drawn hash", "closed form; Monte Carlo",
        "2 %", "N NICs below each of two T0s with M up-links; every NIC of the first sends to one below the other. RC "
        "without congestion control, a window of 1.5 bandwidth-delay products per QP, queues that hold all.",
        (Permutation(4, 4, 1, 10), Permutation(8, 8, 1, 120), Permutation(4, 4, 1, 120), Permutation(8, 4, 1, 30),
         Permutation(8, 16, 1, 30), Permutation(8, 8, 2, 30), Permutation(8, 8, 4, 15)), measure_permutation,
        why="With several QPs a NIC's port is full as well, and packets that wait in it count in the window: a QP "
        "there has less of it at the up-link, which leaves more to NICs whose port is not full, the slow ones. "
        "The longer the round trip, the less that is: over six fabrics 0.748 at 3.8 us as here, 0.739 at 9.4 and "
        "0.735 at 21, where max-min has 0.720.",
    ),
    Row(
        "E2", "A permutation under ECMP, three tiers", "mean and slowest rate by max-min over both hashes",
        "closed form; Monte Carlo", "2 %", "As E1, with a third tier of switches.", (0,), lambda _point: (),
        needs=lambda: "a fabric of three tiers; a plane has two, T0s and T1s, and a NIC's path names one up-link",
    ),
    Row(
        "E4", "A polarised hash", "the second of two stages of k links uses 1/k of them; all, if switches draw anew",
        "closed form", "none", "Flows with drawn addresses and ports through two tables of switches. A seed of its own "
        "does not rescue CRC-32, into which it is only XORed: the second stage uses 1/q of its links, q the greatest "
        "power of two that divides k.",
        tuple(Stages(links, seed, kind) for links in (4, 8, 16, 32, 12)
              for seed, kind in (("common", "mix"), ("common", "crc"), ("per_switch", "crc"), ("per_switch", "mix"))),
        measure_stages,
    ),
)  # fmt: skip
