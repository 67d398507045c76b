"""Over drawn fabrics, workloads and faults: the pauses of a hop are those that its port obeyed, and have a cause."""

from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.class_egress import ClassEgress
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.journey import Hop
from tests.support.scripts import incast, permutation
from tests.support.tracing import PAUSING, told

Span = tuple[int, int]


class Obeyed:
    """When the classes of all ports of a fabric were paused, as their ports were told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spans: dict[tuple[str, int, int], list[Span]] = {}
        self._names: dict[int, str] = {}
        inner = ClassEgress.pause

        def pause(port: ClassEgress, now: int, cls: int, until_ns: int, out: Any) -> None:
            inner(port, now, cls, until_ns, out)
            self._note(self._names[id(port)], port.port, cls, now, max(now, until_ns))

        monkeypatch.setattr(ClassEgress, "pause", pause)

    def watch(self, fabric: SimulatedFabric) -> None:
        for name in fabric.topology.node_names():
            core: Any = fabric.simulator.node(name)
            for port in core.egress if hasattr(core, "egress") else core._board.ports.egress:
                self._names[id(port)] = name

    def _note(self, node: str, port: int, cls: int, now: int, until_ns: int) -> None:
        spans = self.spans.setdefault((node, port, cls), [])
        if spans and spans[-1][1] >= now:
            now = spans.pop()[0]
        spans.append((now, until_ns))

    def within(self, hop: Hop, until_ns: int) -> list[Span]:
        """Those that touch the wait of a packet, cut to it."""
        assert hop.port is not None
        assert hop.traffic_class is not None
        end_ns = until_ns if hop.start_ns is None else hop.start_ns
        spans = self.spans.get((hop.node, hop.port, hop.traffic_class), [])
        cut = [(max(since, hop.at_ns), min(end, end_ns)) for since, end in spans]
        return [span for span in cut if span[0] < span[1]]


def drawn(rng: Rng) -> tuple[Topology, list[Fault], int]:
    """A fabric, faults, and until when it runs."""

    def one_of(*choices: Any) -> Any:
        return choices[rng.below(len(choices))]

    topology = Topology.from_dict({
        **PAUSING.to_dict(), "planes": one_of(1, 2), "t0_per_plane": one_of(2, 3), "t1_per_plane": one_of(1, 2, 4),
        "nics_per_t0": one_of(2, 3, 4), "rate_bps": one_of(10**11, 25 * 10**9, 4 * 10**11),
        "link_delay_ns": one_of(100, 1_000, 3_000), "seed": str(rng.bits64()),
        "nic": {**PAUSING.nic, "rc_recovery": one_of("go_back_n", "selective"), "rc_ack_every": one_of(0, 1, 4, 16),
                "rc_timeout": one_of(8, 14), "cc": one_of("none", "dcqcn")},
        "switch": {**PAUSING.switch, "pfc_xoff_bytes": one_of(8_000, 30_000, 120_000),
                   "pfc_quanta": one_of(65_535, 2_000), "pfc_watchdog_ns": one_of(0, 0, 50_000),
                   "pfc_watchdog_restore_ns": 100_000},
    })  # fmt: skip
    nic, at_ns = one_of(*topology.nic_names()), 1_000 + rng.below(40_000)
    faults = one_of(
        [],
        [once("pause_storm", f"{nic}:0", at_ns=at_ns, until_ns=at_ns + 100 + rng.below(100_000))],
        [once("slow_receiver", nic, at_ns=2_000, until_ns=900_000, rate_bps=one_of(10**9, 10**10),
              buffer_bytes=20_000)],
        [once("loss", "p0-t0-0~p0-t1-0", at_ns=1_000, until_ns=200_000, share_ppm=20_000)],
        [once("pfc_loss", "p0-t0-0~p0-t1-0", at_ns=1_000, until_ns=200_000, share_ppm=200_000)],
    )  # fmt: skip
    return topology, faults, one_of(50_000, 300_000, 3_000_000)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 80))])
@pytest.mark.parametrize("every", [1, 11])
@pytest.mark.pure
def test_a_trace_knows_every_pause_that_a_port_obeyed(seed: int, every: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Rng("pauses", seed)
    topology, faults, until_ns = drawn(rng)
    obeyed, fabric = Obeyed(monkeypatch), SimulatedFabric(topology)
    obeyed.watch(fabric)
    fabric.follow(Choice(every=every))
    size = 1 << (15 + rng.below(3))
    everybody = permutation(topology, shift=1 + rng.below(3), size=size, pieces=2)
    for step in everybody if rng.below(2) else incast(topology, size):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    for fault in faults:
        fabric.inject(fault)
    fabric.run(until_ns)
    checked = 0
    for journey in told(fabric):
        for way in (way for attempt in journey.attempts for way in (attempt.way, *attempt.answers)):
            for hop in way.hops:
                if hop.traffic_class is not None:
                    assert [(one.since_ns, one.until_ns) for one in hop.pauses] == obeyed.within(hop, until_ns)
                    assert all(one.causes for one in hop.pauses)
                    checked += 1
    assert checked
