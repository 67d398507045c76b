"""The Clustermapper over real cores in virtual time: each fault is named, nothing else is, with and without a job."""

import functools
from collections.abc import Callable
from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from nicd.core.mrc.self_probe import COUNTS
from orchestrator.faults.fault import once
from orchestrator.mapper.fault_direction import Direction
from orchestrator.mapper.link_verdicts import LinkMap, Verdict
from orchestrator.mapper.link_watch import WatchSettings
from orchestrator.mapper.simulated_mapping import SimulatedMapping
from orchestrator.sim.fabric import SimulatedFabric
from tests.support.scripts import permutation

SHAPE = Topology(
    name="mapping", planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)
PERIOD_NS = 20_000
FAULT_NS = 300_000
NIC_LINK, UP_LINK = "h001~p0-t0-0", "p0-t0-1~p0-t1-2"


class Watched:
    """A simulated fabric under watch, and all that was ever accused."""

    def __init__(
        self, *, job: bool = False, deny: bool = False, size: int = 4 << 20, topology: Topology = SHAPE
    ) -> None:
        self.fabric = SimulatedFabric(topology)
        self.accused: list[tuple[int, str]] = []
        self.size = size
        if job:
            for step in permutation(SHAPE, shift=1, size=size, pieces=16):
                self.fabric.command(step.node, step.op, step.args, step.at_ns)
        self.mapping = SimulatedMapping(self.fabric, WatchSettings.of(topology, PERIOD_NS, deny=deny), self._seen)

    def _seen(self, found: LinkMap) -> None:
        self.accused += [(found.at_ns, name) for name in found.bad]

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.accused}

    def latest(self) -> LinkMap:
        found = self.mapping.watch.latest
        assert found is not None
        return found

    def placed(self) -> list[int]:
        return [self.fabric.counters(nic)["bytes_placed"] for nic in SHAPE.nic_names()]

    def lost(self) -> int:
        """Packets sent again because they had vanished; a trimmed one met a queue, not a bad link."""
        causes = [self.fabric.counters(nic)["retransmits"] for nic in SHAPE.nic_names()]
        return sum(cause["gap"] + cause["timeout"] for cause in causes)


def dead(node: str) -> Callable[[SimulatedFabric], None]:
    return lambda fabric: fabric.inject(once("switch_crash", node, at_ns=FAULT_NS))


def cut(link: str) -> Callable[[SimulatedFabric], None]:
    return lambda fabric: fabric.inject(once("link_down", link, at_ns=FAULT_NS))


def gray(link: str, loss_ppm: int) -> Callable[[SimulatedFabric], None]:
    return lambda fabric: fabric.inject(once("loss", link, at_ns=FAULT_NS, share_ppm=loss_ppm))


FAULTS: dict[str, tuple[Callable[[SimulatedFabric], None], set[str]]] = {
    "NIC-T0 link cut": (cut(NIC_LINK), {NIC_LINK}),
    "T0-T1 link cut": (cut(UP_LINK), {UP_LINK}),
    "NIC-T0 link at 5 %": (gray(NIC_LINK, 50_000), {NIC_LINK}),
    "T0-T1 link at 5 %": (gray(UP_LINK, 50_000), {UP_LINK}),
    "NIC-T0 link at 1 %": (gray(NIC_LINK, 10_000), {NIC_LINK}),
    "T0-T1 link at 1 %": (gray(UP_LINK, 10_000), {UP_LINK}),
    "dead T1": (dead("p0-t1-1"), {"p0-t1-1"}),
    "dead T0": (dead("p1-t0-0"), {"p1-t0-0"}),
    "two at once": (lambda fabric: (cut(NIC_LINK)(fabric), gray(UP_LINK, 50_000)(fabric))[0], {NIC_LINK, UP_LINK}),
}


def rounds(fault: str) -> int:
    return 400 if "1 %" in fault else 150


@pytest.mark.slow
@pytest.mark.spec("arXiv 2605.04333", "8")
@pytest.mark.parametrize("job", [False, pytest.param(True, marks=pytest.mark.long)], ids=["idle", "busy"])
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_and_nothing_else(fault: str, job: bool) -> None:
    bring_about, guilty = FAULTS[fault]
    watched = Watched(job=job, size=32 << 20)
    bring_about(watched.fabric)
    watched.mapping.run(FAULT_NS + rounds(fault) * PERIOD_NS)
    assert set(watched.latest().bad) == guilty
    assert watched.names == guilty, watched.accused[:8]
    assert watched.accused[0][0] > FAULT_NS


@pytest.mark.slow
@pytest.mark.parametrize(("loss_ppm", "seed"), [(10_000, "0"), (10_000, "1"), (10_000, "4"), (30_000, "5")])
def test_while_all_links_of_nics_lose_a_little_no_link_of_a_t1_is_accused(loss_ppm: int, seed: str) -> None:
    """Soon more is lost through some T1 than healthy links lose, while few NICs have lost enough to be accused.

    With these seeds links of T1s were accused when one single link was all that could take the place of another.
    """
    watched = Watched(topology=replace(SHAPE, planes=1, nics_per_t0=8, seed=seed))
    guilty = {link.name for link in watched.fabric.topology.links() if link.name.startswith("h")}
    for link in sorted(guilty):
        gray(link, loss_ppm)(watched.fabric)
    watched.mapping.run(FAULT_NS + (300 if loss_ppm < 30_000 else 150) * PERIOD_NS)
    assert watched.names == guilty


def test_a_healthy_idle_fabric_is_all_good() -> None:
    watched = Watched()
    watched.mapping.run(40 * PERIOD_NS)
    assert watched.latest().all_good
    assert watched.names == set()


@pytest.mark.slow
def test_a_healthy_busy_fabric_accuses_nobody() -> None:
    """Everybody writes, and three into one NIC: queues are full, marks and trims come, no link is blamed."""
    watched = Watched(job=True, size=16 << 20)
    target = next(iter(SHAPE.nic_names()))
    names = list(SHAPE.nic_names())
    for shift in (2, 3):
        for step in permutation(SHAPE, shift=shift, size=16 << 20, pieces=4, start_ns=1_000 + shift * 1_000):
            args = {name: value + 1000 * shift if "qpn" in name else value for name, value in step.args.items()}
            aimed = names[(names.index(step.node) + shift) % len(names)] == target
            if step.op != "register_memory" and (aimed or step.op != "post_write"):
                watched.fabric.command(step.node, step.op, args, step.at_ns)
    watched.mapping.run(60 * PERIOD_NS)
    outcomes = dict.fromkeys(COUNTS, 0)
    for nic in SHAPE.nic_names():
        for plane in watched.fabric.counters(nic)["self_probes"].values():
            outcomes = {name: outcomes[name] + plane[name] for name in COUNTS}
    assert outcomes["trimmed"] > 0, "the probes met the job's queues"
    assert outcomes["lost"] == 0
    assert watched.names == set()
    assert watched.latest().all_good


def test_a_dead_nic_leaves_its_links_unknown() -> None:
    watched = Watched()
    watched.fabric.inject(once("nic_crash", "h003", at_ns=FAULT_NS))
    watched.mapping.run(FAULT_NS + 30 * PERIOD_NS)
    assert {link.cable.name for link in watched.latest().of(Verdict.UNKNOWN)} == {"h003~p0-t0-1", "h003~p1-t0-1"}
    assert watched.names == set()


def test_a_nic_that_returns_probes_again() -> None:
    watched = Watched()
    watched.fabric.inject(once("nic_crash", "h003", at_ns=FAULT_NS, until_ns=FAULT_NS + 100_000))
    watched.mapping.run(FAULT_NS + 60 * PERIOD_NS)
    assert watched.latest().all_good


def test_a_switch_that_returns_leaves_nobody_accused() -> None:
    watched = Watched()
    watched.fabric.inject(once("switch_crash", "p0-t1-1", at_ns=FAULT_NS, until_ns=FAULT_NS + 800_000))
    watched.mapping.run(FAULT_NS + 800_000 + 130 * PERIOD_NS)
    assert watched.names == {"p0-t1-1"}
    assert watched.latest().all_good


@pytest.mark.parametrize("loss_ppm", [1_000_000, 150_000])
@pytest.mark.parametrize(("end", "told"), [("p0-t0-1", Direction.UP), ("p0-t1-2", Direction.DOWN)])
def test_the_direction_of_a_fault_between_switches_is_told(end: str, told: Direction, loss_ppm: int) -> None:
    watched = Watched()
    port = next(port.port for port in SHAPE.ports(end) if port.link == UP_LINK)
    impairment = {"up": loss_ppm < 1_000_000, "loss_ppm": loss_ppm}
    watched.fabric.command(end, "set_impairment", {"port": port, "impairment": impairment}, FAULT_NS)
    watched.mapping.run(FAULT_NS + 100 * PERIOD_NS)
    assert watched.names == {UP_LINK}
    found = {link.cable.name: link.direction for link in watched.latest().links if link.direction}
    assert found == {UP_LINK: told}


def test_a_fault_in_both_directions_is_told_too_and_that_of_a_nic_stays_open() -> None:
    watched = Watched()
    watched.fabric.inject(once("link_down", UP_LINK, at_ns=FAULT_NS))
    watched.fabric.inject(once("link_down", NIC_LINK, at_ns=FAULT_NS))
    watched.mapping.run(FAULT_NS + 60 * PERIOD_NS)
    found = {link.cable.name: link.direction for link in watched.latest().links if link.direction}
    assert found == {UP_LINK: Direction.BOTH}


def deny_lists(watched: Watched) -> dict[str, list[tuple[int, int | None, int | None]]]:
    found = {}
    for nic in SHAPE.nic_names():
        rows = watched.fabric.simulator.node(nic).denied_paths()  # type: ignore[attr-defined]
        found[nic] = [(row["plane"], row["path"], row["peer_index"]) for row in rows]
    return found


def test_a_gray_up_link_is_denied_and_allowed_again_when_it_has_healed() -> None:
    watched = Watched(deny=True)
    watched.fabric.inject(once("loss", UP_LINK, at_ns=FAULT_NS, fault_id="gray", share_ppm=200_000))
    watched.mapping.run(FAULT_NS + 60 * PERIOD_NS)
    assert deny_lists(watched) == {
        "h000": [(0, 2, 2), (0, 2, 3)],
        "h001": [(0, 2, 2), (0, 2, 3)],
        "h002": [(0, 2, None)],
        "h003": [(0, 2, None)],
    }
    watched.fabric.heal("gray", FAULT_NS + 61 * PERIOD_NS)
    watched.mapping.run(FAULT_NS + 240 * PERIOD_NS)
    assert deny_lists(watched) == {nic: [] for nic in SHAPE.nic_names()}
    assert watched.latest().all_good


def test_a_nic_that_starts_again_gets_its_list_back() -> None:
    watched = Watched(deny=True)
    watched.fabric.inject(once("loss", UP_LINK, at_ns=FAULT_NS, share_ppm=300_000))
    died_ns = FAULT_NS + 60 * PERIOD_NS
    watched.fabric.inject(once("nic_crash", "h000", at_ns=died_ns, until_ns=died_ns + 10 * PERIOD_NS))
    watched.mapping.run(FAULT_NS + 90 * PERIOD_NS)
    assert deny_lists(watched)["h000"] == [(0, 2, 2), (0, 2, 3)]


def test_an_operators_own_entry_stays() -> None:
    watched = Watched(deny=True)
    watched.fabric.command("h000", "deny_paths", {"plane": 0, "path": 2, "peer_index": 2}, 10)
    watched.fabric.command("h000", "deny_paths", {"plane": 1}, 11)
    until_ns = FAULT_NS + 61 * PERIOD_NS
    watched.fabric.inject(once("loss", UP_LINK, at_ns=FAULT_NS, until_ns=until_ns, share_ppm=300_000))
    watched.mapping.run(FAULT_NS + 60 * PERIOD_NS)
    assert len(deny_lists(watched)["h000"]) == 3
    watched.mapping.run(FAULT_NS + 240 * PERIOD_NS)
    assert (1, None, None) in deny_lists(watched)["h000"]


KNOWN_NS, MEASURED_NS = 800_000, 200_000
"""A fault at 100 us is long known then, and over how long goodput is taken."""


def rate_from_then(watched: Watched) -> float:
    """Bytes per nanosecond of the whole fabric, when a fault is long known."""
    watched.mapping.run(KNOWN_NS)
    before = sum(watched.placed())
    watched.mapping.run(KNOWN_NS + MEASURED_NS)
    return (sum(watched.placed()) - before) / MEASURED_NS


def goodput(link: str, loss_ppm: int, *, deny: bool) -> tuple[float, int]:
    """Bytes per nanosecond of the whole fabric, and packets lost, when the fault is long known.

    Losses are counted for twelve times as long: a path that failed again and again is tried again but rarely, and then
    for a while loses nothing or some packets.
    """
    watched = Watched(job=True, deny=deny, size=84 << 20)
    watched.fabric.inject(once("loss", link, at_ns=100_000, share_ppm=loss_ppm))
    watched.mapping.run(KNOWN_NS)
    lost = watched.lost()
    rate = rate_from_then(watched)
    watched.mapping.run(KNOWN_NS + 12 * MEASURED_NS)
    return rate, watched.lost() - lost


@functools.cache
def healthy() -> float:
    """What goes through where nothing is broken."""
    return rate_from_then(Watched(job=True, size=28 << 20))


@pytest.mark.long
def test_denying_a_gray_up_link_ends_the_losses_and_costs_no_goodput() -> None:
    suffering, lost = goodput(UP_LINK, 100_000, deny=False)
    restored, after = goodput(UP_LINK, 100_000, deny=True)
    assert suffering < healthy()
    assert lost > 0
    assert after == 0, "nothing crosses the gray link any more"
    assert restored >= 0.9 * healthy()
    assert restored >= 0.98 * suffering


@pytest.mark.slow
def test_denying_a_gray_nic_link_costs_its_plane_and_ends_the_losses() -> None:
    """Two of four NICs' flows lose one of two planes; MRC alone would go on losing packets for good."""
    _, lost = goodput(NIC_LINK, 100_000, deny=False)
    denied, after = goodput(NIC_LINK, 100_000, deny=True)
    assert lost > 0
    assert after == 0
    assert denied >= 0.74 * healthy()
