"""Probes of a way on loopback, with a network between that takes only so much; real networks are in other tests."""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.clock import path_probe
from orchestrator.hosts.clock.path_probe import PACKET_BYTES_MAX, STEPS, Path, PathProbe, ladder
from tests.support.cluster import Host, cluster
from tests.support.ports import free_udp_ports
from tests.support.relays import relayed

REALM = Realm(bytes(range(32)), "small", 9)
HEADERS = 28
FRAME_BYTES = 4_284
IP_MTU_DISCOVER, DONT, PROBE = 10, 0, 3  # linux/in.h
Address = tuple[str, int]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_probe, "TRY_S", 0.03)
    monkeypatch.setattr(path_probe, "FIRST_TRIES", 5)


@contextmanager
def probe(here: int, addresses: list[Address], realm: Realm = REALM) -> Iterator[PathProbe]:
    made = PathProbe(realm, here, addresses, FRAME_BYTES)
    made.open()
    try:
        yield made
    finally:
        made.close()


def places() -> list[Address]:
    return [("127.0.0.1", port) for port in free_udp_ports(2)]


@pytest.mark.parametrize("mtu", [576, 1499, 9000, 20_000])
async def test_the_largest_datagram_that_passes_is_found_to_the_byte(mtu: int) -> None:
    one, two = places()
    async with relayed(two, lambda data: len(data) + HEADERS <= mtu) as network:
        with probe(0, [one, network.address]) as here, probe(1, [one, two]):
            assert await here.measure(1) == Path(mtu, mtu >= FRAME_BYTES)
            # Nobody may cut a question, but the last one where frames are longer than that.
            assert here._sock is not None
            assert here._sock.getsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER) == (PROBE if mtu >= FRAME_BYTES else DONT)


async def test_a_way_that_takes_what_our_interface_takes_costs_one_question() -> None:
    one, two = places()
    with probe(0, [one, two]) as here, probe(1, [one, two]) as there:
        found = await asyncio.gather(here.measure(1), there.measure(0))
    assert found == [Path(PACKET_BYTES_MAX)] * 2
    assert not here._waiting


async def test_a_network_that_loses_now_and_then_is_not_a_narrow_one() -> None:
    one, two = places()
    seen = 0

    def every_second(_data: bytes) -> bool:
        nonlocal seen
        seen += 1
        return seen % 2 == 0

    async with relayed(two, every_second) as network:
        with probe(0, [one, network.address]) as here, probe(1, [one, two]):
            assert await here.measure(1) == Path(PACKET_BYTES_MAX)
        assert network.lost


async def test_who_does_not_know_the_secret_is_not_answered() -> None:
    one, two = places()
    for realm in (Realm(bytes(32), "small", 9), Realm(REALM.secret, "small", 10)):
        with probe(0, [one, two], realm) as here, probe(1, [one, two]):
            assert await here.measure(1) == Path(None)


async def test_noise_is_not_heard() -> None:
    one, two = places()
    with probe(0, [one, two]) as here, probe(1, [one, two]) as there:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for noise in (b"", b"mrcprobe", bytes(60), b"\xff" * 1400):
                stranger.sendto(noise, two)
        here._send(1, path_probe._ANSWER, 1500, 7)  # nobody has asked
        assert await there.measure(0) == Path(PACKET_BYTES_MAX)


async def test_what_is_for_another_host_or_came_cut_short_is_not_answered() -> None:
    one, two = places()
    with probe(0, [one, two, two]) as here, probe(1, [one, two, two]):
        assert await here.measure(2) == Path(None)
        nonce, answered = here._asked(1)
        head = path_probe._HEAD.pack(path_probe._MAGIC, path_probe._ASK, 0, 1, 1500, nonce)
        assert here._sock is not None
        here._sock.sendto(head + here._mac(head), two)
        assert await here.measure(1) == Path(PACKET_BYTES_MAX)
        assert not answered.done()


SCRIPT = """
import asyncio, sys
from dataclasses import astuple
from mrcfabric.control_message import Realm
from orchestrator.hosts.clock.path_probe import PathProbe

async def main(here, there):
    probe = PathProbe(Realm(bytes(range(32)), "small", 9), 0, [(here, 20_000), (there, 20_000)], 4_284)
    probe.open()
    print(*astuple(await probe.measure(1)))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.long
@pytest.mark.integration
async def test_one_host_of_1500_in_a_network_of_9000() -> None:
    async with cluster(hosts=3, family=46, mtu=9000) as hosts:
        narrow, one, other = hosts
        (await narrow.run(["ip", "link", "set", "eth0", "mtu", "1500"])).well()

        async def found(asker: Host, answerer: Host, family: int) -> list[str]:
            ends = [(host.addresses[family], 20_000) for host in (asker, answerer)]
            there = PathProbe(REALM, 1, ends, FRAME_BYTES)
            with answerer.network():
                there.open()
            with contextlib.closing(there):
                return (await asker.run([sys.executable, "-c", SCRIPT, *(end[0] for end in ends)])).well().split()

        for family in (0, 1):
            assert await found(one, other, family) == ["9000", "True"]
            # Its own interface cuts what it sends; what it is sent whole, or in pieces of 9000, is lost.
            assert await found(narrow, one, family) == ["1500", "True"]
            mtu, cut = await found(one, narrow, family)
            assert (1500 <= int(mtu) <= 1504, cut) == (
                True,
                "False",
            )  # a virtual cable lets the four bytes of a VLAN by


def test_an_address_that_is_not_ours_is_the_operators_mistake() -> None:
    with pytest.raises(ConfigError, match=r"UDP 192\.0\.2\.1:9: cannot listen"):
        PathProbe(REALM, 0, [("192.0.2.1", 9)], FRAME_BYTES).open()


def test_a_ladder_leaves_ever_less_between() -> None:
    assert ladder(1500, 1501) == []
    assert ladder(1500, 1504) == [1501, 1502, 1503]
    low, high, rounds = 576, PACKET_BYTES_MAX + 1, 0
    while steps := ladder(low, high):
        assert steps == sorted(set(steps))
        assert len(steps) <= STEPS
        assert low < steps[0] <= steps[-1] < high
        low, rounds = steps[0], rounds + 1
        high = steps[1] if len(steps) > 1 else high
    assert rounds <= 6
