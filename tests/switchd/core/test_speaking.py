"""Switches that route for themselves: what packets lose by it, with two classes and lossless, however time is cut."""

from pathlib import Path
from typing import Any

import pytest

from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NS_PER_MS, NS_PER_S
from mrcfabric.wire import pcapng_writer
from mrcfabric.wire.link import ControlFrame
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import ResetSession, SetForwarding, SetRouting
from switchd.core.events import CommandDone
from switchd.core.events_routing import FibRepaired, FibWritten, SessionChange
from switchd.core.forwarding.learned import LearnedForwarding
from switchd.core.speaking import SpeakingLosslessSwitch, SpeakingSwitch, is_for_switch
from tests.support.roce_frames import roce
from tests.support.speaking_fabric import SpeakingFabric
from tests.support.tshark import fields

S, MS = NS_PER_S, NS_PER_MS
PFC = {"lossless": "pfc"}


def table(fabric: SpeakingFabric, name: str) -> dict[str, tuple[int, ...]]:
    forwarding = fabric.switches[name]._plain_forwarding  # type: ignore[attr-defined]
    assert isinstance(forwarding, LearnedForwarding)
    return {str(prefix): ports for prefix, ports in forwarding.table.items()}


@pytest.mark.parametrize("switch", [{}, PFC])
@pytest.mark.parametrize("prefixes", ["rack", "nic"])
def test_a_warm_start_has_the_table_that_a_cold_one_comes_to(switch: dict[str, Any], prefixes: str) -> None:
    warm, cold = (
        SpeakingFabric(3, 2, 3, bgp_start=start, bgp_prefixes=prefixes, **switch) for start in ("warm", "cold")
    )
    before = {name: table(warm, name) for name in warm.switches}
    assert not any(table(cold, name) for name in cold.switches)
    for fabric in (warm, cold):
        fabric.sim.run(15 * S)
    assert {name: table(warm, name) for name in warm.switches} == before
    assert {name: table(cold, name) for name in cold.switches} == before
    assert not any(isinstance(event, FibWritten) for _, event in warm.events)
    for name, core in warm.switches.items():
        assert isinstance(core, SpeakingLosslessSwitch if switch else SpeakingSwitch)
        found = core.counters()["routing"]
        assert found["established"] == len([end for end in warm.topology.ports(name) if end.towards != "nic"])
        assert not found["bad"]


# B2: what is lost meanwhile.


@pytest.mark.parametrize(
    ("uplinks", "switch"),
    [(4, {}), (2, PFC), *(pytest.param(*one, marks=pytest.mark.long) for one in [(2, {}), (4, PFC)])],
)
def test_b2_until_convergence_the_flows_over_the_dead_way_are_lost_and_no_others(
    switch: dict[str, Any], uplinks: int
) -> None:
    fabric = SpeakingFabric(3, uplinks, 2, ecmp_resilient=True, **switch)
    flows = range(0xC000, 0xC100)
    cut_ns = 2 * S
    period_ns = 100_000
    # From a NIC of another rack, and from one of the rack that has lost an up-link.
    towards = fabric.send(2, 0, flows, cut_ns - 2 * MS, cut_ns + 6 * MS, period_ns)
    fabric.send(1, 4, flows, cut_ns - 2 * MS, cut_ns + 6 * MS, period_ns)
    fabric.cut("p0-t0-0", "p0-t1-1", cut_ns)
    fabric.sim.run(3 * S)
    repaired_ns = next(event for event in fabric.told("p0-t1-1", FibRepaired) if not event.up).at_ns
    assert repaired_ns == cut_ns + 1 * MS
    written = [event for event in fabric.told("p0-t0-1", FibWritten) if event.at_ns > cut_ns]
    port = fabric.port("p0-t0-1", "p0-t1-1")
    assert all(port in event.before and port not in event.ports for event in written)
    share = [event for event in written if event.flows]
    (event,) = share
    assert event.flows == len(flows)
    # Resilient: those that moved are those that were lost.
    assert 0 < event.moved < 2 * len(flows) / uplinks
    heard = {number for _, number in fabric.nics[0].heard}
    lost = {(at_ns, sport) for at_ns in towards for sport in flows if at_ns << 16 | sport not in heard}
    dead = {sport for _, sport in lost}
    assert len(dead) == event.moved
    # On their way: at most what was sent a few microseconds before.
    delay_ns = 4 * fabric.topology.link_delay_ns + 30_000
    assert lost == {(at_ns, sport) for at_ns in towards for sport in dead if cut_ns - delay_ns <= at_ns < event.at_ns}
    # Up the dead link itself the loss ends when its own T0 has noticed.
    heard = {number for _, number in fabric.nics[4].heard}
    late = [at_ns for at_ns in towards for sport in flows if at_ns << 16 | sport not in heard]
    assert cut_ns - delay_ns <= min(late) <= max(late) < repaired_ns
    assert max(late) >= repaired_ns - period_ns
    # And all that converges in about detection, twice the work, and the writing.
    assert event.at_ns - cut_ns < 4 * MS


@pytest.mark.parametrize("switch", [{}, PFC])
def test_the_way_comes_back(switch: dict[str, Any]) -> None:
    fabric = SpeakingFabric(3, 3, 1, bfd=True, **switch)
    before = {name: table(fabric, name) for name in fabric.switches}
    fabric.cut("p0-t0-0", "p0-t1-1", 2 * S)
    fabric.sim.run(3 * S)
    assert {name: table(fabric, name) for name in fabric.switches} != before
    fabric.cut("p0-t0-0", "p0-t1-1", 4 * S, up=True)
    fabric.sim.run(20 * S)
    assert {name: table(fabric, name) for name in fabric.switches} == before
    assert [event.up for event in fabric.told("p0-t0-0", FibRepaired)] == [False, True]


def test_a_crashed_switch_comes_back_cold_and_learns() -> None:
    fabric = SpeakingFabric(3, 2, 1)
    before = {name: table(fabric, name) for name in fabric.switches}
    fabric.sim.crash("p0-t1-0", 2 * S)
    fabric.sim.run(20 * S)
    whys = {event.why for event in fabric.told("p0-t0-0", SessionChange) if not event.up}
    assert whys == {"hold_time"}
    assert all(len(ports) == 1 for ports in table(fabric, "p0-t0-0").values())

    def again(start_ns: int) -> SpeakingSwitch:
        core = build_switch(switch_config(fabric.topology, "p0-t1-0"), start_ns)
        assert isinstance(core, SpeakingSwitch)
        assert not core.counters()["fib"]["entries"]
        fabric.switches["p0-t1-0"] = core
        return core

    fabric.sim.restart("p0-t1-0", 25 * S, again)
    fabric.sim.run(60 * S)
    assert {name: table(fabric, name) for name in fabric.switches} == before


def test_a_switch_that_stands_still_loses_its_sessions_and_gets_them_back() -> None:
    fabric = SpeakingFabric(2, 2, 1)
    fabric.sim.command("p0-t1-0", 2 * S, SetForwarding(1, False))
    fabric.sim.command("p0-t1-0", 30 * S, SetForwarding(2, True))
    fabric.sim.run(29 * S)
    assert fabric.switches["p0-t0-0"].counters()["routing"]["established"] == 1
    fabric.sim.run(60 * S)
    assert fabric.switches["p0-t0-0"].counters()["routing"]["established"] == 2


def test_a_nic_without_carrier_is_taken_back_where_each_is_told_of() -> None:
    fabric = SpeakingFabric(2, 2, 2, bgp_prefixes="nic")
    fabric.cut("p0-t0-0", "h001", 2 * S)
    fabric.sim.run(3 * S)
    assert [len(table(fabric, name)) for name in ("p0-t0-1", "p0-t1-0", "p0-t1-1")] == [1, 3, 3]
    fabric.cut("p0-t0-0", "h001", 4 * S, up=True)
    fabric.sim.run(5 * S)
    assert [len(table(fabric, name)) for name in ("p0-t0-1", "p0-t1-0", "p0-t1-1")] == [2, 4, 4]


# Commands.


@pytest.mark.parametrize("switch", [{}, PFC])
def test_commands_reach_the_routing_core(switch: dict[str, Any]) -> None:
    fabric = SpeakingFabric(3, 2, 2, **switch)
    before = {name: table(fabric, name) for name in fabric.switches}
    fabric.sim.command("p0-t1-0", 2 * S, SetRouting(1, shutdown=True))
    fabric.sim.run(3 * S)
    assert set(table(fabric, "p0-t0-0").values()) == {(fabric.port("p0-t0-0", "p0-t1-1"),)}
    fabric.sim.command("p0-t1-0", 3 * S + 1, SetRouting(2))
    fabric.sim.run(4 * S)
    assert {name: table(fabric, name) for name in fabric.switches} == before
    fabric.sim.command("p0-t0-2", 4 * S + 1, SetRouting(3, leaked=["h000"]))
    fabric.sim.run(5 * S)
    assert list(table(fabric, "p0-t1-0").values()).count((0, 2)) == 1
    fabric.sim.command("p0-t0-2", 5 * S + 1, SetRouting(4))
    fabric.sim.command("p0-t0-2", 5 * S + 1, ResetSession(5, fabric.port("p0-t0-2", "p0-t1-1")))
    fabric.sim.run(5 * S + 10 * MS)
    assert [event.why for event in fabric.told("p0-t0-2", SessionChange) if not event.up] == ["reset"]
    fabric.sim.run(10 * S)
    assert {name: table(fabric, name) for name in fabric.switches} == before
    fabric.sim.command("p0-t0-2", 10 * S + 1, ResetSession(6, 0))
    fabric.sim.command("p0-t0-2", 10 * S + 1, SetRouting(7, slower=0))
    fabric.sim.run(11 * S)
    errors = [event.error for event in fabric.told("p0-t0-2", CommandDone)]
    assert errors[:-2] == [None] * (len(errors) - 2)
    assert "leads to no neighbour; 2, 3 do" in errors[-2]
    assert "less than 1" in errors[-1]


@pytest.mark.parametrize("switch", [{}, PFC])
def test_a_switch_whose_routing_core_hangs_forwards_as_before(switch: dict[str, Any]) -> None:
    fabric = SpeakingFabric(2, 1, 1, **switch)
    sent = fabric.send(0, 1, range(0xC000, 0xC004), 2 * S, 12 * S, 50 * MS)
    fabric.sim.command("p0-t1-0", 2 * S, SetRouting(1, hung=True))
    fabric.sim.run(13 * S)
    lost_ns = next(event.at_ns for event in fabric.told("p0-t0-0", SessionChange) if not event.up)
    assert 8 * S <= lost_ns <= 11 * S + MS
    heard = {number >> 16 for _, number in fabric.nics[1].heard}
    # All arrives until the neighbours give the switch up, although nothing is wrong with how it forwards.
    assert heard == {at_ns for at_ns in sent if at_ns < lost_ns}


def test_a_switch_without_a_routing_core_takes_such_commands_and_does_nothing() -> None:
    fabric = SpeakingFabric(2, 1, 1, routing="static")
    fabric.sim.command("p0-t1-0", 2 * S, SetRouting(1, hung=True))
    fabric.sim.command("p0-t1-0", 2 * S, ResetSession(2, 0))
    fabric.sim.run(3 * S)
    assert [event.error for event in fabric.told("p0-t1-0", CommandDone)] == [None, None]
    assert "routing" not in fabric.switches["p0-t1-0"].counters()


# The core itself.


def test_which_packets_are_for_the_switch() -> None:
    packet = roce(0, 1, size=100)
    assert not is_for_switch(packet)
    packet[24] = 0xFE
    assert is_for_switch(packet)
    assert not is_for_switch(packet[:39])
    assert not is_for_switch(ControlFrame(bytes(packet)))


def script(fabric: SpeakingFabric, name: str) -> tuple[list[Input], list[Transmit], list[Any]]:
    """What came to a switch in a run, so that it can be told the same again: frames, its transmits, its events."""
    inputs: list[Input] = []
    core = fabric.switches[name]
    advance = core.advance
    sent: list[Transmit] = []

    def recorded(given: list[Input], until: int) -> list[Transmit]:
        inputs.extend(Input(*one[:4], bytearray(one[4]) if one[1] == Rank.FRAME else one[4]) for one in given)
        out = advance(given, until)
        sent.extend((one[0], one[1], bytes(one[2])) for one in out)
        return out

    core.advance = recorded  # type: ignore[method-assign]
    fabric.cut("p0-t0-0", "p0-t1-0", 3 * S)
    fabric.send(1, 0, range(0xC000, 0xC010), 3 * S - MS, 3 * S + 4 * MS, 200_000)
    fabric.cut("p0-t0-0", "p0-t1-0", 5 * S, up=True)
    fabric.sim.command(name, 4 * S, SetRouting(91, hung=True))
    fabric.sim.command(name, 6 * S, SetRouting(92, slower=3, withdrawn=True))
    fabric.sim.run(8 * S)
    return inputs, sent, [event.record() for event in fabric.told(name, object)]


@pytest.mark.pure
@pytest.mark.parametrize("switch", [{}, PFC])
@pytest.mark.parametrize("name", ["p0-t0-0", "p0-t1-0"])
def test_the_result_does_not_depend_on_how_time_is_cut(switch: dict[str, Any], name: str) -> None:
    fabric = SpeakingFabric(2, 2, 1, bfd=True, bgp_start="cold", **switch)
    inputs, sent, events = script(fabric, name)
    rng = Rng("cut", name)
    for most_ns in (50_000_000, 8 * S):
        core = build_switch(switch_config(fabric.topology, name))
        out: list[Transmit] = []
        at_ns, position = 0, 0
        while at_ns < 8 * S:
            at_ns = min(8 * S, at_ns + 1 + rng.below(most_ns))
            batch = []
            while position < len(inputs) and inputs[position][0] <= at_ns:
                one = inputs[position]
                batch.append(Input(*one[:4], bytearray(one[4]) if one[1] == Rank.FRAME else one[4]))
                position += 1
            out += core.advance(batch, at_ns)
        by_port = [[(one[1], bytes(one[2])) for one in some if one[0] == 1] for some in (out, sent)]
        assert by_port[0] == by_port[1]
        assert [event.record() for event in core.drain_events()] == events


@pytest.mark.pure
@pytest.mark.integration
def test_a_stock_tshark_reads_the_messages_of_a_fabric(tmp_path: Path) -> None:
    fabric = SpeakingFabric(2, 1, 4, bfd=True, bgp_start="cold", bgp_prefixes="nic")
    inputs, _, _ = script(fabric, "p0-t1-0")
    out = pcapng_writer.section("x") + pcapng_writer.interface("t0>t1")
    for one in inputs:
        if one[1] == Rank.FRAME and one[2] == 0:
            out += pcapng_writer.packet(0, one[0], one[4], len(one[4]))
    file = tmp_path / "x.pcapng"
    file.write_bytes(out)
    names = ("bgp.type", "bfd.sta", "_ws.malformed", "tcp.analysis.retransmission", "tcp.analysis.lost_segment",
             "tcp.checksum.status", "bgp.mp_reach_nlri_ipv6_prefix")  # fmt: skip
    rows = fields(file, names, "-o", "tcp.check_checksum:TRUE", scripts=())
    kinds = {kind for row in rows for kind in row["bgp.type"]}
    assert kinds == {"1", "2", "4"}
    assert any(row["bfd.sta"] for row in rows)
    assert not any(row["_ws.malformed"] or row["tcp.analysis.lost_segment"] for row in rows)
    assert {status for row in rows for status in row["tcp.checksum.status"]} == {"1"}
    assert len({prefix for row in rows for prefix in row["bgp.mp_reach_nlri_ipv6_prefix"]}) == 4
