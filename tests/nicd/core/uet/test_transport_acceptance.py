"""What UET must show on whole fabrics: even shares of an incast by credits, and the order of the choices of paths.

Bands, not exact figures: only the order and the rough size count. Figures are means over seeds.
"""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.topology import Topology
from nicd.core.events import RECV_WITH_IMM, Completion
from tests.nicd.core.fabric import READY_NS, Fabric


def topology(nics_per_t0: int, t1s: int, evs: int, **nic: Any) -> Topology:
    return Topology(
        name="uet", planes=1, t0_per_plane=2, t1_per_plane=t1s, nics_per_t0=nics_per_t0, evs_per_qp=evs,
        reserve_evs_per_qp=0, nic={"transport": "uet", **nic}, switch={"forwarding": "ecmp"},
    )  # fmt: skip


def ends_ns(fabric: Fabric) -> list[int]:
    """When each sender was done."""
    done = [
        [event.at_ns for event in events if isinstance(event, Completion) and event.opcode != RECV_WITH_IMM]
        for events in fabric.events.values()
    ]
    return [max(one) - READY_NS for one in done if one]


def incast(senders: int, size: int, control: str) -> tuple[float, float]:
    """(last completion by first, share of the receiver's link) of so many senders to one."""
    fabric = Fabric(topology((senders + 1) // 2, 4, 64, uet_cc=control, uet_path="bitmap"))
    names = list(fabric.topology.nic_names())
    for name in names:
        fabric.memory(name, size)
    for index, name in enumerate(names[1:]):
        fabric.connect(name, names[0], 100 + index, 200 + index)
        fabric.write(name, 100 + index, 0, 0, size, READY_NS)
    assert fabric.finish(READY_NS + 100_000_000)
    assert not fabric.errors()
    assert fabric.total("timeouts") == 0
    ends = ends_ns(fabric)
    return max(ends) / min(ends), senders * size * 8_000_000_000 / max(ends) / fabric.topology.rate_bps


@pytest.mark.parametrize("senders", [3, 7, pytest.param(15, marks=pytest.mark.long)])
def test_credits_share_an_incast_evenly_and_windows_visibly_less(senders: int) -> None:
    """U1."""
    size = 1 << 20
    credit, share = incast(senders, size, "rccc")
    window, _ = incast(senders, size, "nscc")
    both, _ = incast(senders, size, "both")
    assert credit < 1.05
    assert window > 1.05 + (credit - 1)
    assert both < window
    assert share > 0.9, "and the link is full"


def permutation(path: str, size: int, evs: int, seeds: str, slow: bool) -> tuple[float, int]:
    """(mean slowdown, packets sent again) of 16 NICs across eight up-links; `slow`: one has half its rate."""
    total, again = 0.0, 0
    for seed in seeds:
        fabric = Fabric(replace(topology(8, 8, evs, uet_path=path), seed=seed))
        fabric.permutation(8, size)
        fabric.write_all(size, 1)
        if slow:
            fabric.impair("p0-t0-0", 8, Impairment(rate_bps=fabric.topology.rate_bps // 2), READY_NS)
        assert fabric.finish(READY_NS + 60_000_000)
        fabric.verify(size)
        ends = ends_ns(fabric)
        total += sum(ends) / len(ends) / (size * 8_000_000_000 / fabric.topology.rate_bps)
        again += fabric.total("retransmits")
    return total / len(seeds), again


@pytest.mark.long
@pytest.mark.parametrize("slow", [False, True], ids=["whole", "slow link"])
@pytest.mark.parametrize("size", [1 << 20, 1 << 21])
def test_bitmap_before_reps_before_oblivious(size: int, slow: bool) -> None:
    """U3, and U6 with a slow link: in slowdown and in packets sent again."""
    found = [permutation(path, size, 32, "abcd", slow) for path in ("bitmap", "reps", "oblivious")]
    slowdowns, again = [one for one, _ in found], [count for _, count in found]
    assert slowdowns == sorted(slowdowns)
    assert again == sorted(again)
    assert again[0] * 2 < again[2]


def short_messages(control: str, size: int) -> float:
    """Time of an exchange of short messages between all pairs at once, by the time that the bytes take."""
    fabric = Fabric(topology(4, 4, 64, uet_cc=control, uet_path="bitmap"))
    names = list(fabric.topology.nic_names())
    rounds = 49_152 // size
    for name in names:
        fabric.memory(name, size * rounds)
    qpn = 100
    for index, a in enumerate(names):
        for shift in range(1, len(names)):
            fabric.connect(a, names[(index + shift) % len(names)], qpn, qpn + 1_000)
            for number in range(rounds):
                fabric.write(a, qpn, number, number * size, size, READY_NS)
            qpn += 1
    assert fabric.finish(READY_NS + 60_000_000)
    assert not fabric.errors()
    return max(ends_ns(fabric)) / (7 * rounds * size * 8_000_000_000 / fabric.topology.rate_bps)


@pytest.mark.long
@pytest.mark.parametrize("size", [4_096, 8_192])
def test_credits_are_behind_windows_where_all_exchange_short_messages(size: int) -> None:
    """U2: what a sender may speculate covers them, and grants only take room; by a little."""
    window, credit = short_messages("nscc", size), short_messages("rccc", size)
    assert window < credit < 1.1 * window
