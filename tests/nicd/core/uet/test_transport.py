"""The UET transport as a whole: what it drops, that nothing a peer sends raises, its counters, and whole fabrics."""

import itertools
from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.naming import nic_address
from mrcfabric.node import Input, Rank
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import mark_ce
from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet import Write, uet_sum_ok
from mrcfabric.wire.uet_layout import FLAG_SYN, SES_EOM, SES_SOM
from mrcfabric.wire.uet_templates import UetTemplate
from nicd.core.commands import ConnectQp, CreateQp, DestroyQp, ModifyQp
from nicd.core.events import Completion
from nicd.core.stats import DROP_REASONS, OUTCOMES
from nicd.core.transports import TRANSPORTS
from nicd.core.uet.uet_stats import UET_DROP_REASONS
from tests.nicd.core.fabric import READY_NS, Fabric
from tests.nicd.core.uet.pipe import QPN_A, QPN_B, R_KEY, TARGET_VA, Pipe, Seen
from tests.support.uet_packets import one_of_each_uet

MODES = [
    dict(zip(("uet_mode", "uet_cc", "uet_path", "planes"), mixture, strict=True))
    for mixture in itertools.product(
        ("rud", "rod"), ("nscc", "rccc", "both"), ("reps", "bitmap", "oblivious"), (1, 4)
    )
]  # fmt: skip


def test_it_is_known_by_its_name() -> None:
    assert TRANSPORTS["uet"].name == "uet"


def arrive(pipe: Pipe, packet: bytearray) -> dict[str, int]:
    """What is dropped in NIC 1 when a packet comes."""
    pipe.now += 1_000
    before = dict(pipe.counter(1, "drops"))
    pipe.nics[1].advance([Input(pipe.now, int(Rank.FRAME), 0, pipe.now, packet)], pipe.now)
    return {name: count - before[name] for name, count in pipe.counter(1, "drops").items() if count != before[name]}


def request(source: int = 0, destination: int = 1, flags: int = FLAG_SYN, qpn: int = QPN_B, **ses: int) -> bytearray:
    write = Write(SES_SOM | SES_EOM, 0, 1, qpn >> 12, qpn & 0xFFF, TARGET_VA, QPN_A, R_KEY, 0, 0, 4)._replace(**ses)
    template = UetTemplate(nic_address(source), nic_address(destination))
    return template.request(0xC000, 2, flags, 0, 77, 5, 0, write, b"1234")


def test_what_is_for_nobody_is_dropped_by_reason() -> None:
    pipe = Pipe()
    pipe.run(100)
    spoiled = request()
    spoiled[-6] ^= 1
    assert arrive(pipe, spoiled) == {"icrc": 1}
    assert arrive(pipe, request()[:70]) == {"truncated": 1}
    assert arrive(pipe, request(destination=0)) == {"inner_destination": 1}
    assert arrive(pipe, request(qpn=99)) == {"unknown_qp": 1}
    assert arrive(pipe, request(source=3)) == {"inner_source": 1}
    assert arrive(pipe, request(initiator=9)) == {"message_mismatch": 1}
    assert arrive(pipe, request(flags=0)) == {"uet_unknown_context": 1}
    template = UetTemplate(nic_address(0), nic_address(1))
    assert arrive(pipe, template.nack(1, 0, 1, 2, 3, 4)) == {"uet_unknown_context": 1}
    assert arrive(pipe, template.control(1, 6, 0, 2, 3, 4)) == {"uet_unknown_context": 1}
    assert arrive(pipe, trim(template.control(1, 6, 0, 2, 3, 4), 128, 12)) == {"trimmed_control": 1}
    assert arrive(pipe, request()) == {}
    assert arrive(pipe, template.control(1, 9, FLAG_SYN, 2, 5, 0)) == {"uet_control": 1}
    assert pipe.counter(1, "bytes_placed") == 4


def test_a_qp_that_is_not_ready_takes_nothing_and_later_all() -> None:
    pipe = Pipe(connect=False)
    pipe.connect(QPN_A, QPN_B)
    pipe._commands[1] = [entry for entry in pipe._commands[1] if entry.at_ns == 1]
    late = [entry for entry in pipe._commands[0] if entry.at_ns == 2]
    assert late
    pipe.write(9_000)
    pipe.run(20_000)
    assert pipe.counter(1, "drops", "unknown_qp") > 0

    for command in (CreateQp(0, QPN_B), ConnectQp(0, QPN_B, 0, QPN_A, 1, 2)):
        pipe.command(1, 20_010, command)
    pipe.run(2_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert pipe.target()[:9_000] == bytes(pipe.source[:9_000])


def hostile(seed: int, rounds: int, **nic: Any) -> None:
    """Packets of a peer with some bytes changed and their sum made good: whatever they say, nothing raises."""
    rng = Rng("hostile", seed)

    def fate(at_ns: int, side: int, seen: Seen) -> bool | bytearray:
        if not rng.chance(300_000):
            return True
        packet = bytearray(seen.packet)
        for _ in range(1 + rng.below(3)):
            packet[48 + rng.below(min(60, len(packet) - 52))] = rng.below(256)
        whole = UetTemplate(bytes(16), bytes(16))
        packet[-4:] = whole._sum(packet[48:-4], 0).to_bytes(4, "big")  # type: ignore[misc]
        assert uet_sum_ok(packet)
        return packet

    for number in range(rounds):
        pipe = Pipe(fate, mtu=256, size=1 << 16, retry_linear=1, retry_exponential=0, **nic)
        pipe.write(20_000, imm=number)
        pipe.write(9_000, side=1, imm=3)
        for raw in one_of_each_uet():
            packet = bytearray(raw)
            packet[8:40] = nic_address(0) + nic_address(1)
            pipe.nics[1].advance([], 20)
            assert pipe.transport(1).receive(20, 0, packet) in (*OUTCOMES, *DROP_REASONS, *UET_DROP_REASONS)
            pipe.transport(1).qpn_of(packet)
        pipe.run(5_000_000)
        for side, qpn in ((0, QPN_A), (1, QPN_B)):
            pipe.command(side, pipe.now + 10, ModifyQp(0, qpn, "error"))
            pipe.command(side, pipe.now + 20, DestroyQp(0, qpn))
        pipe.run(pipe.now + 1_000_000_000)
        assert pipe.counter(0, "windows", "inflight_bytes") == pipe.counter(1, "windows", "inflight_bytes") == 0
        assert pipe.quiet


@pytest.mark.parametrize("nic", [{}, {"uet_mode": "rod"}, {"uet_cc": "both", "planes": 2}])
def test_nothing_that_a_peer_sends_raises(nic: dict[str, Any]) -> None:
    hostile(1, 3, **nic)


def harsh(seed: int, **nic: Any) -> None:
    """Both ways at once, with loss, damage, doubles, delays, trims and marks: every byte once, and then silence."""
    rng = Rng("harsh", seed)
    loss, double, late, cut, mark, spoil = (rng.below(4) * 30_000 for _ in range(6))

    def fate(at_ns: int, side: int, seen: Seen) -> bool | bytearray:
        packet = bytearray(seen.packet)
        if rng.chance(loss):
            return False
        if rng.chance(spoil):
            packet[48 + rng.below(len(packet) - 48)] ^= 1 << rng.below(8)
        elif seen.is_data and rng.chance(cut):
            return trim(packet, 128, 16 if rng.below(2) else 12)
        elif seen.is_data and rng.chance(mark):
            mark_ce(packet)
        return packet

    def copies(seen: Seen) -> tuple[int, ...]:
        first = rng.below(20_000) if rng.chance(late) else 0
        return (first, rng.below(9_000)) if rng.chance(double) else (first,)

    pipe = Pipe(fate, mtu=1024, size=400_000, **nic)
    pipe.copies = copies
    offset, number = 0, 0
    while offset < 400_000:
        length = min(400_000 - offset, 1 + rng.below(60_000))
        imm = number if rng.below(2) else None
        pipe.write(length, wr_id=number, offset=offset, imm=imm, at_ns=10 + 900 * number)
        offset, number = offset + length, number + 1
    for place in range(5):
        pipe.write(9_000, wr_id=place, offset=9_000 * place, side=1, imm=place, at_ns=20 + place)
    pipe.run(400_000_000)
    assert pipe.target() == bytes(pipe.source)
    assert pipe.target(0)[:45_000] == bytes(pipe.source[:45_000])
    assert sorted(done.wr_id for done in pipe.completions()) == list(range(number))
    assert {done.status for done in pipe.completions() + pipe.completions(1)} == {"ok"}
    told = [done.imm for done in pipe.completions(1, "recv_with_imm")]
    assert told == sorted(told), "immediates in the order of posting"  # type: ignore[type-var]
    assert pipe.counter(1, "bytes_placed") == 400_000
    assert [pipe.counter(side, "windows", "inflight_bytes") for side in (0, 1)] == [0, 0]
    assert pipe.quiet


@pytest.mark.parametrize("number", range(0, len(MODES), 4))
def test_every_byte_arrives_once_whatever_happens_on_the_way(number: int) -> None:
    harsh(number, **MODES[number])


@pytest.mark.long
@pytest.mark.parametrize("number", range(5 * len(MODES)))
def test_every_byte_arrives_once_over_many_seeds(number: int) -> None:
    harsh(1_000 + number, **MODES[number % len(MODES)])


def test_the_result_does_not_depend_on_how_time_is_cut() -> None:
    seen = []
    for step in (1_000, 333, 50):
        pipe = Pipe(uet_cc="both", planes=2)
        pipe.step_ns = step
        pipe.write(1 << 17, imm=3)
        pipe.write(40_000, side=1, at_ns=700)
        pipe.run(300_000)
        seen.append([(at, side, bytes(one.packet)) for at, side, one in sorted(pipe.log, key=lambda entry: entry[:2])])
    assert seen[0] == seen[1] == seen[2]


def fabric(**nic: Any) -> Fabric:
    return Fabric(
        Topology(
            name="uet", planes=2, t0_per_plane=2, t1_per_plane=4, nics_per_t0=2, evs_per_qp=32, reserve_evs_per_qp=0,
            nic={"transport": "uet", **nic}, switch={"forwarding": "ecmp"},
        )
    )  # fmt: skip


@pytest.mark.parametrize("path", ["oblivious", "bitmap", "reps"])
@pytest.mark.parametrize("cc", ["nscc", "rccc", "both"])
def test_a_whole_fabric_carries_every_byte_over_switches_that_hash(cc: str, path: str) -> None:
    made = fabric(uet_cc=cc, uet_path=path)
    size = 300_000
    made.permutation(2, size)
    made.write_all(size, 5)
    assert made.finish(READY_NS + 3_000_000)
    made.verify(size)
    assert not made.errors()
    assert made.total("timeouts") == 0


def test_switches_that_hash_trim_uet_packets() -> None:
    """Seven to one: headers of trimmed packets arrive, each is one NACK and one retransmission, and nothing is lost."""
    made = Fabric(
        Topology(
            name="incast", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=4, evs_per_qp=32, reserve_evs_per_qp=0,
            nic={"transport": "uet"}, switch={"forwarding": "ecmp"},
        )
    )  # fmt: skip
    size = 200_000
    names = list(made.topology.nic_names())
    for name in names:
        made.memory(name, size)
    for index, name in enumerate(names[1:]):
        made.connect(name, names[0], 100 + index, 200 + index)
        made.write(name, 100 + index, 0, 0, size // 8 * 8 if index else size, READY_NS)
    assert made.finish(READY_NS + 5_000_000)
    assert not made.errors()
    assert made.total("trims") == made.total("nacks_received") > 20
    assert sum(made.core(name).counters()["retransmits"]["trim"] for name in names) == made.total("trims")
    assert made.total("timeouts") == 0
    assert {done.status for done in made.found(Completion)} == {"ok"}


@pytest.mark.parametrize("path", ["bitmap", "reps", "oblivious"])
def test_a_dead_up_link_costs_retransmissions_and_no_qp(path: str) -> None:
    made = fabric(uet_path=path)
    size = 400_000
    made.permutation(2, size)
    made.write_all(size, 4)
    made.impair("p0-t0-0", 3, Impairment(up=False), READY_NS + 4_000)
    assert made.finish(READY_NS + 20_000_000)
    made.verify(size)
    assert not made.errors()
