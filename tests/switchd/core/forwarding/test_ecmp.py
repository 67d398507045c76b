"""Which port a packet gets by its address and a hash: tables, spread, polarisation, and what a dead member moves."""

import dataclasses
import random
import statistics
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.naming import nic_address
from mrcfabric.units import NEVER
from switchd.core.events import EcmpMember
from switchd.core.forwarding.ecmp import FLOWS_MAX, EcmpConfig, EcmpForwarding, mixed
from tests.support.roce_frames import roce

LEAF = EcmpConfig(nics=64, first=8, down=(0, 1, 2, 3), nics_per_port=1, up=(4, 5, 6, 7), seed=1)
SPINE = EcmpConfig(nics=64, first=0, down=tuple(range(16)), nics_per_port=4)


def ports(config: EcmpConfig, flows: range, at_ns: int = 10) -> list[int]:
    """The up-link of each of these flows, told apart by their source ports."""
    return [EcmpForwarding(config).route(at_ns, 0, roce(8, 60, 0xC000 + flow))[0] for flow in flows]


@pytest.mark.parametrize("nic", range(8, 12))
def test_a_leaf_has_a_port_for_each_nic_below(nic: int) -> None:
    assert EcmpForwarding(LEAF).route(10, 4, roce(60, nic))[0] == nic - 8


def test_a_spine_has_a_port_for_each_leaf() -> None:
    forwarding = EcmpForwarding(SPINE)
    assert [forwarding.route(10, 0, roce(1, nic))[0] for nic in range(64)] == [nic // 4 for nic in range(64)]


def test_all_others_are_behind_the_uplinks_and_a_flow_keeps_its_own() -> None:
    forwarding = EcmpForwarding(LEAF)
    for nic in (*range(8), *range(12, 64)):
        for sport in range(0xC000, 0xC010):
            found = {forwarding.route(10, 0, roce(9, nic, sport, number=number))[0] for number in range(3)}
            assert len(found) == 1
            assert found <= set(LEAF.up)
    assert sum(forwarding.counters()["ecmp"].values()) == 60 * 16 * 3


@pytest.mark.spec("RFC 8200", "3")
def test_the_packet_loses_a_hop_and_nothing_else() -> None:
    before, after = roce(9, 60, hop_limit=5), roce(9, 60, hop_limit=4)
    port, packet = EcmpForwarding(LEAF).route(10, 0, before)
    assert packet is before
    assert packet == after
    frozen = bytes(roce(9, 60, hop_limit=5))
    assert EcmpForwarding(LEAF).route(10, 0, frozen) == (port, after)
    view = memoryview(bytearray(frozen))
    assert EcmpForwarding(LEAF).route(10, 0, view)[1] is view
    assert EcmpForwarding(LEAF).route(10, 0, memoryview(frozen)) == (port, after)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (b"", "short"),
        (roce(9, 60)[:39], "short"),
        (b"\x45" + bytes(60), "not_ipv6"),
        (roce(9, 64), "no_route"),
        (roce(9, 60)[:24] + bytes(60), "no_route"),
        (roce(9, 60)[:24] + nic_address(0)[:8] + bytes(60), "no_route"),
        (roce(9, 60, hop_limit=1), "hop_limit"),
        (roce(9, 60, hop_limit=0), "hop_limit"),
    ],
)
def test_what_has_no_way_is_a_named_drop(packet: bytes, reason: str) -> None:
    assert EcmpForwarding(LEAF).route(10, 0, packet) == reason


def test_a_spine_has_no_other_way() -> None:
    narrow = dataclasses.replace(SPINE, down=tuple(range(15)))
    assert EcmpForwarding(narrow).route(10, 0, roce(1, 63)) == "no_route"


@given(st.binary(max_size=80), st.integers(0, 200))
def test_no_bytes_raise(noise: bytes, cut: int) -> None:
    packet = bytes(roce(9, 60, size=120))
    for body in (noise, packet[:cut], packet[:40] + noise, noise[:8] + packet[8:]):
        found = EcmpForwarding(LEAF).route(10, 0, body)
        assert isinstance(found, str) or found[0] in (*LEAF.up, *LEAF.down)


def test_what_is_not_udp_is_hashed_by_its_addresses_alone() -> None:
    forwarding = EcmpForwarding(LEAF)
    found = {forwarding.route(10, 0, roce(9, 60, sport, next_header=59))[0] for sport in range(0xC000, 0xC040)}
    assert len(found) == 1


def test_the_memory_of_flows_is_bounded_and_changes_nothing() -> None:
    forwarding = EcmpForwarding(LEAF)
    forwarding._flows = {bytes([0]) * 36 + flow.to_bytes(4, "big"): 4 for flow in range(FLOWS_MAX)}
    assert [forwarding.route(10, 0, roce(8, 60, 0xC000 + flow))[0] for flow in range(50)] == ports(LEAF, range(50))
    assert len(forwarding._flows) <= 50


@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("members", [2, 3, 4, 7, 8, 16, 32])
def test_e1_links_used_follow_the_formula(members: int, crc: bool) -> None:
    """N flows on M links use M (1 - (1 - 1/M)^N) of them in the mean over many seeds and sets of flows."""
    draw = random.Random(members)
    for flows in (members // 2, members, 4 * members):
        used = []
        for _ in range(200):
            config = dataclasses.replace(LEAF, up=tuple(range(4, 4 + members)), seed=draw.getrandbits(64), crc=crc)
            forwarding = EcmpForwarding(config)
            # Source port and destination drawn per flow: CRC tells neighbours apart too well to be random.
            way = [
                forwarding.route(1, 0, roce(8 + flow % 4, draw.randrange(12, 64), draw.randrange(0xC000, 1 << 16)))[0]
                for flow in range(flows)
            ]
            used.append(len(set(way)))
        wanted = members * (1 - (1 - 1 / members) ** flows)
        chance = 4 * (statistics.pvariance(used) / len(used)) ** 0.5
        assert statistics.mean(used) == pytest.approx(wanted, abs=max(0.02 * wanted, chance))


def test_all_members_get_their_part_whatever_the_traffic_looks_like() -> None:
    """Flows that differ by one bit only, as NICs number their ports, are spread like any others."""
    for step in (1, 2, 256, 1024):
        counts = Counter(ports(LEAF, range(0, 1024 * step, step) if step < 64 else range(0, 16384, step // 16)))
        total = sum(counts.values())
        assert all(abs(count - total / 4) < 4 * (total * 3 / 16) ** 0.5 for count in counts.values()), counts


def stages(first: EcmpConfig, second: EcmpConfig, flows: int) -> list[set[int]]:
    """Members of the second group that the flows use which each member of the first sent on."""
    one, two = EcmpForwarding(first), EcmpForwarding(second)
    found: dict[int, set[int]] = {port: set() for port in first.up}
    for flow in range(flows):
        port, packet = one.route(1, 0, roce(8 + flow % 4, 60, 0xC000 + flow))
        found[port].add(two.route(1, 0, packet)[0])
    return list(found.values())


@pytest.mark.parametrize("members", [2, 4, 8, 16])
@pytest.mark.parametrize(("crc", "common"), [(False, True), (True, True), (True, False), (False, False)])
def test_e4_a_second_stage_with_the_same_hash_uses_one_kth_of_its_links(members: int, crc: bool, common: bool) -> None:
    """A common seed does it with any hash; CRC whose seed is only XORed in does it with seeds of their own as well."""
    up = tuple(range(4, 4 + members))
    first = dataclasses.replace(LEAF, up=up, crc=crc, seed=0x1234_5678_9ABC_DEF1)
    second = dataclasses.replace(first, first=0, seed=first.seed if common else 0x0FED_CBA9_8765_4321)
    polarised = crc or common
    assert [len(used) for used in stages(first, second, 20 * members**2)] == [1 if polarised else members] * members


@given(st.integers(2, 32), st.integers(0, (1 << 64) - 1), st.data())
@settings(max_examples=12, deadline=None)
def test_b4_flows_moved_by_a_dead_member(members: int, seed: int, data: st.DataObject) -> None:
    """Modulo moves 1 - 1/n of the flows, resilient hashing those of the dead member alone."""
    dead = data.draw(st.integers(4, 3 + members))
    for resilient in (False, True):
        config = dataclasses.replace(
            LEAF, up=tuple(range(4, 4 + members)), seed=seed, resilient=resilient, failover_ns=100
        )
        forwarding = EcmpForwarding(config)
        flows = [roce(8, 60, 0xC000 + flow) for flow in range(1500)]
        before = [forwarding.route(50, 0, bytes(flow))[0] for flow in flows]
        forwarding.carrier(60, dead, False)
        assert [forwarding.route(160, 0, bytes(flow))[0] for flow in flows] == before, "a frame comes before a timer"
        assert forwarding.next_change_ns == 160
        assert forwarding.follow(159) == []
        assert forwarding.follow(160) == [EcmpMember(160, dead, False, members - 1)]
        after = [forwarding.route(161, 0, bytes(flow))[0] for flow in flows]
        assert dead not in after
        moved = [was for was, now in zip(before, after, strict=True) if was != now]
        if resilient:
            assert set(moved) == {dead}
            left = Counter(now for was, now in zip(before, after, strict=True) if was == dead)
            mean = len(moved) / (members - 1)
            assert all(count < mean + 6 * mean**0.5 + 3 for count in left.values()), "shared out among all others"
        share = 1 / members if resilient else 1 - 1 / members
        assert len(moved) / len(flows) == pytest.approx(share, abs=4.5 * (share * (1 - share) / len(flows)) ** 0.5)
        forwarding.carrier(300, dead, True)
        assert forwarding.follow(400) == [EcmpMember(400, dead, True, members)]
        assert [forwarding.route(401, 0, bytes(flow))[0] for flow in flows] == before
        assert forwarding.moves == 2


def test_a_static_table_does_not_notice() -> None:
    forwarding = EcmpForwarding(LEAF)
    before = [forwarding.route(10, 0, roce(8, 60, 0xC000 + flow))[0] for flow in range(64)]
    forwarding.carrier(20, 4, False)
    assert (forwarding.next_change_ns, forwarding.follow(10**12)) == (NEVER, [])
    assert [forwarding.route(10**12, 0, roce(8, 60, 0xC000 + flow))[0] for flow in range(64)] == before
    assert forwarding.living == LEAF.up


def test_a_cable_that_is_back_in_time_changes_nothing() -> None:
    forwarding = EcmpForwarding(dataclasses.replace(LEAF, failover_ns=100))
    forwarding.carrier(20, 4, False)
    forwarding.carrier(30, 4, True)
    forwarding.carrier(30, 0, False)
    assert [event.at_ns for event in forwarding.follow(1_000)] == [120, 130]
    assert (forwarding.living, forwarding.moves) == (LEAF.up, 2)


def test_a_group_without_a_living_member_is_no_route() -> None:
    forwarding = EcmpForwarding(dataclasses.replace(LEAF, failover_ns=0, resilient=True))
    for port in LEAF.up:
        forwarding.carrier(20, port, False)
    members = [event.members for event in forwarding.follow(20)]
    assert members == list(range(len(LEAF.up) - 1, -1, -1))
    assert forwarding.route(21, 0, roce(8, 60)) == "no_route"
    assert forwarding.route(21, 0, roce(60, 8))[0] == 0


@pytest.mark.parametrize("wrong", [{"nics": 0}, {"nics_per_port": 0}, {"first": -1}, {"up": (3, 4)}, {"down": (0, 0)}])
def test_a_wrong_table_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^ecmp"):
        dataclasses.replace(LEAF, **wrong)  # type: ignore[arg-type]


def filled(flows: list[tuple[int, ...]]) -> list[float]:
    """Max-min fair rates of flows over links of rate 1, by filling up link after link: the test's own oracle."""
    rates, room = [0.0] * len(flows), dict.fromkeys((link for flow in flows for link in flow), 1.0)
    open_flows = set(range(len(flows)))
    while open_flows:
        load = Counter(link for flow in open_flows for link in flows[flow])
        step = min(room[link] / count for link, count in load.items())
        for flow in open_flows:
            rates[flow] += step
        for link, count in load.items():
            room[link] -= step * count
        open_flows = {flow for flow in open_flows if all(room[link] > 1e-9 for link in flows[flow])}
    return rates


def permutation(leaves: int, below: int, draw: random.Random) -> list[int]:
    """Whom each NIC sends to: another one, below another leaf."""
    targets = [0] * (leaves * below)
    places = [draw.sample(range(below), below) for _ in range(leaves)]
    for column in range(below):
        turn = draw.randrange(1, leaves)
        for leaf in range(leaves):
            other = (leaf + turn) % leaves
            targets[leaf * below + column] = other * below + places[other][column]
    return targets


@pytest.mark.parametrize(("leaves", "below", "spines", "qps"), [(4, 4, 4, 1), (3, 8, 8, 1), (4, 4, 2, 1), (3, 4, 4, 4)])
def test_e1_a_hashed_permutation_has_the_rates_of_random_choices(
    leaves: int, below: int, spines: int, qps: int
) -> None:
    """Mean and slowest flow by max-min over the switches' own choices, and over as many drawn at random."""
    draw = random.Random(7)
    means: dict[str, list[float]] = {"hash": [], "drawn": []}
    least: dict[str, list[float]] = {"hash": [], "drawn": []}
    for seed in range(120):
        targets = permutation(leaves, below, draw)
        tables = [
            EcmpForwarding(
                EcmpConfig(
                    nics=leaves * below, first=leaf * below, down=tuple(range(below)), nics_per_port=1,
                    up=tuple(range(below, below + spines)), seed=mixed(seed, (leaf,)),
                )
            )
            for leaf in range(leaves)
        ]  # fmt: skip
        ways: dict[str, list[tuple[int, ...]]] = {"hash": [], "drawn": []}
        for nic, target in enumerate(targets):
            for _ in range(qps):
                packet = roce(nic, target, draw.randrange(0xC000, 1 << 16))
                routed = tables[nic // below].route(1, 0, packet)
                spine = routed[0] - below if not isinstance(routed, str) else -1
                for kind, chosen in (("hash", spine), ("drawn", draw.randrange(spines))):
                    up, down = 1_000 + nic // below * spines + chosen, 2_000 + target // below * spines + chosen
                    ways[kind].append((nic, up, down, 3_000 + target))
        for kind, flows in ways.items():
            rates = filled(flows)
            sums = [sum(rates[nic * qps : nic * qps + qps]) for nic in range(len(targets))]
            means[kind].append(statistics.mean(sums))
            least[kind].append(min(sums))
    for found in (means, least):
        chance = 4 * (sum(statistics.pvariance(values) for values in found.values()) / 120) ** 0.5
        wanted = statistics.mean(found["drawn"])
        assert statistics.mean(found["hash"]) == pytest.approx(wanted, abs=max(0.02 * wanted, chance))


def flows_of(forwarding: EcmpForwarding, at_ns: int, count: int = 64) -> list[int]:
    """The up-links of so many flows, as this forwarding routes them."""
    return [forwarding.route(at_ns, 0, roce(8, 60, 0xC000 + flow))[0] for flow in range(count)]


@pytest.mark.parametrize("crc", [False, True])
def test_a_common_seed_moves_flows_and_its_end_moves_them_back(crc: bool) -> None:
    config = dataclasses.replace(LEAF, common_seed=99, crc=crc)
    forwarding = EcmpForwarding(config)
    before = flows_of(forwarding, 10)
    below = forwarding.route(10, 4, roce(60, 8))
    assert below[0] == 0
    expected = ports(dataclasses.replace(config, seed=99), range(64))
    moved = sum(new != old for new, old in zip(expected, before, strict=True))
    assert forwarding.set_common(20, True) == (64, moved)
    assert moved > 0
    assert flows_of(forwarding, 20) == expected
    assert forwarding.set_common(30, False) == (64, moved)
    assert flows_of(forwarding, 30) == before
    assert forwarding.set_common(40, False) is None


def test_of_several_commands_at_one_instant_the_last_one_counts() -> None:
    forwarding = EcmpForwarding(dataclasses.replace(LEAF, common_seed=99))
    before = flows_of(forwarding, 10)
    assert forwarding.set_common(20, True) is not None
    assert forwarding.set_common(20, False) is None
    assert flows_of(forwarding, 20) == before
    told = forwarding.set_common(30, True)
    assert forwarding.set_common(30, False) is None
    assert forwarding.set_common(30, True) == told


def test_a_common_seed_and_a_dead_member_go_together() -> None:
    config = dataclasses.replace(LEAF, common_seed=99, failover_ns=5, resilient=True)
    forwarding = EcmpForwarding(config)
    flows_of(forwarding, 1)
    forwarding.carrier(2, 5, False)
    assert len(forwarding.follow(19)) == 1
    assert forwarding.set_common(20, True) is not None
    assert forwarding.living == (4, 6, 7)
    assert set(flows_of(forwarding, 20)) == {4, 6, 7}
