"""Self probes: sent on their schedule, home again, counted; lost, late, trimmed, marked; nobody else's business."""

import itertools
from typing import Any

import pytest

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.errors import ConfigError
from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from mrcfabric.wire.bth import Bth
from mrcfabric.wire.dscp import Dscp, mark_ce
from mrcfabric.wire.layout import ENDPOINT_QP, EXTENSION_OFFSET, ICRC_SIZE, METH_SIZE, RETH_SIZE, WRITE_ONLY
from mrcfabric.wire.packet import parse
from mrcfabric.wire.templates import DataTemplate
from mrcfabric.wire.trim import trim
from nicd.compose import nic_config, nic_settings
from nicd.core.commands import ProbeLinks, ProbeLoop, SetCarrier, SetImpairment
from nicd.core.mrc.self_probe import COUNTS, LOOPS_MAX
from nicd.core.nic import Nic
from tests.nicd.core.fabric import Fabric

SHAPE = Topology(
    name="turns", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)
PERIOD = 20_000
PACKET_BYTES = EXTENSION_OFFSET + METH_SIZE + RETH_SIZE + SHAPE.mtu_bytes + ICRC_SIZE + OVERHEAD_BYTES
TIMEOUT = nic_settings(SHAPE).self_probe_timeout_ns


def probing(rounds: int, *, at_ns: int = 10, **options: Any) -> Fabric:
    fabric = Fabric(SHAPE, **options)
    for name in SHAPE.nic_names():
        fabric.simulator.command(name, at_ns, ProbeLinks(0, PERIOD, rounds))
    return fabric


def rows(fabric: Fabric, nic: str) -> dict[tuple[int, int | None], dict[str, int]]:
    table = fabric.core(nic).link_table()
    named = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    return {(row["plane"], row["t1"]): row for row in named}


def alone(**nic: Any) -> Nic:
    return Nic(nic_config(Topology(**{**SHAPE.to_dict(), "nic": nic}), "h000"))


@pytest.mark.spec("arXiv 2605.04333", "8")
def test_every_probe_of_a_healthy_fabric_comes_home_unhindered() -> None:
    fabric = probing(10)
    fabric.simulator.run(20 * PERIOD)
    links = {None: 2, 0: 4, 1: 4}
    for nic in SHAPE.nic_names():
        found = rows(fabric, nic)
        assert set(found) == {(plane, t1) for plane in (0, 1) for t1 in (None, 0, 1)}
        for (_, t1), row in found.items():
            assert (row["sent"], row["back"], row["lost"], row["skipped"]) == (10, 10, 0, 0)
            unloaded_ns = links[t1] * (SHAPE.link_delay_ns + serialization_ns(PACKET_BYTES, SHAPE.rate_bps))
            assert unloaded_ns <= row["rtt_min_ns"] <= row["rtt_max_ns"] < 2 * unloaded_ns, "at most another probe"
            assert row["rtt_min_ns"] * 10 <= row["rtt_sum_ns"] <= row["rtt_max_ns"] * 10
    assert fabric.simulator.next_due() is None, "an end of the rounds is an end of the work"


def test_rounds_are_spread_and_not_in_step() -> None:
    sent: dict[str, list[int]] = {}
    for name in SHAPE.nic_names():
        nic = Nic(nic_config(SHAPE, name))
        out = nic.advance([Input(10, Rank.COMMAND, 0, 1, ProbeLinks(0, PERIOD, 2))], 4 * PERIOD)
        sent[name] = sorted(arrival_ns for _, arrival_ns, _ in out)
        assert len(out) == 2 * 6
        gaps = [after - before for before, after in itertools.pairwise(sent[name])]
        assert max(gaps) <= PERIOD // 6 + 2
    assert len({times[0] % PERIOD for times in sent.values()}) == len(sent)


def test_the_schedule_does_not_depend_on_how_time_is_cut() -> None:
    command = Input(10, Rank.COMMAND, 0, 1, ProbeLinks(0, PERIOD, 3))
    whole = Nic(nic_config(SHAPE, "h003"))
    expected = [(port, at, bytes(packet)) for port, at, packet in whole.advance([command], 10 * PERIOD)]
    cut = Nic(nic_config(SHAPE, "h003"))
    found = [(port, at, bytes(packet)) for port, at, packet in cut.advance([command], 777)]
    for until in range(1777, 10 * PERIOD + 1000, 1000):
        found += [(port, at, bytes(packet)) for port, at, packet in cut.advance([], min(until, 10 * PERIOD))]
    assert sorted(found) == sorted(expected)
    assert cut.link_table() == whole.link_table()


def test_the_packet_is_a_full_size_trimmable_write_to_oneself() -> None:
    nic = alone(self_probe_period_ns=PERIOD)
    _, _, packet = nic.advance([], 2 * PERIOD)[0]
    parsed = parse(bytes(packet))
    assert parsed.inner.source == parsed.inner.destination == SHAPE.nic_address(0)
    bth = parsed.get(Bth)
    assert (bth.opcode, bth.dest_qp) == (WRITE_ONLY, ENDPOINT_QP)
    assert parsed.payload == bytes(SHAPE.mtu_bytes)
    assert parsed.outer.traffic_class >> 2 == Dscp().trimmable


def test_a_smaller_probe_can_be_asked_for() -> None:
    nic = alone(self_probe_period_ns=PERIOD, self_probe_bytes=64)
    _, _, packet = nic.advance([], 2 * PERIOD)[0]
    assert len(parse(bytes(packet)).payload) == 64


def test_a_cut_link_swallows_probes_and_is_told_by_silence() -> None:
    fabric = probing(10)
    fabric.impair("p1-t0-0", 2, Impairment(up=False), 5)
    fabric.simulator.run(10 * PERIOD + TIMEOUT + PERIOD)
    found = rows(fabric, "h000")
    assert (found[1, 0]["back"], found[1, 0]["lost"], found[1, 0]["silent"]) == (0, 10, 10)
    assert found[1, 1]["lost"] == found[1, None]["lost"] == 0
    assert rows(fabric, "h002")[1, 0]["lost"] == 0, "the other T0's link to the same T1 works"
    planes = fabric.core("h000").counters()["self_probes"]
    assert (planes["1"]["sent"], planes["1"]["lost"]) == (30, 10)


def test_a_port_without_carrier_is_passed_over() -> None:
    nic = alone()
    commands = [
        Input(10, Rank.COMMAND, 0, 1, SetCarrier(0, 1, False)),
        Input(11, Rank.COMMAND, 0, 2, ProbeLinks(0, PERIOD, 4)),
    ]
    assert {port for port, _, _ in nic.advance(commands, 10 * PERIOD)} == {0}
    table = nic.link_table()
    skipped = {(row[0], row[1]): row[table["columns"].index("skipped")] for row in table["rows"]}
    assert skipped[1, None] == 4
    assert skipped[0, None] == 0
    assert table["carrier"] == 1


def echoed(nic: Nic, until: int) -> list[tuple[int, int, bytearray]]:
    return [(port, at, bytearray(packet)) for port, at, packet in nic.advance([], until)]


def counts(nic: Nic) -> dict[str, int]:
    planes = nic.counters()["self_probes"].values()
    return {name: sum(plane[name] for plane in planes) for name in next(iter(planes))}


def test_marks_and_trims_are_no_losses() -> None:
    nic = alone(self_probe_period_ns=PERIOD)
    (port, _, packet), (other, _, second) = echoed(nic, 2 * PERIOD)[:2]
    mark_ce(packet)
    back = [Input(2 * PERIOD + 1, Rank.FRAME, port, 1, packet)]
    back.append(Input(2 * PERIOD + 2, Rank.FRAME, other, 2, trim(second, 256, Dscp().trimmed)))
    nic.advance(sorted(back), 2 * PERIOD + 5)
    found = counts(nic)
    assert (found["back"], found["marked"], found["trimmed"], found["lost"]) == (2, 1, 1, 0)


def test_a_late_probe_is_counted_once_and_only_for_its_way() -> None:
    nic = alone()
    start = [Input(10, Rank.COMMAND, 0, 1, ProbeLinks(0, PERIOD, 1))]
    port, _, packet = nic.advance(start, 3 * PERIOD)[0]
    nic.advance([], 3 * PERIOD + TIMEOUT)
    assert counts(nic)["lost"] == 6
    at = 3 * PERIOD + TIMEOUT
    for copy in (1, 2):
        nic.advance([Input(at + copy, Rank.FRAME, port, copy, bytearray(packet))], at + copy)
    assert counts(nic)["late"] == 1
    assert nic.counters()["drops"]["self_probe"] == 1


def forged(**changes: Any) -> bytearray:
    address = SHAPE.nic_address(0)
    values: dict[str, Any] = {"psn": 0, "msn": 0, "rqmsn": 0, "va": 0, "r_key": 0, "dma_len": 4, **changes}
    source = values.pop("source", address)
    template = DataTemplate(source, address, ENDPOINT_QP, dscp=Dscp())
    return template.build(WRITE_ONLY, ev=0, outer_da=bytes(16), payload=bytes(4), **values)


def test_what_was_not_sent_is_not_taken_for_a_probe() -> None:
    nic = alone(self_probe_period_ns=PERIOD)
    port, _, genuine = echoed(nic, 2 * PERIOD)[0]
    strangers = [
        (port, forged(msn=3), "self_probe"),
        (port, forged(psn=77), "self_probe"),
        (1 - port, genuine, "self_probe"),
        (port, forged(source=SHAPE.nic_address(1)), "endpoint_op"),
    ]
    for number, (at_port, packet, reason) in enumerate(strangers):
        before = nic.counters()["drops"][reason]
        at = 2 * PERIOD + 10 + number
        nic.advance([Input(at, Rank.FRAME, at_port, number, packet)], at)
        assert nic.counters()["drops"][reason] == before + 1
    assert counts(nic)["back"] == 0


def test_the_number_of_probes_out_is_bounded() -> None:
    nic = alone(self_probes_outstanding_max=4)
    nic.advance([Input(10, Rank.COMMAND, 0, 1, ProbeLinks(0, PERIOD, 2))], 3 * PERIOD)
    assert nic.link_table()["waiting"] == 4
    found = counts(nic)
    assert found["skipped"] > 0
    assert found["sent"] + found["skipped"] == 12


def test_probing_can_be_stopped_and_begun_again() -> None:
    nic = alone(self_probe_period_ns=PERIOD)
    nic.advance([Input(PERIOD, Rank.COMMAND, 0, 1, ProbeLinks(0, 0))], 5 * PERIOD + TIMEOUT)
    assert nic.next_timeout() is None
    before = counts(nic)["sent"]
    again = Input(6 * PERIOD + TIMEOUT, Rank.COMMAND, 0, 2, ProbeLinks(0, PERIOD, 2))
    nic.advance([again], 20 * PERIOD + TIMEOUT)
    assert counts(nic)["sent"] == before + 12


def test_nobody_probes_unasked() -> None:
    assert alone().next_timeout() is None


@pytest.mark.parametrize("knobs", [{"self_probe_period_ns": 5}, {"self_probe_bytes": 4096, "mtu": 1024}])
def test_knobs_that_make_no_sense_are_refused(knobs: dict[str, int]) -> None:
    topology = {**SHAPE.to_dict(), "mtu_bytes": knobs.pop("mtu", 4096), "nic": knobs}
    with pytest.raises(ConfigError, match=r"nic\.self_probe"):
        nic_settings(Topology(**topology))


def test_a_lossy_port_of_ones_own_shows_on_every_way_of_its_plane() -> None:
    fabric = probing(40)
    fabric.simulator.command("h001", 5, SetImpairment(0, 0, Impairment(loss_ppm=300_000)))
    fabric.simulator.run(40 * PERIOD + TIMEOUT + PERIOD)
    found = rows(fabric, "h001")
    assert all(found[0, t1]["lost"] > 3 for t1 in (None, 0, 1))
    assert all(found[1, t1]["lost"] == 0 for t1 in (None, 0, 1))


def looped(fabric: Fabric, nic: str) -> dict[tuple[int, ...], dict[str, int]]:
    return {tuple(row[:4]): dict(zip(COUNTS, row[4:], strict=True)) for row in fabric.core(nic).link_table()["loops"]}


OUT, HOME = (0, 1, 1, 0), (0, 0, 1, 1)
"""Loops of a NIC below T0 0 that cross its link to T1 1 of plane 0 upwards, and downwards."""


@pytest.mark.spec("arXiv 2605.04333", "8")
@pytest.mark.parametrize(("end", "port", "silent"), [("p0-t0-0", 3, OUT), ("p0-t1-1", 0, HOME)])
def test_loops_tell_the_direction_of_a_fault(end: str, port: int, silent: tuple[int, ...]) -> None:
    fabric = Fabric(SHAPE)
    fabric.impair(end, port, Impairment(up=False), 5)
    for loop in (OUT, HOME):
        fabric.simulator.command("h001", 10, ProbeLoop(0, *loop, 20, 1_000))
    fabric.simulator.run(100_000 + TIMEOUT)
    found = looped(fabric, "h001")
    assert {loop: counts["back"] for loop, counts in found.items()} == {
        loop: 0 if loop == silent else 20 for loop in (OUT, HOME)
    }
    assert fabric.simulator.next_due() is None


def test_a_loop_counts_from_zero_each_time_and_takes_its_turn() -> None:
    fabric = Fabric(SHAPE)
    for at_ns in (10, 200_000):
        for loop in (OUT, HOME):
            fabric.simulator.command("h000", at_ns, ProbeLoop(0, *loop, 5, 2_000))
    fabric.simulator.run(15_000)
    table = fabric.core("h000").link_table()
    assert table["loops_left"] == 2
    fabric.simulator.run(400_000)
    assert [counts["sent"] for counts in looped(fabric, "h000").values()] == [5, 5]
    assert fabric.core("h000").link_table()["loops_left"] == 0
    assert fabric.core("h000").link_table()["rows"] == []


def test_loops_are_bounded_and_the_oldest_counts_are_forgotten() -> None:
    big = Topology(**{**SHAPE.to_dict(), "t1_per_plane": 12})
    nic = Nic(nic_config(big, "h000"))
    pairs = [(out, home) for out in range(12) for home in range(12)]
    for number, (out, home) in enumerate(pairs[:LOOPS_MAX]):
        nic.advance([Input(10 + number, Rank.COMMAND, 0, number, ProbeLoop(0, 0, out, 1, home, 1, 1))], 10 + number)
    nic.advance([], 10_000)
    nic.advance([Input(20_000, Rank.COMMAND, 0, 999, ProbeLoop(0, 0, 11, 1, 11, 3, 1_000_000))], 20_000)
    nic.advance([Input(20_001, Rank.COMMAND, 0, 1000, ProbeLoop(0, 0, 11, 1, 11, 3, 1_000_000))], 20_001)
    assert [done.error for done in nic.drain_events()][-2:] == [None, "this loop is being tried"]
    loops = nic.link_table()["loops"]
    assert len(loops) == LOOPS_MAX
    assert loops[-1][:4] == [0, 11, 1, 11]
