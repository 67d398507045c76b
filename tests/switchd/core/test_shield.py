"""SHIELD's notices in virtual time: who is told of a lost way and of congestion, when, and what they do about it."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from mrcfabric.credit_egress_config import DELIMITER_BYTES
from mrcfabric.lids import base_lid
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, NS_PER_S
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_ONLY
from mrcfabric.wire.routing_notice import BACK, CONGESTED, LOST, encode, parse
from nicd.core.events import STATUS_OK, Completion
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from switchd.compose import switch_config
from switchd.core.build import build_switch
from switchd.core.commands import SetCarrier
from switchd.core.credited import CreditSwitch
from switchd.core.events import EcmpMember, WayAvoided, WayLost
from switchd.core.shield import AGAIN_NS, TIMES

CUT_NS, AFTER_NS, HEAL_NS = 100_000, 20_000, 600_000
VA = 1 << 20


def topology(nic: dict[str, Any] | None = None, **switch: Any) -> Topology:
    return Topology(
        name="shield", planes=1, t0_per_plane=3, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "rc_timeout": 6, "rc_retry_cnt": 7, **(nic or {})},
        switch={"forwarding": "lft", "lossless": "credits", "shield": True, "flfn": True, "shield_ns": AFTER_NS,
                **switch},
    )  # fmt: skip


class Run:
    """One NIC writes to another, message after message, while something breaks."""

    def __init__(self, source: int, target: int, messages: int = 60, every_ns: int = 15_000, **switch: Any) -> None:
        self.topology = topology(**switch)
        self.told: list[tuple[str, Any]] = []
        self.fabric = SimulatedFabric(self.topology, on_events=self._note)
        for node, peer in ((source, target), (target, source)):
            name = f"h00{node}"
            connect = {"qpn": 16, "peer_index": peer, "peer_qpn": 16, "psn_send": 0, "psn_receive": 0}
            self.fabric.command(name, "register_memory", {"va": VA, "length": 1 << 16, "region_id": 1, "r_key": 1}, 1)
            self.fabric.command(name, "create_qp", {"qpn": 16}, 2)
            self.fabric.command(name, "connect_qp", connect, 3)
            self.fabric.command(name, "modify_qp", {"qpn": 16, "state": "rts"}, 4)
        work = {"qpn": 16, "local_region": 1, "local_va": VA, "length": 4_096, "remote_va": VA, "r_key": 1, "imm": None}
        for number in range(messages):
            self.fabric.command(f"h00{source}", "post_write", {**work, "wr_id": number}, 10_000 + every_ns * number)

    def _note(self, node: str, events: list[Any]) -> None:
        self.told += [(node, event) for event in events]

    def found(self, kind: type) -> list[tuple[str, Any]]:
        return [(node, event) for node, event in self.told if isinstance(event, kind)]

    def lost(self, *nodes: str) -> int:
        ports = [port for node in nodes for port in self.fabric.counters(node)["ports"].values()]
        return sum(port["drops"]["link_down"] for port in ports)


def notice_ns(there: Topology) -> int:
    """From the decision until a notice about one range is there, over a wire that is free."""
    size = 4 + 4 + 2 + DELIMITER_BYTES
    return -(-size * 8 * NS_PER_S // there.rate_bps) + there.link_delay_ns


# The way of NIC 0 to NIC 3 (LID 4) is over T1 1, whose link to T0 1 is cut.
LINK = "p0-t1-1~p0-t0-1"


def test_a_t1_without_a_way_to_a_t0_tells_the_others_and_they_go_round_it() -> None:
    run = Run(0, 3)
    run.fabric.inject(once("link_down", LINK, at_ns=CUT_NS, until_ns=HEAL_NS))
    run.fabric.run(8_000_000)
    heard_ns = AFTER_NS + notice_ns(run.topology)
    lids = run.topology.nics_per_t0
    assert run.found(WayLost) == [
        ("p0-t1-1", WayLost(CUT_NS + AFTER_NS, 1, False, lids)),
        ("p0-t1-1", WayLost(HEAL_NS + AFTER_NS, 1, True, lids)),
    ]
    told = run.found(WayAvoided)
    assert [(node, one.port, one.avoided, one.lids) for node, one in told] == [
        (node, 3, avoided, lids) for avoided in (True, False) for node in ("p0-t0-0", "p0-t0-2")
    ]
    # Nothing else leaves towards T0 2, so its notice is there to the nanosecond.
    assert [one.at_ns for node, one in told if node == "p0-t0-2"] == [CUT_NS + heard_ns, HEAL_NS + heard_ns]
    done = [one for _, one in run.found(Completion)]
    assert [one.status for one in done] == [STATUS_OK] * 60
    # Six times at intervals that double fit in between; then there is something else to say.
    assert AGAIN_NS * ((1 << 5) - 1) < HEAL_NS - CUT_NS < AGAIN_NS * ((1 << 6) - 1)
    assert 1 <= run.lost("p0-t1-1") <= heard_ns // 15_000 + 1, "what left before the neighbours knew"
    after = run.fabric.counters("p0-t1-1")
    assert after["notices"]["sent"] == {"lost": 2 * 6, "back": 2 * TIMES, "congested": 0}
    assert run.fabric.counters("p0-t0-0")["notices"]["avoided_lids"] == 0
    assert after["lft"][1] > 0, "after the healing the way is used again"


def test_without_notices_nobody_knows_and_all_is_lost_until_the_link_is_back() -> None:
    run = Run(0, 3, flfn=False)
    run.fabric.inject(once("link_down", LINK, at_ns=CUT_NS, until_ns=HEAL_NS))
    run.fabric.run(4_000_000)
    assert run.found(WayLost) == run.found(WayAvoided) == []
    with_notices = Run(0, 3)
    with_notices.fabric.inject(once("link_down", LINK, at_ns=CUT_NS, until_ns=HEAL_NS))
    with_notices.fabric.run(4_000_000)

    def first(one: Run) -> int:
        """When something arrives again."""
        return min(done.at_ns for _, done in one.found(Completion) if done.at_ns > CUT_NS + 20_000)

    assert first(with_notices) < HEAL_NS < first(run)


@pytest.mark.parametrize("flfn", [False, True])
def test_a_t1_dies_and_its_t0s_see_it_themselves(flfn: bool) -> None:
    """A dead neighbour is a dead link: local repair is enough, and nobody is left to say anything."""
    run = Run(0, 3, flfn=flfn)
    run.fabric.inject(once("switch_reboot", "p0-t1-1", at_ns=CUT_NS, until_ns=HEAL_NS))
    run.fabric.run(3_000_000)
    seen = CUT_NS + run.topology.link_delay_ns + AFTER_NS
    back = HEAL_NS + run.topology.link_delay_ns + AFTER_NS
    assert run.found(EcmpMember) == [
        (f"p0-t0-{number}", EcmpMember(at_ns, 3, up, members))
        for at_ns, up, members in ((seen, False, 1), (back, True, 2)) for number in range(3)
    ]  # fmt: skip
    assert run.found(WayLost) == []
    assert {one.status for _, one in run.found(Completion)} == {STATUS_OK}
    assert len(run.found(Completion)) == 60
    late = [one.at_ns for _, one in run.found(Completion) if seen < one.at_ns < HEAL_NS]
    assert late, "the flow goes on while the switch is dead"


def test_a_t0_dies_and_all_t1s_say_so_and_when_it_is_back_they_say_that() -> None:
    run = Run(0, 3)
    run.fabric.inject(once("switch_reboot", "p0-t0-1", at_ns=CUT_NS, until_ns=HEAL_NS))
    run.fabric.run(6_000_000)
    delay_ns, lids = run.topology.link_delay_ns, run.topology.nics_per_t0
    assert run.found(WayLost) == [
        (f"p0-t1-{number}", WayLost(at_ns + delay_ns + AFTER_NS, 1, up, lids))
        for at_ns, up in ((CUT_NS, False), (HEAL_NS, True)) for number in range(2)
    ]  # fmt: skip
    told = run.found(WayAvoided)
    # Both T1s are left out, and then the table counts.
    assert {(node, one.port, one.avoided) for node, one in told} == {
        (node, port, avoided) for avoided in (True, False) for node in ("p0-t0-0", "p0-t0-2") for port in (2, 3)
    }
    assert run.fabric.counters("p0-t0-0")["notices"]["avoided_lids"] == 0
    assert {one.status for _, one in run.found(Completion)} == {STATUS_OK}, "it goes on when the T0 is back"


def test_a_t0_that_was_dead_itself_is_told_what_it_missed() -> None:
    run = Run(0, 3)
    run.fabric.inject(once("link_down", LINK, at_ns=CUT_NS, until_ns=HEAL_NS, fault_id="cut"))
    run.fabric.inject(once("switch_reboot", "p0-t0-2", at_ns=CUT_NS + 100_000, until_ns=CUT_NS + 200_000))
    begins_ns = CUT_NS + 200_000
    run.fabric.run(begins_ns - 1)
    said = [CUT_NS + AFTER_NS + AGAIN_NS * ((1 << number) - 1) for number in range(TIMES)]
    before = sum(at_ns < begins_ns for at_ns in said)
    dead = sum(CUT_NS + 100_000 < at_ns < begins_ns for at_ns in said)
    sent = run.fabric.counters("p0-t1-1")["notices"]["sent"]["lost"]
    # Of the dead T0 itself the only one left is told, too.
    lost_ns = CUT_NS + 100_000 + run.topology.link_delay_ns + AFTER_NS
    more = sum(lost_ns + AGAIN_NS * ((1 << number) - 1) < begins_ns for number in range(TIMES))
    assert (sent, dead) == (2 * before - 1 + more, 1), "who is dead is told nothing"
    run.fabric.run(3_000_000)
    told = [one.at_ns for node, one in run.found(WayAvoided) if node == "p0-t0-2" and one.avoided]
    heard_ns = notice_ns(run.topology)
    assert told[0] == CUT_NS + AFTER_NS + heard_ns
    # The T1 sees it one link delay after its birth, and says so at once, behind the flow control that begins the link.
    soonest_ns = begins_ns + run.topology.link_delay_ns + heard_ns
    assert soonest_ns <= told[1] < soonest_ns + 100


@pytest.mark.parametrize("lost", [1, 2, TIMES - 1])
def test_notices_that_get_lost_are_said_again(lost: int) -> None:
    run = Run(0, 3, messages=0)
    run.fabric.inject(once("link_down", LINK, at_ns=CUT_NS, until_ns=9_000_000, fault_id="cut"))
    said = [CUT_NS + AFTER_NS + AGAIN_NS * ((1 << number) - 1) for number in range(TIMES)]
    run.fabric.inject(
        once("pfc_loss", "p0-t1-1>p0-t0-2", at_ns=CUT_NS, until_ns=said[lost - 1] + 10, share_ppm=1_000_000)
    )
    run.fabric.run(8_000_000)
    told = [one.at_ns for node, one in run.found(WayAvoided) if node == "p0-t0-2"]
    assert told == [said[lost] + notice_ns(run.topology)]


def test_the_fabric_comes_to_rest_after_it_has_said_all() -> None:
    run = Run(0, 3, messages=0)
    run.fabric.inject(once("link_down", LINK, at_ns=CUT_NS, until_ns=HEAL_NS))
    run.fabric.run(NS_PER_S)
    assert run.fabric.simulator.next_due() is None


# One T1, for whatever comes.


def script(seed: int) -> list[Input]:
    """Packets, notices and dead neighbours."""
    rng, inputs, now = Random(seed), [], 10_000
    for number in range(80):
        now += rng.choice((0, 1, 300, 5_000))
        kind = rng.randrange(4)
        port = rng.randrange(3)
        if kind == 0:
            inputs.append(Input(now, int(Rank.COMMAND), -1, number, SetCarrier(number, port, rng.random() < 0.5)))
        elif kind == 1:
            ranges = ((rng.randrange(1, 9), rng.randrange(1, 4)),)
            inputs.append(Input(now, int(Rank.FRAME), port, number, encode(rng.randrange(3), ranges, 999)))
        else:
            packet = LrhDataTemplate(1, rng.randrange(1, 7), 9).make(RC_WRITE_ONLY, 0, bytes(2_000), 0, 1, 2_000)
            inputs.append(Input(now, int(Rank.FRAME), port, number, packet))
    return sorted(inputs, key=lambda one: (one[0], one[1]))


def cuts(inputs: list[Input], seed: int | None) -> Iterator[tuple[list[Input], int]]:
    """The inputs in calls; `seed` None: instant by instant."""
    rng = Random(seed)
    waiting, now = list(inputs), 0
    while now < 500_000:
        now = min(500_000, now + (97 if seed is None else rng.randrange(1, 20_000)))
        now_inputs = [one for one in waiting if one[0] <= now]
        waiting = waiting[len(now_inputs) :]
        yield now_inputs, now


@pytest.mark.parametrize("name", ["p0-t1-1", "p0-t0-1"])
@pytest.mark.parametrize("seed", range(4))
def test_the_result_does_not_depend_on_how_time_is_cut(name: str, seed: int) -> None:
    results = []
    for cut in (None, seed, seed + 100):
        core = build_switch(switch_config(topology(adaptive="packet", arn=True, arn_bytes=2_000), name))
        sent, told = [], []
        for inputs, until in cuts(script(seed), cut):
            sent += [(port, at_ns, bytes(packet)) for port, at_ns, packet in core.advance(inputs, until)]
            told += [event.record() for event in core.drain_events()]
        results.append((sorted(sent), told, core.counters()))
    assert results[0] == results[1] == results[2]
    assert any(parse(ControlFrame(packet)) for _, _, packet in results[0][0]) == (name == "p0-t1-1")


# Congestion.


def test_who_sends_into_congestion_is_told_and_not_more_often_than_it_helps() -> None:
    hold_ns = 10_000
    core = build_switch(switch_config(topology(adaptive="packet", arn=True, arn_ns=hold_ns), "p0-t1-0"))
    assert isinstance(core, CreditSwitch)
    packet = LrhDataTemplate(1, base_lid(2, 0), 9).make(RC_WRITE_ONLY, 0, bytes(4_096), 0, 1, 4_096)
    out = []
    for number in range(40):
        # Nobody has granted the T1 credit, so nothing leaves to T0 1.
        out += core.advance(
            [Input(1_000 + number * 1_000, int(Rank.FRAME), 0, number, bytearray(packet))], 1_000 * (number + 1)
        )
    said = [(port, parse(frame)) for port, _, frame in out if isinstance(frame, ControlFrame) and parse(frame)]
    assert {port for port, _ in said} == {0}
    assert {(notice.kind, notice.ranges) for _, notice in said if notice} == {(CONGESTED, ((3, 2),))}
    held = core.egress[0].credits.held_peak[0] * 64
    first = 16_384 // 4_096
    room = min(40, held // 4_096)
    assert room > first
    assert len(said) == -(-(room - first) * 1_000 // (hold_ns // 2))


def test_a_congested_way_is_taken_last_and_only_for_as_long_as_was_said() -> None:
    core = build_switch(switch_config(topology(adaptive="packet", arn=True), "p0-t0-0"))
    assert isinstance(core, CreditSwitch)
    ways = core._lft
    to_t0_1, to_t0_2 = (LrhDataTemplate(1, lid, 9).make(RC_WRITE_ONLY, 0, bytes(64), 0, 1, 64) for lid in (3, 5))

    def taken(at_ns: int, packet: bytearray) -> set[Any]:
        return {ways.route(at_ns, 0, packet)[0] for _ in range(6)}

    assert taken(100, to_t0_1) == {2, 3}
    notice = parse(encode(CONGESTED, ((3, 2),), 6_400))
    assert notice is not None
    ways.heard(100, 2, notice)
    assert taken(100, to_t0_1) == {3}
    assert taken(100, to_t0_2) == {2, 3}, "for other LIDs it is as good as any"
    assert taken(100 + 6_399, to_t0_1) == {3}
    assert taken(100 + 6_400, to_t0_1) == {2, 3}
    lost = parse(encode(LOST, ((3, 1),)))
    assert lost is not None
    assert ways.heard(10_000, 3, lost) == 1
    assert ways.heard(10_000, 3, lost) == 0, "said again it changes nothing"
    assert taken(10_000, to_t0_1) == {2}
    ways.heard(10_000, 2, notice)
    assert taken(10_001, to_t0_1) == {2}, "congested is better than lost"
    assert ways.heard(10_000, 2, lost) == 1
    assert taken(10_002, to_t0_1) <= {2, 3}, "with no way left anywhere it goes as ever"
    back = parse(encode(BACK, ((3, 1),)))
    assert back is not None
    assert ways.heard(10_003, 3, back) == 1
    assert taken(10_003, to_t0_1) == {3}
    ways.carrier(10_004, 2, False)
    assert ways.avoided == 0, "what a neighbour said goes with its link"
    assert ways.heard(10_005, 0, lost) == 0, "a port of no group has no choice"
    assert ways.next_change_ns != NEVER
