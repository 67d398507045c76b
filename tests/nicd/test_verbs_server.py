"""The daemon's socket against applications clumsy and hostile."""

import asyncio
import contextlib
import errno
import os
import socket
from pathlib import Path
from typing import Any

import msgpack
import pytest

from nicd import verbs_server
from nicd.verbs import AsyncDevice, Endpoint, MemoryRegion, QueuePair, VerbsError
from nicd.verbs_client import VerbsLimits
from nicd.verbs_codec import MESSAGE_BYTES_MAX, pack, unpack
from tests.support.verbs_bench import verbs_bench
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


def raw(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(10)
    sock.connect(str(path))
    return sock


HELLO = pack((1, "open", {"version": 1}))
RUBBISH = [
    [b"\xc1"],
    [b"hello, NIC"],
    [b"x" * (MESSAGE_BYTES_MAX + 1)],
    [pack((1, "open", [1]))],
    [pack((-1, "open", {}))],
    [pack((0, "post", []))],
    [HELLO, pack((0, "post", 5))],
    [HELLO, pack((0, "post", [[1, 2]]))],
    [HELLO, pack((0, "post", [[1, 2, 3, 4, 5, 6, "key", None]]))],
    [HELLO, pack((0, "post", [[-1, 2, 3, 4, 5, 6, 7, None]]))],
    [HELLO, msgpack.packb([[]] * 3)],
]


@pytest.mark.parametrize("packets", RUBBISH, ids=range(len(RUBBISH)))
async def test_rubbish_is_hung_up_on_and_hurts_nobody(tmp_path: Path, packets: list[bytes]) -> None:
    def talk() -> list[Any]:
        heard = []
        with raw(tmp_path / "h000") as sock:
            for packet in packets:
                sock.send(packet)
            while data := sock.recv(MESSAGE_BYTES_MAX):
                heard.append(unpack(data))
        return heard

    async with verbs_bench(tmp_path) as (_, servers), await AsyncDevice.open(str(tmp_path / "h000")) as other:
        assert (await asyncio.to_thread(talk))[-1][:2] == [0, "bye"]
        await other.create_qp()
        assert servers[0].counters()["hung_up"] == 1


async def test_surplus_descriptors_are_closed(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path):
        before = len(os.listdir("/proc/self/fd"))
        with raw(tmp_path / "h000") as sock:
            socket.send_fds(sock, [HELLO], [sock.fileno()] * 3)
            answer = await asyncio.to_thread(sock.recv, 1 << 16)
            assert unpack(answer)[1] is None
        await eventually(lambda: len(os.listdir("/proc/self/fd")) <= before, 10)


async def test_an_application_that_never_polls_is_hung_up_on(tmp_path: Path) -> None:
    limits = VerbsLimits(cq_depth=100)
    async with verbs_bench(tmp_path, limits=limits) as (nics, servers):
        sleeper = raw(tmp_path / "h000")
        sleeper.send(HELLO)
        sleeper.send(pack((2, "create_qp", {})))
        await eventually(lambda: bool(nics[0].qps), 10)
        qpn = next(iter(nics[0].qps))
        work = pack((0, "post", [[qpn, 1, 0, 0, 1, 0, 0, None]] * 200))

        def post() -> bool:
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                sleeper.send(work, socket.MSG_DONTWAIT)
            return servers[0].counters()["hung_up"] == 1

        await eventually(post, 10)
        await eventually(lambda: not nics[0].qps, 10)
        sleeper.close()


async def test_a_daemon_that_stops_says_so(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path) as (_, servers):
        one = await AsyncDevice.open(str(tmp_path / "h000"))
        servers[0].close()
        with pytest.raises(VerbsError, match="daemon stops"):
            await one.poll_cq(timeout_s=10)
        with pytest.raises(VerbsError, match="daemon stops"):
            one.post_write(QueuePair(1, Endpoint(0, 1, 0)), some_region(), 0, 1, (0, 0))
        one.close()
        with pytest.raises(VerbsError, match="cannot open"):
            await AsyncDevice.open(str(tmp_path / "h000"))


def some_region() -> MemoryRegion:
    return MemoryRegion(1, 1, 0, 16, memoryview(bytearray(16)))


async def test_a_stale_socket_file_does_not_stop_a_new_daemon(tmp_path: Path) -> None:
    stale = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stale.bind(str(tmp_path / "h000"))
    stale.close()
    async with verbs_bench(tmp_path, count=1), await AsyncDevice.open(str(tmp_path / "h000")) as one:
        assert one.info.nic_index == 0


async def test_without_descriptors_left_the_daemon_waits_before_it_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs_server, "FULL_WALL_S", 3600.0)
    async with verbs_bench(tmp_path) as (_, servers):
        listener = servers[0]._listener
        assert listener is not None
        tried: list[int] = []

        class Full:
            """The listener, in a process that has no descriptor left at its first try."""

            fileno, close = listener.fileno, listener.close

            def accept(self) -> tuple[socket.socket, Any]:
                tried.append(0)
                if len(tried) == 1:
                    raise OSError(errno.EMFILE, "Too many open files")
                return listener.accept()

        monkeypatch.setattr(servers[0], "_listener", Full())
        opening = asyncio.create_task(AsyncDevice.open(str(tmp_path / "h000")))
        await eventually(lambda: bool(tried), 10)
        for _ in range(100):
            await asyncio.sleep(0)
        assert (len(tried), opening.done()) == (1, False), "the listener is readable still"
        servers[0]._listen()
        async with await opening as one:
            await one.create_qp()
