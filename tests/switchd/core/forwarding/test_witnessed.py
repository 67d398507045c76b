"""A witness hears how a hash chose: the members and the hash that pick the port, for every flow and setting."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import IPV6_SIZE
from mrcfabric.witness import Witness
from switchd.core.forwarding import Forwarding
from switchd.core.forwarding.ecmp import EcmpForwarding
from switchd.core.forwarding.usid import UsidForwarding
from switchd.core.forwarding.witnessed import WitnessedForwarding
from tests.support.roce_frames import roce
from tests.switchd.core.forwarding.test_ecmp import LEAF, SPINE
from tests.switchd.core.test_routed import CONFIG
from tests.switchd.core.test_routed import switch as routed_switch
from tests.switchd.core.test_switch import NEXT, OWN, packet
from tests.switchd.core.test_switch import switch as usid_switch


class Heard(Witness):
    """A witness that follows every packet at once."""

    def __init__(self) -> None:
        super().__init__(Choice(), Dscp())
        self.ways: list[dict[str, Any] | None] = []
        self.ports: list[int] = []

    def routed(self, port: int, way: Any) -> None:
        self.ports.append(port)
        self.ways.append(way())


@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("resilient", [False, True])
@pytest.mark.parametrize("dead", [(), (5,), (4, 7)])
def test_the_hash_that_is_told_picks_the_port(crc: bool, resilient: bool, dead: tuple[int, ...]) -> None:
    config = replace(LEAF, crc=crc, resilient=resilient, failover_ns=0)
    plain, heard = EcmpForwarding(config), Heard()
    watched = WitnessedForwarding(EcmpForwarding(config), heard)
    for port in dead:
        plain.carrier(1, port, False)
        watched.carrier(1, port, False)
    assert [event.port for event in plain.follow(5)] == [event.port for event in watched.follow(5)] == list(dead)
    living = [port for port in LEAF.up if port not in dead]
    for flow in range(64):
        port, _ = watched.route(10, 0, roce(8, 60, 0xC000 + flow))
        assert port == plain.route(10, 0, roce(8, 60, 0xC000 + flow))[0]
        way = heard.ways[-1]
        assert way is not None
        assert heard.ports[-1] == port
        assert way["members"] == living
        if not (resilient and dead):
            assert living[way["hash"] % len(living)] == port
        else:
            first = LEAF.up[way["hash"] % len(LEAF.up)]
            assert port == (first if first in living else living[way["hash"] // len(LEAF.up) % len(living)])
    assert watched.counters() == plain.counters()


def test_where_there_is_one_way_no_hash_is_told() -> None:
    for config, nic in ((LEAF, 9), (SPINE, 60)):
        heard = Heard()
        assert not isinstance(WitnessedForwarding(EcmpForwarding(config), heard).route(1, 0, roce(8, nic)), str)
        assert heard.ways == [None]


def test_what_has_no_port_tells_nothing() -> None:
    heard = Heard()
    watched = WitnessedForwarding(EcmpForwarding(LEAF), heard)
    assert watched.route(1, 0, roce(8, 70)) == "no_route"
    assert watched.route(1, 0, roce(8, 60)[: IPV6_SIZE - 1]) == "short"
    assert heard.ways == []


def test_usids_have_no_hash() -> None:
    heard = Heard()
    watched: Forwarding = WitnessedForwarding(UsidForwarding(usid_switch().config), heard)
    routed = watched.route(1, 0, bytearray(packet(OWN, NEXT)))
    assert not isinstance(routed, str)
    assert heard.ways == [None]
    assert watched.chosen(routed[1]) is None


def test_without_a_witness_the_switch_asks_the_forwarding_itself() -> None:
    here = routed_switch()
    plain = here._forwarding  # type: ignore[attr-defined]
    assert isinstance(plain, EcmpForwarding)
    assert plain.config is CONFIG.ecmp
    here.set_witness(Heard())
    assert isinstance(here._forwarding, WitnessedForwarding)  # type: ignore[attr-defined]
    here.set_witness(Heard())
    here.set_witness(None)
    assert here._forwarding is plain  # type: ignore[attr-defined]


def test_a_polarised_hash_is_told_as_it_is() -> None:
    config = replace(LEAF, common_seed=99)
    heard, inner = Heard(), EcmpForwarding(config)
    watched = WitnessedForwarding(inner, heard)
    hashes = []
    for at_ns, common in ((10, False), (20, True), (30, False)):
        inner.set_common(at_ns, common)
        port = watched.route(at_ns, 0, roce(8, 60))[0]
        way = heard.ways[-1]
        assert way is not None
        assert way["members"][way["hash"] % 4] == port
        hashes.append(way["hash"])
    assert hashes[0] == hashes[2] != hashes[1]
