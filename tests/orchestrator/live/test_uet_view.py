"""What a look shows of UET NICs: entropies and contexts, in a fabric in virtual time, and where there are none."""

from dataclasses import asdict

import pytest

from mrcfabric.glance import NicRest, UetGlance
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from orchestrator.faults.fault import once
from orchestrator.live.snapshot import UetView
from orchestrator.live.uet_view import uet_sums, uet_view
from tests.support.hosted import Hosted, program
from tests.support.sim_looks import SimLooks

US = 1000


def test_a_dead_nic_has_nothing() -> None:
    empty = NicRest([0], 0, 0, 0, 0, [[0]], ())
    assert uet_view(empty) == UetView(0, 0, 0, 0, 0, 0, 0)
    assert uet_view(empty._replace(uet=UetGlance(1, 2, 3, 4, 5, 6, 7))) == UetView(1, 2, 3, 4, 5, 6, 7)


@pytest.mark.parametrize("system", ["mrc", "roce"])
def test_other_nics_have_no_such_view(system: str) -> None:
    hosted = Hosted(topology=with_system(Topology(planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1), system))
    assert uet_sums(SimLooks(hosted.fabric).look(US).nics.values()) is None


@pytest.mark.parametrize(("system", "shows"), [("uet", "resting"), ("uet-reps", "kept"), ("uet-rccc", "resting")])
def test_lost_packets_show_in_how_entropies_are_chosen(system: str, shows: str) -> None:
    topology = with_system(Topology(
        planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=32, reserve_evs_per_qp=0,
    ), system)  # fmt: skip
    hosted = Hosted(program("permutation", 4, {"message_bytes": 1 << 17, "for_ns": 300 * US}), topology=topology)
    for link in (link.name for link in topology.links() if link.name.startswith("p")):
        hosted.fabric.inject(once("loss", link, at_ns=20 * US, share_ppm=20_000))
    shot = SimLooks(hosted.fabric).look(200 * US)
    sums = uet_sums(shot.nics.values())
    assert sums is not None
    assert not hosted.refused
    assert sums.initiators == sums.targets == 4
    assert getattr(sums, shows) > 0
    assert asdict(sums) == {
        name: sum(asdict(nic.uet)[name] for nic in shot.nics.values() if nic.uet is not None) for name in asdict(sums)
    }
    counted = [hosted.fabric.counters(name)["uet"] for name in topology.nic_names()]
    assert sums.drawn == sum(one["entropies_drawn"] for one in counted) == 32 * 8, "of both ends"
