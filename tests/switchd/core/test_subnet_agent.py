"""A switch that a subnet manager asks by directed routes: who it is, its ports, and a table written block by block."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.impairment import Impairment
from mrcfabric.lids import node_guid
from mrcfabric.sim.simulator import Simulator
from mrcfabric.wire.smp import (
    BAD_VALUE,
    GET,
    LFT,
    NO_LFT_PORT,
    NODE_DESCRIPTION,
    NODE_INFO,
    OK,
    PORT_ACTIVE,
    PORT_DOWN,
    PORT_INFO,
    SELF_PORT,
    SET,
    SWITCH,
    SWITCH_INFO,
    UNSUPPORTED,
    Smp,
    encode,
    parse,
    request,
    step,
)
from mrcfabric.wire.smp_attributes import NodeInfo, PortInfo, SwitchInfo
from switchd.core.commands import SetForwarding, SetImpairment
from switchd.core.credited import BAD_SMP
from switchd.core.events import LftWritten
from switchd.core.forwarding.lft import NO_PORT
from tests.support.credit_hosts import PORT, CreditFabric
from tests.support.subnet_prober import SubnetProber
from tests.switchd.core.test_credited import command, drops, frame, switch


def asked(node: Any, one: Smp, in_port: int = 0, at_ns: int = 10_000) -> Smp:
    """The answer of a switch to a request of its neighbour at a port."""
    found = step(one, SELF_PORT)
    assert found is not None
    sent = node.advance([frame(encode(found[1]), at_ns, in_port)], at_ns + 5_000)
    (packet,) = [entry[2] for entry in sent if len(entry[2]) > 6]
    answer = parse(packet)
    assert answer is not None
    back = step(answer, 1)
    assert back is not None
    assert back[0] == SELF_PORT
    return answer


def test_who_it_is() -> None:
    node = switch()
    found = NodeInfo.parse(asked(node, request(GET, NODE_INFO, (1,), 1), 2).data)
    assert (found.node_type, found.ports, found.local_port) == (SWITCH, 4, 3)
    assert found.node_guid == node_guid("leaf") != node_guid("other")
    described = asked(node, request(GET, NODE_DESCRIPTION, (1,), 1), at_ns=20_000)
    assert described.data.rstrip(b"\0") == b"leaf"


def test_how_its_ports_stand() -> None:
    node = switch()
    node.advance([command(SetImpairment(1, 3, Impairment(up=False)), 6_000)], 7_000)
    states = [
        PortInfo.parse(asked(node, request(GET, PORT_INFO, (1,), 1, port), at_ns=10_000 * (port + 1)).data).state
        for port in range(5)
    ]
    assert states == [PORT_ACTIVE] * 4 + [PORT_DOWN]
    assert asked(node, request(GET, PORT_INFO, (1,), 1, 5), at_ns=90_000).status == BAD_VALUE


def test_a_manager_hears_once_that_a_port_has_changed() -> None:
    node = switch()
    read = request(GET, SWITCH_INFO, (1,), 1)
    assert SwitchInfo.parse(asked(node, read).data).port_state_change == 0
    node.advance([command(SetImpairment(1, 3, Impairment(up=False)), 20_000)], 21_000)
    seen = SwitchInfo.parse(asked(node, read, at_ns=30_000).data)
    assert seen.port_state_change == 1
    written = asked(node, request(SET, SWITCH_INFO, (1,), 1, 0, replace(seen, linear_top=70).emit()), at_ns=40_000)
    assert (SwitchInfo.parse(written.data).port_state_change, SwitchInfo.parse(written.data).linear_top) == (0, 70)


def test_its_lid_and_the_managers_are_kept() -> None:
    node = switch()
    wanted = PortInfo(77, PORT_ACTIVE, 1, master_sm_lid=5)
    assert PortInfo.parse(asked(node, request(SET, PORT_INFO, (1,), 1, 0, wanted.emit())).data).lid == 77
    assert (node.agent.lid, node.agent.master_lid) == (77, 5)


def test_a_block_of_the_table_takes_effect_when_it_comes() -> None:
    node = switch()
    block = bytes((0, 4, 3)) + bytes((NO_LFT_PORT,)) * 61
    found = asked(node, request(SET, LFT, (1,), 1, 0, block))
    assert found.data == bytes((NO_LFT_PORT, 4, 3)) + bytes((NO_LFT_PORT,)) * 61, "entry 0 leads nowhere"
    assert node.drain_events()[-1] == LftWritten(10_000, 0, 4)
    assert bytes(node._plain_forwarding.table[:4]) == bytes((NO_PORT, 3, 2, NO_PORT))  # type: ignore[attr-defined]
    assert asked(node, request(GET, LFT, (1,), 1, 0), at_ns=20_000).data == found.data
    asked(node, request(SET, LFT, (1,), 1, 0, block), at_ns=30_000)
    assert node.drain_events() == [], "nothing has changed"
    assert asked(node, request(GET, LFT, (1,), 1, 700), at_ns=40_000).data == bytes((NO_LFT_PORT,)) * 64


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (request(GET, 0x1B, (1,), 1), UNSUPPORTED),
        (request(SET, NODE_INFO, (1,), 1), UNSUPPORTED),
        (request(SET, LFT, (1,), 1, 768, bytes(64)), BAD_VALUE),
        (request(SET, LFT, (1,), 1, 0, bytes((9,)) * 64), BAD_VALUE),
        (request(SET, SWITCH_INFO, (1,), 1, 0, SwitchInfo(0, 0xC000).emit()), BAD_VALUE),
        (request(SET, PORT_INFO, (1,), 1, 0, PortInfo(0xC000, 4, 1).emit()), BAD_VALUE),
        (request(GET, LFT, (1,), 1, 0), OK),
    ],
)
def test_what_it_will_not_do_has_a_status(one: Smp, status: int) -> None:
    node = switch()
    before = bytes(node._plain_forwarding.table)  # type: ignore[attr-defined]
    assert asked(node, one).status == status
    assert bytes(node._plain_forwarding.table) == before  # type: ignore[attr-defined]


def test_broken_ones_and_those_whose_way_ends_nowhere_are_dropped() -> None:
    spoilt = bytearray(encode(request(GET, NODE_INFO, (1,), 1)))
    spoilt[100] ^= 1
    wrong_way = replace(request(GET, NODE_INFO, (1, 9), 1), hop_pointer=1)
    no_request = replace(request(0x07, NODE_INFO, (1,), 1), hop_pointer=1)
    for body in (spoilt, encode(wrong_way), encode(no_request)):
        node = switch()
        assert node.advance([frame(body, 10_000, 0)], 20_000) == []
        assert drops(node) == {BAD_SMP: 1}
    node = switch()
    node.advance([command(SetForwarding(1, False), 9_000), frame(encode(wrong_way), 10_000, 0)], 20_000)
    assert drops(node) == {"frozen": 1}


@settings(deadline=None, max_examples=50)
@given(st.binary(min_size=256, max_size=256), st.booleans())
def test_whatever_a_peer_asks_nothing_raises(mad: bytes, framed: bool) -> None:
    node = switch()
    smp = Smp.parse(bytes((1, 0x81, 1)) + mad[3:] if framed else mad)
    node.advance([frame(encode(smp), 10_000, 0)], 20_000)


def test_a_fabric_with_empty_tables_is_found_and_written_by_its_paths() -> None:
    """A prober at host 0 walks all links, names every switch once, and writes tables; then traffic flows."""
    fabric = CreditFabric(2, 2, 2)
    for node in fabric.switches.values():
        node._plain_forwarding.table[:] = bytes((NO_PORT,)) * len(node._plain_forwarding.table)  # type: ignore[attr-defined]
    prober = SubnetProber("h0", 1, PORT)
    nodes = {**fabric.switches, **{host.name: host for host in fabric.hosts[1:]}, "h0": prober}
    fabric.hosts[0] = prober
    fabric.simulator = Simulator(nodes, fabric.links, window_ns=PORT.delay_ns)
    paths: dict[int, tuple[int, ...]] = {}
    waiting: list[tuple[int, ...]] = [(1,)]
    tried: list[tuple[int, ...]] = []

    def on() -> None:
        """Ask along one more path; below a switch that is new, along each of its ports."""
        if tried:
            path, answer = tried[-1], prober.told[-1]
            if answer is not None:
                info = NodeInfo.parse(answer.data)
                if info.node_guid not in paths:
                    paths[info.node_guid] = path
                    waiting.extend((*path, port) for port in range(1, info.ports + 1))
        if waiting:
            tried.append(waiting.pop(0))
            prober.ask(GET, NODE_INFO, tried[-1])

    prober.next = on
    on()
    fabric.run(10_000_000)
    assert set(paths) == {node_guid(name) for name in fabric.switches}
    assert {guid: len(path) for guid, path in paths.items()} == {
        node_guid("leaf0"): 1, node_guid("spine0"): 2, node_guid("spine1"): 2, node_guid("leaf1"): 3
    }  # fmt: skip
    tables = {"leaf0": (1, 2, 3, 4), "leaf1": (3, 4, 1, 2), "spine0": (1, 1, 2, 2), "spine1": (1, 1, 2, 2)}
    prober.next = lambda: None
    for name, ports in tables.items():
        block = bytes((NO_LFT_PORT, *ports)).ljust(64, bytes((NO_LFT_PORT,)))
        prober.ask(SET, LFT, paths[node_guid(name)], 0, block)
    fabric.flow(1, 2, start_ns=fabric.simulator.now_ns + 2_000_000, count=10)
    fabric.flow(3, 1, start_ns=fabric.simulator.now_ns + 2_000_000, count=10)
    fabric.simulator.command("leaf0", fabric.simulator.now_ns + 10, SetForwarding(1, True))
    fabric.simulator._reschedule(fabric.simulator._sites["h0"])
    for host in ("h1", "h3"):
        fabric.simulator._reschedule(fabric.simulator._sites[host])
    fabric.run(fabric.simulator.now_ns + 5_000_000)
    assert [answer.status for answer in prober.told[-4:] if answer is not None] == [OK] * 4
    assert fabric.hosts[2].received[2, 0] == 10
    assert fabric.hosts[1].received[4, 0] == 10
