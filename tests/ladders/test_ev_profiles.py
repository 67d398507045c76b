"""EV profiles of every mode and format carrying data through a real fabric, and a controller at work meanwhile."""

from collections import Counter
from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.naming import USID_TIER_DESTINATION, USID_TIER_T0, USID_TIER_T1, usid_of
from mrcfabric.node import Input, Transmit
from mrcfabric.paths import PathTable, ev_of
from mrcfabric.topology import Topology
from mrcfabric.wire import srh, usid
from mrcfabric.wire.packet import parse
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from nicd.core.commands_paths import CreateEvProfile, DenyProfileEv, ModifyEvProfile, ReplaceEv
from nicd.core.events import CommandDone
from nicd.core.nic import Nic
from tests.nicd.core.fabric import READY_NS, Fabric

PLANES, PATHS = 2, 4
SIZE = 256 * 1024
A, B = "h000", "h001"


def topology() -> Topology:
    return Topology(
        name="profiles", planes=PLANES, t0_per_plane=2, t1_per_plane=PATHS, nics_per_t0=1, evs_per_qp=16,
        reserve_evs_per_qp=8,
    )  # fmt: skip


class Profiled(Fabric):
    """h000 writes to h001 by an EV profile that a controller has made."""

    def __init__(self, **attributes: Any) -> None:
        self.out: list[bytes] = []
        super().__init__(topology())
        for name in (A, B):
            self.memory(name, SIZE)
        self.at_ns = 10
        self.ask(CreateEvProfile(0, 1))
        self.ask(ModifyEvProfile(0, 1, state="offline", **attributes))
        self.ask(ModifyEvProfile(0, 1, state="online"))
        for name, qpn, peer, peer_qpn, profile in ((A, 100, 1, 200, 1), (B, 200, 0, 100, None)):
            self.simulator.command(name, 50, CreateQp(0, qpn, profile=profile))
            self.simulator.command(name, 51, ConnectQp(0, qpn, peer, peer_qpn, 5, 5))
            self.simulator.command(name, 52, ModifyQp(0, qpn, "rts"))
        self.flows.append((A, 100, B, 200))

    def ask(self, command: Any) -> None:
        self.simulator.command(A, self.at_ns, command)
        self.at_ns += 1

    def nic(self, name: str, start_ns: int = 0) -> Nic:
        out = self.out if name == A else []

        class Seen(Nic):
            def advance(self, inputs: list[Input], until: int) -> list[Transmit]:
                sent = super().advance(inputs, until)
                # Switches change packets in place.
                out.extend(bytes(one[2]) for one in sent)
                return sent

        return Seen(super().nic(name).config, start_ns)

    def carry(self) -> None:
        self.write_all(SIZE, 4, max(READY_NS, self.simulator.now_ns + 1))
        assert self.finish(self.simulator.now_ns + 50_000_000)
        assert [event.error for event in self.found(CommandDone, lambda event: event.error is not None)] == []
        self.verify(SIZE)

    def rows(self) -> list[dict[str, Any]]:
        return self.core(A).ev_table(100)

    @property
    def ways(self) -> Counter[tuple[int, int]]:
        return Counter((row["plane"], row["path"]) for row in self.rows())


def text(*parts: bytes) -> str:
    return "0x" + b"".join(parts).hex()


EVERY_WAY = {(plane, path) for plane in range(PLANES) for path in range(PATHS)}


@pytest.mark.spec("MRC 1.0", "6")
def test_a_list_of_structured_evs() -> None:
    evs = [f"{ev_of(plane, path, draw):#x}" for plane in range(2) for draw in range(2) for path in range(PATHS)]
    fabric = Profiled(mode="explicit", evs=evs, min_active=1)
    fabric.carry()
    assert fabric.ways == dict.fromkeys(EVERY_WAY, 2)


@pytest.mark.spec("MRC 1.0", "6")
def test_ecmp_values_spread_by_hash() -> None:
    fabric = Profiled(mode="generated", format="ecmp", rules=["16:0:0xffff"], count=128, reserve=0, min_active=1)
    fabric.carry()
    assert set(fabric.ways) == EVERY_WAY
    assert all(row["ev"] < 1 << 16 for row in fabric.rows())
    assert {parse(packet).outer.flow_label for packet in fabric.out} >= {0}


@pytest.mark.spec("MRC 1.0", "6")
def test_addresses_generated_by_field_rules() -> None:
    rules = []
    for plane in range(PLANES):
        near, far = (usid_of(USID_TIER_T0, plane, t0) for t0 in range(2))
        t1, down = usid_of(USID_TIER_T1, plane, 0), usid_of(USID_TIER_DESTINATION, plane, 0)
        way = f"32:{topology().usid_block:#x} 16:{near:#x} 16:{t1:#x}:0x3 16:{far:#x} 16:{down:#x}"
        rules.append(f"{plane + 1}/{way}")
    fabric = Profiled(mode="generated", format="srv6", rules=rules, count=8, reserve=0, min_active=1)
    fabric.carry()
    assert fabric.ways == dict.fromkeys(EVERY_WAY, 1)
    assert fabric.total("packets_lost") == 0


@pytest.mark.spec("RFC 8754", "4.1.1")
@pytest.mark.parametrize("form", ["prolonged", "copied"])
def test_addresses_with_a_segment_routing_header(form: str) -> None:
    evs = []
    for plane, path in sorted(EVERY_WAY):
        whole = PathTable(topology(), 0).towards(1).path(ev_of(plane, path, 0)).outer
        usids = usid.usids(whole)
        first, rest = (usid.build(usid.block(whole), part) for part in (usids[:2], usids[2:]))
        evs.append(text(whole, whole) if form == "copied" else text(first, rest))
        evs[-1] += f"@{plane + 1}"
    fabric = Profiled(mode="explicit", format="srv6_srh", evs=evs, min_active=1)
    fabric.carry()
    assert fabric.ways == dict.fromkeys(EVERY_WAY, 1)
    assert (fabric.total("packets_lost"), fabric.total("drops")) == (0, 0)
    assert any(srh.follows(packet) for packet in fabric.out)
    assert all(row["state"] in ("GOOD", "SKIP") for row in fabric.rows())


@pytest.mark.spec("MRC 1.0", "6")
def test_a_replaced_ev_and_a_denied_one_while_data_flow() -> None:
    evs = [f"{ev_of(plane, path, 0):#x}" for plane in range(2) for path in range(3)]
    fabric = Profiled(mode="explicit", evs=evs, min_active=1)
    fabric.at_ns = READY_NS + 5_000
    fabric.ask(ReplaceEv(0, 1, ev_of(0, 0, 0), f"{ev_of(0, 3, 0):#x}"))
    fabric.ask(DenyProfileEv(0, 1, ev_of(1, 2, 0)))
    fabric.carry()
    assert set(fabric.ways) == {(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)}
    assert fabric.total("packets_lost") == 0
    late = fabric.out[len(fabric.out) // 2 :]
    used = {parse(packet).outer.flow_label << 16 | parse(packet).headers[2].source_port for packet in late}  # type: ignore[attr-defined]
    assert ev_of(0, 3, 0) in used
    assert not used & {ev_of(0, 0, 0), ev_of(1, 2, 0)}


@pytest.mark.spec("MRC 1.0", "6")
def test_the_controller_hears_of_a_dead_path_and_of_its_return() -> None:
    evs = [f"{ev_of(plane, path, 0):#x}" for plane in range(2) for path in range(PATHS)]
    fabric = Profiled(mode="explicit", evs=evs, min_active=1)
    port = next(end.port for end in fabric.topology.ports("p0-t0-0") if end.peer == "p0-t1-2")
    fabric.impair("p0-t0-0", port, Impairment(up=False), 2)
    fabric.carry()
    told = fabric.core(A).take_ev_events(100)
    assert [(event["ev"], event["state"], event["port"], event["drop_count"]) for event in told] == [
        (ev_of(0, 2, 0), "ASSUMED_BAD", 1, 0)
    ]
    fabric.impair("p0-t0-0", port, Impairment(), fabric.simulator.now_ns + 1)
    fabric.simulator.run(fabric.simulator.now_ns + 60 * fabric.core(A).config.settings.base_rtt_ns)
    assert [(event["ev"], event["state"]) for event in fabric.core(A).take_ev_events(100)] == [(ev_of(0, 2, 0), "GOOD")]
