"""What a look shows of RC NICs: by figures, and of a fabric in virtual time."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.glance import RcGlance
from mrcfabric.topology import Topology
from orchestrator.faults.fault import once
from orchestrator.live.live_view import Sight
from orchestrator.live.rc_view import rc_path, rc_sums
from tests.orchestrator.live.said import SMALL, all_say, look, nic
from tests.support.hosted import Hosted, program
from tests.support.sim_looks import SimLooks

US = 1000
RC = replace(SMALL, nic={"transport": "rc"}, switch={"forwarding": "ecmp"})


def rc_nic(now_ns: int, **told: Any) -> Any:
    head, ports, rest = nic(now_ns)
    fields = {"states": [0, 0, 0, 2, 1], "ports": [1, 1], "rate_bps_min": 10, "rate_bps_sum": 40, "slowed": 1}
    counts = {"cnps_sent": 0, "cnps_received": 0, "naks_sent": 0, "naks_received": 0, "retransmitted_bytes": 0}
    return [head, ports, [*rest, [], [], list(RcGlance(**{**fields, **counts, **told}))]]


def test_rates_are_per_second_of_fabric_time_since_the_look_before() -> None:
    sight = Sight(RC)
    sight.see(look(10 * US, all_say(10 * US, h000=rc_nic(10 * US, cnps_sent=5, retransmitted_bytes=100))), ())
    told = rc_nic(20 * US, cnps_sent=8, cnps_received=1, naks_sent=2, naks_received=4, retransmitted_bytes=4196)
    shot = sight.see(look(20 * US, all_say(20 * US, h000=told)), ())
    view = shot.nics["h000"].rc
    assert view is not None
    assert view.states == {"reset": 0, "init": 0, "rtr": 0, "rts": 2, "error": 1}
    assert (view.path, view.ports, view.rate_bps_min, view.rate_bps_mean, view.slowed) == ("ecmp", (1, 1), 10, 20, 1)
    assert (view.cnps_sent_per_s, view.cnps_received_per_s) == (300_000, 100_000)
    assert (view.naks_sent_per_s, view.naks_received_per_s, view.retransmitted_bytes) == (200_000, 400_000, 4096)
    late = sight.see(look(30 * US, all_say(30 * US, h000=told), late=("h000",)), ()).nics["h000"].rc
    assert late == replace(view, retransmitted_bytes=0)


def test_a_dead_nic_has_nothing_and_the_sums_are_of_all() -> None:
    sight = Sight(RC)
    both = {"h000": rc_nic(10 * US), "h001": rc_nic(10 * US, ports=[4, 0], rate_bps_min=4, rate_bps_sum=80)}
    shot = sight.see(look(10 * US, all_say(10 * US, **both)), ())
    sums = rc_sums(shot.nics.values())
    assert sums is not None
    assert (sums["states"]["rts"], sums["ports"], sums["rate_bps_min"], sums["rate_bps_mean"]) == (4, [5, 1], 4, 20)
    dead = sight.see(look(20 * US, all_say(20 * US, h000=None), down=("h000",)), ()).nics["h000"].rc
    assert dead is not None
    assert (sum(dead.states.values()), sum(dead.ports), dead.rate_bps_mean) == (0, 0, 0.0)


def test_other_nics_have_no_such_view() -> None:
    assert rc_path(SMALL) is None
    shot = Sight(SMALL).see(look(0, all_say(0)), ())
    assert shot.nics["h000"].rc is None
    assert rc_sums(shot.nics.values()) is None


@pytest.mark.parametrize(("nic_settings", "path"), [({}, "ecmp"), ({"rc_path": "pinned"}, "pinned")])
def test_a_lossy_link_under_load_shows_naks_and_what_is_sent_again(nic_settings: Any, path: str) -> None:
    forwarding = {"forwarding": "ecmp"} if path == "ecmp" else {}
    topology = Topology(
        planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "cc": "dcqcn", **nic_settings}, switch=forwarding,
    )  # fmt: skip
    hosted = Hosted(program("permutation", 4, {"message_bytes": 1 << 18, "for_ns": 300 * US}), topology=topology)
    for link in (link.name for link in topology.links() if link.name.startswith("h")):
        hosted.fabric.inject(once("loss", link, at_ns=20 * US, share_ppm=20_000))
    looks = SimLooks(hosted.fabric)
    looks.look(50 * US)
    shot = looks.look(250 * US)
    sums = rc_sums(shot.nics.values())
    assert sums is not None
    assert not hosted.refused
    assert sums["path"] == path
    assert sums["states"]["rts"] == sum(sums["ports"]) > 0
    assert sums["naks_sent_per_s"] > 0
    assert sums["retransmitted_bytes"] > 0
    assert 0 < sums["rate_bps_min"] <= sums["rate_bps_mean"] <= topology.rate_bps
