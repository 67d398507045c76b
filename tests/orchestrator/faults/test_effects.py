"""What each kind does where, how several come to one, and the commands that bring it about."""

from typing import Any

import pytest

from mrcfabric.command_table import CommandTable
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.topology import Topology
from nicd.daemon import NicDaemon
from orchestrator.faults.checks import DEADLY
from orchestrator.faults.effects import TOLD_WHOLE, WHOLE, Aspect, Spot, composed, effects, order
from orchestrator.faults.kinds import KINDS, Target, struck
from switchd.daemon import SwitchDaemon

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4,
                    switch={"lossless": "pfc", "pfc_classes": "0,1"})  # fmt: skip
T0, T1 = "p1-t0-0", "p1-t1-1"
TARGETS = {
    Target.LINK: f"{T0}~{T1}",
    Target.SWITCH: T0,
    Target.NIC: "h001",
    Target.NIC_PORT: "h001:1",
    Target.PLANE: "1",
    Target.NODE: T1,
}
NEEDED: dict[str, dict[str, Any]] = {
    "rate_limit": {"rate_bps": 10**9},
    "black_hole": {"usid": T1, "ev": 5},
    "nth_packet": {"qpn": 5, "psn": (1 << 24) - 1, "psns": 2},
    "ecn_misconfigured": {"min_bytes": 5},
    "slow_receiver": {"rate_bps": 10**9},
    "wrong_headroom": {"headroom_bytes": 0},
    "stuck_route": {"nic": "h001"},
    "route_leak": {"nic": "h001"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_does_something_a_daemon_understands(kind: str) -> None:
    found = effects(TOPOLOGY, kind, [TARGETS[struck(kind)]], NEEDED.get(kind, {}))
    assert bool(found) == (kind not in DEADLY)
    for spot, state in found.items():
        assert state != WHOLE[spot.aspect]
        if spot.aspect in TOLD_WHOLE:
            continue
        nic = TOPOLOGY.parse_node(spot.node).tier == "nic"
        commands: CommandTable = NicDaemon.commands if nic else SwitchDaemon.commands
        for one in (state, WHOLE[spot.aspect]):
            stamped = order(spot, one, 7)
            assert (stamped.at_ns, stamped.node) == (7, spot.node)
            commands.build(stamped.op, stamped.args, 1)


@pytest.mark.parametrize(
    ("kind", "figures", "impairment"),
    [
        ("link_down", {}, Impairment(up=False)),
        ("optic", {}, Impairment(up=False)),
        (
            "nth_packet",
            {"qpn": 5, "psn": (1 << 24) - 1, "psns": 2},
            Impairment(lost_packets=(5 << 24 | (1 << 24) - 1, 5 << 24)),
        ),
        ("loss", {"share_ppm": 7, "burst_packets": 3}, Impairment(loss_ppm=7, loss_burst_packets=3)),
        ("link_retry", {"share_ppm": 7, "retry_ns": 9}, Impairment(retry_ppm=7, retry_ns=9)),
        ("gray", {"share_ppm": 7}, Impairment(gray_ppm=7)),
        ("corruption", {"share_ppm": 7}, Impairment(corruption_ppm=7)),
        ("duplication", {"share_ppm": 7}, Impairment(duplication_ppm=7)),
        ("reordering", {"share_ppm": 7, "delay_ns": 9}, Impairment(reordering_ppm=7, reordering_ns=9)),
        ("delay", {"share_ppm": 7, "delay_ns": 9, "jitter_ns": 8}, Impairment(delay_ppm=7, delay_ns=9, jitter_ns=8)),
        ("rate_limit", {"rate_bps": 10**9}, Impairment(rate_bps=10**9)),
        ("black_hole", {"ev": 9}, Impairment(black_hole_evs=(9,))),
    ],
)
def test_a_fault_of_a_link_impairs_the_sending_end(kind: str, figures: dict[str, Any], impairment: Impairment) -> None:
    assert effects(TOPOLOGY, kind, [f"{T0}>{T1}"], figures) == {Spot(T0, Aspect.IMPAIRMENT, 3): impairment}


def test_several_faults_on_one_spot_come_to_one_state() -> None:
    assert composed(Aspect.IMPAIRMENT, []) == HEALTHY
    together = composed(Aspect.IMPAIRMENT, [Impairment(up=False), Impairment(delay_ns=5), Impairment(delay_ns=6)])
    assert together == Impairment(up=False, delay_ns=11)
    wrong, later, off = ({"off": one, "min_bytes": least} for one, least in ((False, 1), (False, 2), (True, None)))
    assert composed(Aspect.ECN, [wrong, later]) == later
    assert composed(Aspect.ECN, [off, later]) == off
    assert composed(Aspect.TRIM, [False, False]) is False
    assert composed(Aspect.HEADROOM, [7, 3, 5]) == 3


def test_a_wrong_headroom_leaves_nothing_to_change_where_nobody_pauses() -> None:
    assert effects(Topology(), "wrong_headroom", ["p0-t0-0"], {"headroom_bytes": 0}) == {}
