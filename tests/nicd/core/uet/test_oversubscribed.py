"""The share of its rate at which a receiver grants: marks and trims inside the fabric lower it, time brings it back."""

import itertools
from typing import Any

import pytest

from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.uet.oversubscribed import WHOLE, Oversubscribed
from tests.nicd.core.fabric import READY_NS, Fabric


def made(**nic: Any) -> tuple[Oversubscribed, int]:
    topology = Topology(name="occc", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=4,
                        reserve_evs_per_qp=0, nic={"transport": "uet", **nic})  # fmt: skip
    settings = nic_config(topology, "h000").settings
    return Oversubscribed(settings, Rng("occc")), settings.base_rtt_ns


def periods(law: Oversubscribed, kind: str, parts: list[int]) -> list[int]:
    """The share after each period of a hundred packets, so many of them "marked", or trimmed "inside" or "last"."""
    found = []
    law.look(0)
    for part in parts:
        for packet in range(100):
            hit = packet < part
            law.saw(law.until_ns - 1, hit and kind == "marked", hit and kind != "marked", kind == "inside")
        law.look(law.until_ns)
        found.append(law.share)
    return found


@pytest.mark.parametrize("kind", ["marked", "last"])
def test_few_marks_and_trims_of_the_last_hop_leave_it_whole(kind: str) -> None:
    law, _ = made()
    assert periods(law, kind, [29 if kind == "marked" else 90] * 20) == [WHOLE] * 20


@pytest.mark.parametrize("part", [1, 10, 60])
def test_the_share_of_trims_inside_is_taken_off_at_once(part: int) -> None:
    law, _ = made()
    once = periods(law, "inside", [part])
    assert once == [WHOLE - part * 10_000]
    many = periods(law, "inside", [part] * 120)
    assert many == sorted(many, reverse=True)
    assert many[-1] == 10_000


@pytest.mark.parametrize("part", [40, 70, 100])
def test_marks_above_the_target_lower_it_in_proportion(part: int) -> None:
    law, _ = made(uet_occc_gain_ppt=1_000)
    above = part * 10_000 - 300_000
    share, wanted = WHOLE, []
    for _ in range(5):
        share -= share * above // WHOLE // 2
        wanted.append(share)
    assert periods(law, "marked", [part] * 5) == wanted


@pytest.mark.parametrize(("doublings", "steps"), [(0, [1, 1, 1, 1, 1]), (2, [1, 2, 4, 4, 4]), (9, [1, 2, 4, 8, 16])])
def test_it_comes_back_by_steps_that_double_as_often_as_set_while_nothing_is_marked(
    doublings: int, steps: list[int]
) -> None:
    law, _ = made(uet_occc_doublings=doublings)
    periods(law, "inside", [100])
    shares = [10_000, *periods(law, "marked", [0] * 5)]
    assert [(later - earlier) // 10_000 for earlier, later in itertools.pairwise(shares)] == steps
    before = law.share
    assert periods(law, "marked", [1]) == [min(WHOLE, before + 10_000)], "a few marks: the step as it is"


def test_it_comes_back_while_nothing_comes() -> None:
    law, rtt_ns = made()
    periods(law, "inside", [100])
    law.look(law.until_ns + 20 * rtt_ns)
    assert 10_000 + 16 * 10_000 <= law.share <= 10_000 + 28 * 10_000
    for hours in (1, 2, 3):
        law.look(hours * 3_600_000_000_000)
    assert law.share == WHOLE


@pytest.mark.parametrize("target", [100, 300, 700])
def test_the_target_is_a_setting(target: int) -> None:
    law, _ = made(uet_occc_target_ppt=target)
    assert periods(law, "marked", [target // 10 - 5] * 40)[-1] == WHOLE
    assert periods(law, "marked", [min(100, target // 10 + 20)] * 40)[-1] < WHOLE


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
