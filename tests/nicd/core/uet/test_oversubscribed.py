"""The share of its rate at which a receiver grants: falls with trims inside the fabric, rises without, has a floor."""

import itertools
from typing import Any

import pytest

from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.uet.oversubscribed import WHOLE, Oversubscribed
from tests.nicd.core.fabric import READY_NS, Fabric


def made(**nic: Any) -> tuple[Oversubscribed, int]:
    topology = Topology(name="occc", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=4,
                        reserve_evs_per_qp=0, nic={"transport": "uet", **nic})  # fmt: skip
    settings = nic_config(topology, "h000").settings
    return Oversubscribed(settings), settings.base_rtt_ns


def periods(law: Oversubscribed, rtt_ns: int, first: int, shares: list[int]) -> list[int]:
    """The share after each base RTT of a hundred packets, of which so many came trimmed."""
    found = []
    for number, trimmed in enumerate(shares):
        at_ns = (first + number) * rtt_ns
        for packet in range(100):
            law.saw(at_ns + packet, packet < trimmed)
        law.saw(at_ns + rtt_ns - 1, False)
        found.append(law.share)
    return found


def test_without_trims_it_stays_whole() -> None:
    law, rtt_ns = made()
    assert periods(law, rtt_ns, 1, [0] * 20) == [WHOLE] * 20


@pytest.mark.parametrize("trimmed", [40, 60, 100])
def test_above_the_target_it_falls_down_to_its_floor_and_then_comes_back_by_steps(trimmed: int) -> None:
    law, rtt_ns = made()
    falling = periods(law, rtt_ns, 1, [trimmed] * 80)
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == 10_000
    rising = periods(law, rtt_ns, 81, [0] * 150)
    steps = [later - earlier for earlier, later in itertools.pairwise(rising)]
    assert set(steps[10:]) <= {0, 10_000}
    assert rising[-1] == WHOLE


@pytest.mark.parametrize("target", [100, 300, 700])
def test_the_target_is_a_setting(target: int) -> None:
    law, rtt_ns = made(uet_occc_target_ppt=target)
    assert periods(law, rtt_ns, 1, [target // 10 - 5] * 40)[-1] == WHOLE
    assert periods(law, rtt_ns, 41, [min(100, target // 10 + 20)] * 40)[-1] < WHOLE


def behind_one_link(**nic: Any) -> tuple[int, int]:
    """(packets trimmed, when all was done) of four pairs of NICs whose packets share one up-link."""
    topology = Topology(
        name="occc", planes=1, t0_per_plane=2, t1_per_plane=1, nics_per_t0=4, evs_per_qp=16, reserve_evs_per_qp=0,
        nic={"transport": "uet", "uet_cc": "rccc", "uet_path": "bitmap", **nic}, switch={"forwarding": "ecmp"},
    )  # fmt: skip
    fabric = Fabric(topology)
    size = 1 << 19
    fabric.permutation(4, size)
    fabric.write_all(size, 1)
    assert fabric.finish(READY_NS + 60_000_000)
    fabric.verify(size)
    return fabric.total("trims"), fabric.simulator.now_ns


def test_receivers_behind_one_link_have_fewer_packets_trimmed() -> None:
    without, with_it = behind_one_link(), behind_one_link(uet_occc=True)
    assert with_it[0] * 2 < without[0]
    assert with_it[1] < 2 * without[1], "what was lowered comes back by small steps"
