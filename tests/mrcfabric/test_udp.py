"""Trains in and out of a pair of connected sockets, with and without kernel offload."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.udp import RECEIVED, Endpoint, connect, set_whole
from tests.support.cluster import Family, cluster
from tests.support.ports import free_udp_ports
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


@pytest.fixture(params=[True, False], ids=["offload", "portable"])
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Endpoint, Endpoint]]:
    one, two = (("127.0.0.1", port) for port in free_udp_ports(2))
    ends = Endpoint(one, two, offload=request.param), Endpoint(two, one, offload=request.param)
    yield ends
    for end in ends:
        end.close()


def received(end: Endpoint) -> list[bytes]:
    trains = []
    while size := end.receive():
        trains.append(bytes(RECEIVED[:size]))
    return trains


def test_a_train_arrives_uncut_or_segment_by_segment(pair: tuple[Endpoint, Endpoint]) -> None:
    sent = [bytes([number]) * 1000 for number in range(9)] + [b"short"]
    pair[0].send(list(sent), 1000, len(sent))
    assert received(pair[1]) == ([b"".join(sent)] if pair[1].gso else sent)
    assert received(pair[1]) == []


@pytest.mark.parametrize("offload", [True, False])
def test_a_train_is_cut_into_datagrams_wherever_its_buffers_end(offload: bool) -> None:
    one, two = (("127.0.0.1", port) for port in free_udp_ports(2))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain, closing(Endpoint(one, two, offload=offload)) as end:
        plain.bind(two)
        plain.settimeout(10.0)
        end.send([b"ab", b"cd", b"ef", b"gh", b"ij"], 4, 3)
        assert [plain.recv(100) for _ in range(3)] == [b"abcd", b"efgh", b"ij"]


def test_a_closed_peer_is_counted_and_the_next_datagram_still_goes(pair: tuple[Endpoint, Endpoint]) -> None:
    one, two = pair
    two.close()
    assert all(one.send([b"lost"], 4, 1) for _ in range(3))
    assert one.refused >= 1
    assert not one.receive()
    assert one.unsent == 0


def test_strangers_do_not_get_in(pair: tuple[Endpoint, Endpoint]) -> None:
    address = pair[0].local
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"let me in", address)
    assert received(pair[0]) == []


def test_what_strangers_said_before_the_socket_was_connected_is_forgotten() -> None:
    one, two = (("127.0.0.1", port) for port in free_udp_ports(2))
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as bound,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        bound.bind(one)
        peer.bind(two)
        for _ in range(3):
            stranger.sendto(b"let me in", one)
        connect(bound, two)
        with pytest.raises(BlockingIOError):
            bound.recv(100)
        peer.sendto(b"a neighbour", one)
        assert bound.recv(100) == b"a neighbour"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_who_may_cut_is_the_kernel_told(address: str) -> None:
    """Only routers on the way show the difference: they cut what may be cut, and lose what may not."""
    level, discover = (socket.IPPROTO_IPV6, 23) if ":" in address else (socket.IPPROTO_IP, 10)
    whole, cut = 3, 1 if ":" in address else 0  # linux/in.h: IP_PMTUDISC_PROBE, _WANT, _DONT
    with closing(Endpoint((address, 0), (address, 9), path_mtu=1500)) as end:
        sock = socket.socket(fileno=os.dup(end.fileno()))
        with sock:
            assert sock.getsockopt(level, discover) == cut
            set_whole(sock, True)
            assert sock.getsockopt(level, discover) == whole
            set_whole(sock, False)
            assert sock.getsockopt(level, discover) == cut


def test_a_taken_port_is_the_operators_mistake() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        with pytest.raises(ConfigError, match="cannot bind"):
            Endpoint(other.getsockname(), ("127.0.0.1", 9))


@pytest.mark.slow
@pytest.mark.parametrize("family", [4, 6])
async def test_a_train_that_is_wider_than_the_path_arrives_in_fragments(family: Family) -> None:
    async with cluster(hosts=2, family=family, mtu=1500) as hosts:
        places = [(host.address, 20_000) for host in hosts]
        ends, told = [], []
        for host, here, there in zip(hosts, places, reversed(places), strict=True):
            with host.network():
                ends.append(Endpoint(here, there))
                told.append(Endpoint((here[0], 20_001), (there[0], 20_001), path_mtu=1500))
        assert await hosts[0].reaches(hosts[1].address)
        sent = [bytes([number]) * 4000 for number in range(5)]
        assert ends[0].send(list(sent), 4000, len(sent))
        arrived: list[bytes] = []

        def all_there() -> bool:
            arrived.extend(received(ends[1]))
            return arrived == sent

        await eventually(all_there, 10.0)
        assert ends[0].send([b"x" * 100] * 2, 100, 2)
        # An end that is told the MTU still sends in trains what fits.
        assert told[0].send(list(sent), 4000, len(sent))
        arrived.clear()
        await eventually(lambda: arrived.extend(received(told[1])) or arrived == sent, 10.0)
        assert told[0].send([b"x" * 100] * 2, 100, 2)
        trains: list[bytes] = []

        def the_train() -> bool:
            trains.extend(received(told[1]))
            return trains == [b"x" * 200]

        await eventually(the_train, 10.0)
        for end in (*ends, *told):
            end.close()
