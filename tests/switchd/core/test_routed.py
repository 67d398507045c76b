"""A switch that forwards by NIC addresses: queues, drops, commands, counters, and how time is cut."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.egress_config import EgressConfig
from mrcfabric.impairment import Impairment
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.sim.simulator import Simulator
from mrcfabric.wire.link import ControlFrame
from switchd.core.build import build_switch
from switchd.core.commands import SetForwarding, SetImpairment
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.settings import SwitchConfig
from switchd.core.switch import Switch
from tests.support.roce_frames import NOTICE_DSCP, frame, number_of, roce

# One byte per nanosecond.
PORT = EgressConfig(rate_bps=8_000_000_000, delay_ns=1_000, overhead_bytes=0, data_bytes_max=10_000)
ECMP = EcmpConfig(nics=8, first=2, down=(0, 1), nics_per_port=1, up=(2, 3), seed=3)
CONFIG = SwitchConfig("p0-t0-1", usid=0x4001, block=0xFD00_0000, fib={}, ports=(PORT,) * 4, ecmp=ECMP)


def switch(**changes: object) -> Switch:
    return build_switch(replace(CONFIG, **changes))  # type: ignore[arg-type]


def drops(node: Switch) -> dict[str, int]:
    return {reason: count for reason, count in node.counters()["drops"].items() if count}


def test_a_packet_for_a_nic_below_goes_down_and_loses_a_hop() -> None:
    node = switch()
    assert node.advance([frame(roce(7, 3, size=200), port=2)], 10) == [
        (1, 10 + 200 + 1_000, roce(7, 3, size=200, hop_limit=63))
    ]
    assert node.next_timeout() is None


def test_others_go_up_and_the_counters_say_by_which_member() -> None:
    node = switch()
    frames = [frame(roce(2, 7, 0xC000 + flow, size=100), 10 + flow, 0, flow) for flow in range(100)]
    sent = node.advance(frames, 100_000)
    by_port = {port: sum(entry[0] == port for entry in sent) for port in (2, 3)}
    assert node.counters()["ecmp"] == by_port
    assert min(by_port.values()) > 25
    assert node.counters()["received"] == 100
    assert node.totals()[-1] == 100
    assert node.counters()["usids"] == {}


def test_notifications_overtake_data() -> None:
    node = switch()
    frames = [frame(roce(2, 3, number=number, size=1_000), 10, 0, number) for number in range(3)]
    frames.append(frame(roce(2, 3, number=9, size=100, dscp=NOTICE_DSCP), 10, 0, 9))
    assert [number_of(entry[2]) for entry in node.advance(frames, 10_000)] == [9, 0, 1, 2]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "short"),
        (b"\x45" + bytes(60), "not_ipv6"),
        (roce(2, 8), "no_route"),
        (roce(2, 3, hop_limit=1), "hop_limit"),
        (ControlFrame(bytes(64)), "link_control"),
    ],
)
def test_what_cannot_be_forwarded_is_a_named_drop(body: bytes, reason: str) -> None:
    node = switch()
    assert node.advance([frame(body)], 10_000) == []
    assert drops(node) == {reason: 1}
    assert node.received == 1


def test_a_full_queue_drops_what_must_not_be_trimmed() -> None:
    node = switch(ports=(replace(PORT, trim=True),) * 4)
    node.advance([frame(roce(2, 3, size=4_000), 10, 0, number) for number in range(4)], 10)
    assert drops(node) == {"data_full": 2}


def test_a_frozen_switch_loses_what_arrives_and_keeps_what_waits() -> None:
    node = switch()
    node.advance([frame(roce(2, 3, size=1_000, number=number), 10, 0, number) for number in range(2)], 10)
    stop = Input(20, Rank.COMMAND, 0, 1, SetForwarding(1, False))
    assert node.advance([stop, frame(roce(2, 3), 30), frame(ControlFrame(bytes(64)), 31, 1)], 50_000) == []
    assert drops(node) == {"frozen": 2}
    go = Input(60_000, Rank.COMMAND, 0, 2, SetForwarding(2, True))
    assert [number_of(entry[2]) for entry in node.advance([go], 70_000)] == [1]
    assert [event.error for event in node.drain_events()] == [None, None]


@pytest.mark.parametrize("failover_ns", [-1, 0, 5_000])
def test_an_uplink_without_carrier_leaves_the_group_when_asked_to(failover_ns: int) -> None:
    node = switch(ecmp=replace(ECMP, failover_ns=failover_ns))
    cut = Input(100, Rank.COMMAND, 0, 1, SetImpairment(1, 2, Impairment(up=False)))
    frames = [frame(roce(2, 7, 0xC000 + flow, size=100), 101 + 200 * flow, 0, flow) for flow in range(100)]
    node.advance([cut, *frames], 50_000)
    lost = drops(node).get("link_down", 0)
    if failover_ns < 0:
        assert 25 < lost < 75
        return
    early = [at for at in range(101, 20_101, 200) if at <= 100 + failover_ns]
    assert lost <= len(early)
    assert (lost > 0) == bool(early)
    assert node.counters()["ecmp_moves"] == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7), st.integers(40, 3_000)), max_size=40), st.data())
def test_the_result_does_not_depend_on_how_time_is_cut(
    packets: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    frames = [
        frame(roce(0, nic, 0xC000 + number, size=max(60, size)), 10 + 97 * number, port, number)
        for number, (port, nic, size) in enumerate(packets)
    ]
    end = 1_000_000

    def fresh() -> list[Input]:
        return [entry._replace(body=bytearray(entry.body)) for entry in frames]

    whole, pieces = switch(), switch()
    wanted = whole.advance(fresh(), end)
    found: list[Transmit] = []
    rest = fresh()
    for until in [*sorted(data.draw(st.lists(st.integers(10, 9_000), max_size=8, unique=True))), end]:
        found += pieces.advance([entry for entry in rest if entry.at_ns <= until], until)
        rest = [entry for entry in rest if entry.at_ns > until]
    for port in range(4):
        assert [entry for entry in found if entry[0] == port] == [entry for entry in wanted if entry[0] == port]
    assert pieces.counters() == whole.counters()


@pytest.mark.parametrize("members", [2, 4, 8])
@pytest.mark.parametrize(("crc", "common"), [(False, True), (True, False), (False, False)])
def test_e4_two_stages_of_hashing_in_a_running_fabric(members: int, crc: bool, common: bool) -> None:
    """Leaf, then one switch per up-link with as many up-links again, then a sink: what each link carried."""
    ports = tuple(range(members + 1))
    config = EcmpConfig(nics=64, first=0, down=(0,), nics_per_port=1, up=ports[1:], crc=crc)
    fast = replace(PORT, rate_bps=400_000_000_000)

    def stage(name: str, seed: int) -> Switch:
        return build_switch(
            SwitchConfig(name, 1, 0xFD00_0000, {}, (fast,) * len(ports), ecmp=replace(config, seed=seed))
        )

    seeds = [77 if common else 1_000_003 * number for number in range(members + 1)]
    nodes = {f"s{number}": stage(f"s{number}", seed) for number, seed in enumerate(seeds)}
    simulator = Simulator(nodes, {("s0", port): (f"s{port}", 0) for port in ports[1:]})
    flows = 40 * members**2
    frames = [frame(roce(0, 63, 0xC000 + flow, size=100), 1 + 4 * flow, 0, flow) for flow in range(flows)]
    sent = nodes["s0"].advance(frames, 1 + 4 * flows)
    simulator._deliver(simulator._sites["s0"], sent)
    simulator.run(1_000_000)
    first = nodes["s0"].counters()["ecmp"]
    assert sum(first.values()) == flows
    assert min(first.values()) > 0
    for number in ports[1:]:
        used = [port for port, count in nodes[f"s{number}"].counters()["ecmp"].items() if count]
        assert nodes[f"s{number}"].received == first[number]
        assert len(used) == (1 if crc or common else members)


@pytest.mark.parametrize("step", [1_000, 7_777, 200_000])
def test_a_change_of_the_group_is_told_at_its_instant_though_no_packet_comes(step: int) -> None:
    node = switch(ecmp=replace(ECMP, failover_ns=5_000))
    down, up = (SetImpairment(number, 2, Impairment(up=bool(number))) for number in range(2))
    inputs = [Input(1_000, int(Rank.COMMAND), 0, 0, down), Input(50_000, int(Rank.COMMAND), 0, 1, up)]
    told = []
    for end in range(step, 200_001, step):
        node.advance([entry for entry in inputs if end - step < entry.at_ns <= end], end)
        told += [event.record() for event in node.drain_events()]
    assert [(event["at_ns"], event["kind"]) for event in told] == [
        (1_000, "command_done"), (6_000, "ecmp_member"), (50_000, "command_done"), (55_000, "ecmp_member"),
    ]  # fmt: skip
    assert [event["members"] for event in told if event["kind"] == "ecmp_member"] == [1, 2]
    assert node.next_timeout() is None


def test_a_change_of_the_group_wakes_the_switch() -> None:
    node = switch(ecmp=replace(ECMP, failover_ns=5_000))
    node.advance([Input(1_000, int(Rank.COMMAND), 0, 0, SetImpairment(0, 2, Impairment(up=False)))], 2_000)
    assert node.next_timeout() == 6_000
