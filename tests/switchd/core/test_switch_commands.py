"""What a switch can be told, what it cannot, what never changes, and what its entries count."""

from dataclasses import replace

import pytest

from mrcfabric.impairment import Impairment
from switchd.core.commands import ClearImpairments, SetEcn, SetForwarding, SetImpairment, SetTrim
from switchd.core.switch import Switch
from tests.switchd.core.test_switch import (
    CONFIG,
    CONTROL,
    LAST,
    NEXT,
    OWN,
    PORT,
    STRANGER,
    TRIMMED,
    TRIMMED_LASTHOP,
    command,
    frame,
    packet,
    switch,
)  # fmt: skip

# Commands.


def test_a_fault_begins_and_ends_at_its_instant():
    node = switch()
    down = SetImpairment(77, 1, Impairment(up=False))
    inputs = [
        frame(packet(OWN, NEXT), 10, 0, 1),
        frame(packet(OWN, NEXT), 11, 0, 2),
        command(down, 211),  # the second packet started at 210
        frame(packet(OWN, NEXT), 212, 0, 3),
        frame(packet(OWN, LAST), 212, 0, 4),
    ]
    assert [entry[0] for entry in node.advance(inputs, 1_000)] == [1, 1, 2]
    assert [(event.at_ns, event.token, event.error) for event in node.drain_events()] == [(211, 77, None)]
    assert node.drain_events() == []
    assert node.impairments() == {1: Impairment(up=False)}
    assert node.counters()["drops"]["link_down"] == 1
    assert len(node.advance([command(ClearImpairments(78), 2_000), frame(packet(OWN, NEXT), 2_000)], 2_000)) == 1
    assert node.impairments() == {}


def test_a_fault_on_a_port_that_is_not_there_is_refused():
    node = switch()
    node.advance([command(SetImpairment(5, 3, Impairment()))], 10)
    (event,) = node.drain_events()
    assert event.error == "no port 3; ports are 0 to 2"
    assert event.record() == {"at_ns": 10, "kind": "command_done", "error": event.error}


def test_trimming_and_marks_are_set_for_one_port_or_for_all():
    node = switch()
    node.advance([command(SetTrim(1, on=True, port=1)), command(SetEcn(2, on=True), 11, 2)], 20)
    assert [egress.trim for egress in node.egress] == [False, True, False]
    assert [egress.ecn for egress in node.egress] == [True] * 3
    node.advance(
        [command(SetTrim(3, on=True, dscp=TRIMMED_LASTHOP), 21), command(SetEcn(4, on=False, port=2), 21, 2)], 30
    )
    assert [(egress.trim, egress.trim_dscp) for egress in node.egress] == [(True, TRIMMED_LASTHOP)] * 3
    assert [egress.ecn for egress in node.egress] == [True, True, False]
    assert [event.error for event in node.drain_events()] == [None] * 4


@pytest.mark.parametrize(
    ("order", "error"),
    [
        (SetEcn(5, on=True, min_bytes=9, max_bytes=8), "port 0: max_bytes 8 is below min_bytes 9"),
        (
            SetImpairment(5, 1, Impairment(rate_bps=1 << 40)),
            f"rate_bps {1 << 40} is no limit: the port has {PORT.rate_bps}",
        ),
        (SetTrim(5, on=False, port=3), "no port 3; ports are 0 to 2"),
        (SetEcn(5, on=True, port=9), "no port 9; ports are 0 to 2"),
        (SetTrim(5, on=False, dscp=CONTROL), "dscp 46 does not say trimmed in this fabric; 12 and 16 do"),
        (SetTrim(5, on=False, dscp=1 << 40), f"dscp {1 << 40} does not say trimmed in this fabric; 12 and 16 do"),
    ],
)
def test_a_setting_that_will_not_do_is_refused_and_nothing_changes(order, error):
    node = switch(ports=(replace(PORT, trim=True),) * 3)
    node.advance([command(order)], 10)
    assert [event.error for event in node.drain_events()] == [error]
    assert all(egress.trim and not egress.ecn and egress.trim_dscp == TRIMMED for egress in node.egress)


def test_a_switch_that_stands_still_loses_what_comes_and_keeps_what_waits():
    node = switch()
    inputs = [
        *(frame(packet(OWN, NEXT), 10, 0, number) for number in range(3)),
        command(SetForwarding(1, on=False), 11, 1),
        *(frame(packet(OWN, NEXT), 12, 0, 3 + number) for number in range(2)),
        frame(packet(OWN, OWN, LAST), 13, 0, 5),
    ]
    assert len(node.advance(inputs, 5_000)) == 1
    assert node.next_timeout() is None
    assert (node.drops["frozen"], node.egress[1].data_bytes) == (3, 400)
    assert node.counters()["forwarding"] == 0
    inputs = [command(SetForwarding(2, on=True), 6_000, 2), frame(packet(OWN, LAST), 6_000)]
    ends = [(entry[0], entry[1]) for entry in node.advance(inputs, 9_000)]
    assert sorted(ends) == [(1, 6_200 + PORT.delay_ns), (1, 6_400 + PORT.delay_ns), (2, 6_200 + PORT.delay_ns)]
    assert [event.error for event in node.drain_events()] == [None] * 2


def test_a_standstill_is_the_same_however_time_is_cut():
    def happened(cuts: list[int]) -> list[tuple[int, int]]:
        node, out = switch(), []
        inputs = [frame(packet(OWN, NEXT), 10 + 70 * number, 0, number) for number in range(12)]
        inputs += [command(SetForwarding(1, on=False), 250, 1), command(SetForwarding(2, on=True), 500, 2)]
        inputs.sort()
        for until in (*cuts, 9_000):
            due = [entry for entry in inputs if entry.at_ns <= until]
            inputs = inputs[len(due) :]
            out += node.advance(due, until)
        return [entry[:2] for entry in out]

    whole = happened([])
    assert len(whole) == 9
    assert all(happened([*range(step, 1_000, step)]) == whole for step in (1, 50, 250, 333))


@pytest.mark.parametrize("stranger", [object(), None, "clear_impairments"])
def test_an_object_that_is_no_command_is_our_own_mistake(stranger):
    node = switch()
    node.advance([command(SetImpairment(1, 1, Impairment(up=False)))], 10)
    with pytest.raises(AssertionError):
        node.advance([command(stranger, 20)], 20)
    assert node.impairments() == {1: Impairment(up=False)}


@pytest.mark.spec("MRC 1.0", "5")
def test_the_table_never_changes():
    table = {NEXT: 1, LAST: 2}
    config = replace(CONFIG, fib=table)
    table[STRANGER] = 0
    assert dict(config.fib) == {NEXT: 1, LAST: 2}
    for read_only in (config.fib, config.adjacency):
        with pytest.raises(TypeError):
            read_only[STRANGER] = 0
    node = Switch(config)
    orders = [SetImpairment(1, 1, Impairment(up=False)), SetTrim(2, on=True), SetEcn(3, on=True), ClearImpairments(4)]
    node.advance([command(order, 10, number) for number, order in enumerate(orders)], 10)
    node.advance([frame(packet(OWN, STRANGER), 20), frame(packet(OWN, NEXT), 20, 1)], 20)
    assert node.counters()["drops"]["unknown_usid"] == 1
    assert node.counters()["usids"].keys() == {NEXT, LAST}


# Counters by uSID.


def test_packets_are_counted_by_the_entry_they_follow():
    node = switch(fib={NEXT: 1, STRANGER: 1, LAST: 2})
    ways = [(OWN, NEXT), (OWN, STRANGER), (OWN, STRANGER), (OWN, OWN, LAST), (OWN, 0x7777)]
    node.advance([frame(packet(*usids), 10, 0, number) for number, usids in enumerate(ways)], 10_000)
    assert node.counters()["usids"] == {
        LAST: {"packets": 1, "bytes": 200},
        NEXT: {"packets": 1, "bytes": 200},
        STRANGER: {"packets": 2, "bytes": 400},
    }
