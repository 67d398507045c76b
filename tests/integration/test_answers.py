"""Whatever a daemon may be asked, under load: every answer fits the control channel, of every system on 1 to 8 planes.

A daemon ends when it cannot pack an answer, so that one number that is too large takes a NIC out of the fabric.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import msgpack
import pytest

from mrcfabric import bundles
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from nicd import metrics as nic_metrics
from nicd.programs.hosted_nic import HostedNic
from switchd import metrics as switch_metrics
from tests.support.counters import PROCESS, samples_of
from tests.support.hosted import Hosted, program
from tests.support.sim_looks import SimLooks

SHAPES = (1, 2, 4, 8)
"""Planes."""
LOOKS_US = (14, 40)
OF_UET = ("uet_cc=none", "uet_cc=both", "uet_mode=rod")
"""Settings that no bundle has."""
LARGEST = float(1 << 53)
"""Counters go to Prometheus and to browsers, which have doubles."""


def loaded(topology: Topology) -> Hosted:
    """Four NICs that all write to all others."""
    figures = {"block_bytes": 1 << 17, "steps": 1}
    return Hosted(program("all_to_all", 4, figures), topology=topology)


def shape(planes: int, nic: dict[str, Any]) -> Topology:
    return Topology(
        name="asked", planes=planes, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8 * planes,
        reserve_evs_per_qp=0, nic=nic,
    )  # fmt: skip


def answers(core: Any) -> Iterator[tuple[str, Any]]:
    """What the ops of a daemon ask of its core, by name of the op."""
    yield "counters", core.counters()
    if not isinstance(core, HostedNic):
        yield "glance", core.glance()
        return
    yield "glance", core.glance(core.host.glance())
    yield "totals", core.totals()
    rows = core.qp_table()
    yield "qp_table", rows
    asked: dict[str, Callable[[], Any]] = {
        "state": core.state_report, "reverse_paths": core.reverse_paths, "denied_paths": core.denied_paths,
        "link_table": core.link_table, "ev_profiles": core.ev_profiles, "programs": core.host.records,
        "progress": core.host.progress, "bins": lambda: core.bins(0),
        "ev_table": lambda: [core.ev_table(row["qpn"]) for row in rows],
    }  # fmt: skip
    for name, answer in asked.items():
        yield name, answer()


def check(hosted: Hosted) -> int:
    """Ask every daemon everything. Returns the number of answers."""
    count = 0
    for node in hosted.fabric.topology.node_names():
        core: Any = hosted.fabric.simulator.node(node)
        for op, answer in answers(core):
            msgpack.packb(answer)
            count += 1
            if op == "counters":
                render = nic_metrics.render if isinstance(core, HostedNic) else switch_metrics.render
                samples = samples_of(render("asked", node, PROCESS | {"core": answer}))
                assert max(samples.values()) < LARGEST, max(samples, key=samples.__getitem__)
    return count


def look_at(topology: Topology) -> None:
    hosted = loaded(topology)
    looks = SimLooks(hosted.fabric)
    for at_us in LOOKS_US:
        shot = looks.look(at_us * 1000)
        assert not hosted.refused
        msgpack.packb(shot.record())
        assert check(hosted) > topology.nics
    assert sum(core.counters()["data_packets"] for core in map(hosted.fabric.simulator.node, topology.nic_names()))


@pytest.mark.parametrize("planes", SHAPES)
@pytest.mark.parametrize("system", bundles.names())
def test_every_system_answers_under_load(system: str, planes: int) -> None:
    look_at(with_system(shape(planes, {}), system))


@pytest.mark.parametrize("planes", SHAPES)
@pytest.mark.parametrize("setting", OF_UET)
def test_so_does_uet_with_other_settings(setting: str, planes: int) -> None:
    name, value = setting.split("=")
    uet = with_system(shape(planes, {}), "uet")
    look_at(replace(uet, nic={**uet.nic, name: value}))
