"""Snapshots nobody has looked for: fabrics of any size in every condition, for whoever draws them.

Figures are made up, the same every time, and fit each other: sums of planes are sums of NICs, a cut cable carries
nothing and takes its port's carrier along, faults stand at whatever they hit. `python -m tests.support.snapshots`
prints a film as JSON lines.
"""

import argparse
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from mrcfabric.rng import Rng
from mrcfabric.topology import Link, Topology
from mrcfabric.units import NS_PER_US
from nicd.core.qp_state import QP_STATES
from orchestrator.live.pause_tree import PauseView, pause_trees
from orchestrator.live.rc_view import rc_path
from orchestrator.live.snapshot import (
    DirectionView,
    FaultView,
    LinkState,
    LinkView,
    NicView,
    PlaneView,
    ProgramView,
    RcView,
    Snapshot,
    SwitchView,
    UetView,
)
from orchestrator.planning.abilities import sprays_entropies

SPAN_NS = 200 * NS_PER_US
"""Fabric time from one look to the next."""
WALL_S = 1_790_000_000.0
DILATION = 1250.0
QPS = 4

SMALL = Topology(name="small", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
DEMO = Topology.demo()
LARGE = Topology(name="large", planes=4, t0_per_plane=16, t1_per_plane=43, nics_per_t0=4)
"""64 NICs and 236 switches: 300 nodes."""

ROCE = Topology(
    name="roce", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
    nic={"transport": "rc"}, switch={"forwarding": "ecmp", "lossless": "pfc"},
)  # fmt: skip
"""Four NICs below switches that pause."""
_NOTHING = DirectionView(0.0, 0, 0, 0, 0)


class _Faults(dict[str, FaultView]):
    """By id; and those in force by the part that they name."""

    def __init__(self, faults: Iterable[FaultView] = ()) -> None:
        super().__init__((one.id, one) for one in faults)
        self._of: dict[str, set[str]] = {}
        for one in self.values():
            for part in one.targets if one.in_force else ():
                self._of.setdefault(part, set()).add(one.id)

    def on(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those in force that name one of these parts, in their order."""
        found = set[str]().union(*(self._of.get(name, ()) for name in names))
        return tuple(one for one in self if one in found)


def quiet(topology: Topology = DEMO, number: int = 1) -> Snapshot:
    """Nothing has ever been sent: no QP, no load, and time sleeps."""
    return _snapshot(topology, number, load=0, faults=_Faults(), running=False)


def busy(topology: Topology = DEMO, number: int = 1) -> Snapshot:
    """A collective on every NIC, nothing broken; each number has figures of its own."""
    return _snapshot(topology, number, load=70, faults=_Faults())


def broken(topology: Topology = DEMO, number: int = 1) -> Snapshot:
    """The same with a cut cable, a cut NIC port, a link that loses packets, a frozen and a dead switch."""
    return _snapshot(topology, number, load=60, faults=_some_faults(topology))


def all_broken(topology: Topology = DEMO, number: int = 1) -> Snapshot:
    """Every cable is cut and every switch is dead."""
    links = tuple(link.name for link in topology.links())
    switches = tuple(topology.switch_names())
    faults = _Faults([_fault("f1", "link_down", links), _fault("f2", "switch_crash", switches)])
    return _snapshot(topology, number, load=0, faults=faults, qps=QPS, valid=False)


def paused(topology: Topology = ROCE, number: int = 1) -> Snapshot:
    """An incast to h000 from below the other T0, of which one way is paused for most of the time."""
    chain = (
        ("p0-t1-0>p0-t0-0", 0.05, "p0-t0-0>h000"),
        ("p0-t0-1>p0-t1-0", 0.45, "p0-t1-0>p0-t0-0"),
        ("h002>p0-t0-1", 0.7, "p0-t0-1>p0-t1-0"),
        ("h003>p0-t0-1", 0.6, "p0-t0-1>p0-t1-0"),
    )
    pauses = tuple(
        PauseView(link, 3, share, number * 12, share > 0.5, "queue", (because,)) for link, share, because in chain
    )
    seen = busy(topology, number)
    shares = {link.partition(">")[0]: share for link, share, _ in chain}
    nics = {name: replace(nic, paused=(shares.get(name, 0.0),)) for name, nic in seen.nics.items()}
    return replace(seen, nics=nics, pauses=pauses, pause_trees=pause_trees(pauses))


def film(topology: Topology = DEMO, looks: int = 60) -> list[Snapshot]:
    """Look by look: at rest, at work, broken from a third on, whole again from two thirds on."""
    quiet_until, broken_from, broken_until = looks // 10, looks // 3, looks * 2 // 3
    return [
        quiet(topology, number)
        if number <= quiet_until
        else (broken if broken_from <= number < broken_until else busy)(topology, number)
        for number in range(1, looks + 1)
    ]


def _fault(
    name: str, kind: str, targets: tuple[str, ...], owner: str = "", end_ns: int | None = None, in_force: bool = True
) -> FaultView:
    title = "" if owner == "" else f"{kind} of the scenario"
    return FaultView(name, kind, title, targets, owner, 3 * SPAN_NS, end_ns, in_force)


def _some_faults(topology: Topology) -> _Faults:
    links = list(topology.links())
    last = topology.planes - 1
    up = next(link for link in links if link.plane == 0 and not link.name.startswith("h"))
    frozen = f"p{last}-t1-{topology.t1_per_plane - 1}"
    found = [
        _fault("f1", "link_down", (up.name,)),
        _fault("f2", "nic_port_down", (f"h001:{last}",), owner="script-1"),
        _fault("f3", "loss", (links[0].name.replace("~", ">"),), end_ns=900 * SPAN_NS),
        _fault("f4", "switch_freeze", (frozen,)),
        _fault("f5", "switch_crash", (f"p{last}-t1-0",), owner="run-1"),
        _fault("f6", "delay", (links[-1].name,), end_ns=950 * SPAN_NS, in_force=False),
    ]
    if frozen in found[4].targets:
        del found[3]
    return _Faults(found)


def _snapshot(
    topology: Topology, number: int, load: int, faults: _Faults, running: bool = True, qps: int | None = None,
    valid: bool = True,
) -> Snapshot:  # fmt: skip
    """`load`: per cent of a link's rate that links carry, about."""
    qps = (QPS if load else 0) if qps is None else qps
    switches = {name: _switch(topology, name, number, faults) for name in topology.switch_names()}
    dead = {name for name, switch in switches.items() if switch.state == "down"}
    links = {link.name: _link(topology, link, number, load, faults, dead) for link in topology.links()}
    nics = {name: _nic(topology, name, number, load, qps, faults, links) for name in topology.nic_names()}
    return Snapshot(
        number=number,
        at_ns=number * SPAN_NS if running else SPAN_NS,
        span_ns=SPAN_NS if running else 0,
        wall_s=WALL_S + number * SPAN_NS * DILATION / 1e9,
        dilation=DILATION if running else 0.0,
        running=running,
        valid=valid,
        reasons=() if valid else ("17 frames that were sent were lost by the kernel",),
        planes=tuple(_plane(plane, list(nics.values())) for plane in range(topology.planes)),
        nics=nics,
        switches=switches,
        links=links,
        faults=tuple(faults.values()),
        programs=() if not qps else (ProgramView("allreduce", "all_reduce", topology.nics, topology.nics, 0, number),),
        late=(),
        pauses=(),
        pause_trees=(),
    )


def _switch(topology: Topology, name: str, number: int, faults: _Faults) -> SwitchView:
    ids = faults.on([name])
    kinds = {faults[one].kind for one in ids}
    dead, frozen = "switch_crash" in kinds, "switch_freeze" in kinds
    drops = Rng(topology.name, name, number).below(400) if frozen else 0
    return SwitchView("down" if dead else "frozen" if frozen else "up", drops, ids)


def _link(topology: Topology, link: Link, number: int, load: int, faults: _Faults, dead: Collection[str]) -> LinkView:
    ways = [link.name, link.name.replace("~", ">"), f"{link.b}>{link.a}", f"{link.a}:{link.plane}"]
    ids = faults.on([*ways, link.a, link.b])
    kinds = {faults[one].kind for one in faults.on(ways)}
    cut = bool(kinds & {"link_down", "nic_port_down"}) or link.a in dead or link.b in dead
    state: LinkState = "down" if cut else "impaired" if kinds else "up"
    if cut:
        return LinkView(state, _NOTHING, _NOTHING, ids)
    up, down = (_direction(Rng(topology.name, link.name, way, number), load, "loss" in kinds) for way in ("up", "down"))
    return LinkView(state, up, down, ids)


def _direction(rng: Rng, load: int, lossy: bool) -> DirectionView:
    if not load:
        return _NOTHING
    percent = min(100, load - 15 + rng.below(40))
    queue = rng.below(40_000) if percent > 75 else rng.below(4096)
    return DirectionView(
        utilisation=percent / 100,
        queue_bytes=queue,
        marks=rng.below(60) if queue > 20_000 else 0,
        trims=rng.below(9) if queue > 36_000 else 0,
        drops=rng.below(30) if lossy else 0,
    )


def _nic(
    topology: Topology, name: str, number: int, load: int, qps: int, faults: _Faults, links: Mapping[str, LinkView]
) -> NicView:
    ends = topology.ports(name)
    up = tuple(links[end.link].state != "down" for end in ends)
    evs = tuple(_evs(topology, qps, Rng(topology.name, name, plane, number), up[plane]) for plane in range(len(ends)))
    rate = sum(links[end.link].down.utilisation * end.rate_bps for end in ends) * 0.96
    ids = faults.on([name, *(f"{name}:{plane}" for plane in range(len(ends)))])
    errors = int(not any(up) and qps > 0)
    return NicView(
        state="up",
        goodput_bps=rate if load else 0.0,
        ports_up=up,
        evs=evs,
        qps=qps,
        qp_errors=errors,
        retransmits=Rng(topology.name, name, "again", number).below(50) if not all(up) and load else 0,
        rc=_rc(qps, len(ends), number) if rc_path(topology) else None,
        uet=UetView(qps, qps, 16 * qps, qps, 0, 0, number % 2) if sprays_entropies(topology) else None,
        paused=(0.0,) * len(ends),
        faults=ids,
    )


def _rc(qps: int, planes: int, number: int) -> RcView:
    states = {**dict.fromkeys(QP_STATES, 0), "rts": qps}
    ports = tuple(qps // planes for _ in range(planes))
    return RcView(states, "ecmp", ports, 4e9, 25e9, qps // 2, 2000.0, 1000.0, 3.0, 5.0, number * 4096)


def _evs(topology: Topology, qps: int, rng: Rng, up: bool) -> dict[str, int]:
    total = 0 if rc_path(topology) else qps * (topology.evs_per_qp + topology.reserve_evs_per_qp) // topology.planes
    skip, bad = rng.below(max(1, total // 10)), 0 if up else total
    skip = 0 if bad else skip
    return {"good": total - skip - bad, "skip": skip, "assumed_bad": bad, "denied": 0}


def _plane(plane: int, nics: list[NicView]) -> PlaneView:
    alive = [nic for nic in nics if nic.ports_up[plane]]
    evs: dict[str, int] = {}
    for nic in nics:
        for state, count in nic.evs[plane].items():
            evs[state] = evs.get(state, 0) + count
    rate = sum(nic.goodput_bps / max(1, sum(nic.ports_up)) for nic in alive)
    return PlaneView(rate, evs, len(nics) - len(alive))


def main() -> None:
    """Print a film, one snapshot per line."""
    parser = argparse.ArgumentParser(description="A film of snapshots as JSON lines.")
    parser.add_argument("size", choices=("small", "demo", "large"), nargs="?", default="demo")
    parser.add_argument("--looks", type=int, default=60)
    given = parser.parse_args()
    topology = {"small": SMALL, "demo": DEMO, "large": LARGE}[given.size]
    for one in film(topology, given.looks):
        print(json.dumps(one.record()))


if __name__ == "__main__":
    main()
