"""What applications may ask for: ownership, bounds, limits, and the cleaning up after them."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from nicd.core.commands import Command
from nicd.core.events import CommandDone
from nicd.verbs import AsyncDevice, VerbsError, Work
from nicd.verbs_client import Client, VerbsLimits
from nicd.verbs_codec import VERSION
from nicd.verbs_requests import VerbsRequests
from tests.support.loopback_nics import LoopbackNic
from tests.support.verbs_bench import completions, connected, verbs_bench
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_when_an_application_goes_its_qps_go_before_its_regions(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path) as (nics, servers):
        async with await AsyncDevice.open(str(tmp_path / "h000")) as one:
            await one.reg_mr(4096)
            await one.create_qp()
            await one.create_qp()
            assert len(nics[0].qps) == 2
        await eventually(lambda: not nics[0].regions, 10)
        assert not nics[0].qps
        assert [type(command).__name__ for command in nics[0].commands[-3:]] == [
            "DestroyQp",
            "DestroyQp",
            "DeregisterMemory",
        ]
        assert servers[0].counters()["clients"] == 0


async def test_wrong_keys_and_bounds_end_in_a_completion_and_a_qp_error(tmp_path: Path) -> None:
    async with (
        verbs_bench(tmp_path),
        await AsyncDevice.open(str(tmp_path / "h000")) as one,
        await AsyncDevice.open(str(tmp_path / "h001")) as two,
    ):
        a, _ = await connected(one, two)
        source, sink = await one.reg_mr(4096), await two.reg_mr(4096)
        one.post_write(a, source, 0, 8, (sink.va + 4090, sink.r_key))
        one.post_write(a, source, 0, 8, (sink.va, sink.r_key + 1))
        assert [cqe.status async for cqe in completions(one, 2)] == ["remote_invalid_request"] * 2
        assert one.qp_errors[0] == (a.qpn, "remote_invalid_request")
        assert not any(sink.buffer)
        strange = [
            Work(a.qpn, 1, source.region_id, source.va + 4095, 2, sink.va, sink.r_key, None),
            Work(a.qpn, 2, source.region_id, source.va - 1, 2, sink.va, sink.r_key, None),
            Work(a.qpn, 3, 12345, source.va, 2, sink.va, sink.r_key, None),
            Work(4711, 4, source.region_id, source.va, 2, sink.va, sink.r_key, None),
            Work(a.qpn, 5, source.region_id, source.va, 2, sink.va, 1 << 40, None),
            Work(a.qpn, 6, source.region_id, source.va, 2, sink.va, sink.r_key, 1 << 40),
        ]
        one.post(strange)
        refused = [cqe async for cqe in completions(one, len(strange))]
        assert [cqe.wr_id for cqe in refused] == [1, 2, 3, 4, 5, 6]
        assert {cqe.status for cqe in refused} == {"refused"}
        assert all(cqe.detail for cqe in refused)


async def test_requests_that_make_no_sense_are_answered_with_one_line(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path), await AsyncDevice.open(str(tmp_path / "h000")) as one:
        qp = await one.create_qp()
        for op, args, text in [
            ("fly", {}, "no such call"),
            ("open", {"version": 99}, "version"),
            ("reg_mr", {"length": 5, "va": 0}, "descriptor"),
            ("connect", {"qpn": "x", "psn": 0, "peer": [0, 0, 0]}, "qpn must be"),
            ("connect", {"qpn": qp.qpn, "psn": 0, "peer": [0, 0]}, "peer must be"),
            ("connect", {"qpn": qp.qpn, "psn": 0, "peer": [9, 5, 0]}, "no NIC 9"),
            ("connect", {"qpn": qp.qpn, "psn": True, "peer": [0, 5, 0]}, "psn must be"),
            ("start", {"qpn": 5}, "no QP 5"),
            ("dereg_mr", {"region_id": 5}, "no region 5"),
            ("create_qp", {"surplus": 1}, None),
        ]:
            if text is None:
                await one.call(op, **args)
                continue
            with pytest.raises(VerbsError, match=text):
                await one.call(op, **args)


async def test_memory_that_could_hurt_the_daemon_is_refused(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path), await AsyncDevice.open(str(tmp_path / "h000")) as one:
        unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
        os.ftruncate(unsealed, 4096)
        plain = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
        try:
            with pytest.raises(VerbsError, match="sealed"):
                await one.call("reg_mr", unsealed, length=4096, va=0)
            with pytest.raises(VerbsError, match="memfd"):
                await one.call("reg_mr", plain, length=4096, va=0)
        finally:
            os.close(unsealed)
            os.close(plain)
        with pytest.raises(VerbsError, match="64 bits"):
            await one.reg_mr(4096, va=(1 << 64) - 1)


async def test_limits_hold(tmp_path: Path) -> None:
    limits = VerbsLimits(clients_max=1, qps_max=1, regions_max=1, posts_max=2)
    async with verbs_bench(tmp_path, limits=limits), await AsyncDevice.open(str(tmp_path / "h000")) as one:
        with pytest.raises(VerbsError, match="already serves 1"):
            await AsyncDevice.open(str(tmp_path / "h000"))
        qp, mr = await one.create_qp(), await one.reg_mr(64)
        with pytest.raises(VerbsError, match="may hold 1 QPs"):
            await one.create_qp()
        with pytest.raises(VerbsError, match="may hold 1 regions"):
            await one.reg_mr(64)
        one.post([Work(qp.qpn, n, mr.region_id, mr.va, 1, 0, 0, None) for n in range(4)])
        details = {cqe.wr_id: cqe.detail async for cqe in completions(one, 4)}
        assert details[2] == details[3] == "2 posts are outstanding already"


@contextlib.contextmanager
def sealed(size: int) -> Iterator[int]:
    """The descriptor of memory that a NIC takes."""
    memory = os.memfd_create("region", os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    yield memory
    os.close(memory)


def opened(limits: VerbsLimits) -> tuple[VerbsRequests, Client, socket.socket, list[Command]]:
    """An application at a NIC that takes commands and answers none, as while fabric time stands still."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    commands: list[Command] = []
    requests = VerbsRequests(commands.append, lambda client: None, "h000", 0, limits)
    client = Client(mine, limits)
    requests.message(client, 1, "open", {"version": VERSION}, [])
    return requests, client, theirs, commands


def test_requests_under_way_are_bounded_while_nothing_is_answered() -> None:
    requests, client, theirs, commands = opened(VerbsLimits(requests_max=3, qps_max=100))
    for number in range(2, 8):
        requests.message(client, number, "create_qp", {}, [])
    assert len(commands) == 3
    assert b"3 requests are under way already" in client.unsent[-1]
    requests.deliver([CommandDone(7, commands[0].token, None, {"qpn": 5})])  # type: ignore[attr-defined]
    requests.message(client, 8, "create_qp", {}, [])
    assert len(commands) == 4
    theirs.close()
    client.sock.close()


def test_what_is_asked_for_counts_as_held() -> None:
    requests, client, theirs, commands = opened(VerbsLimits(qps_max=2, regions_max=1))
    for number in (2, 3, 4):
        requests.message(client, number, "create_qp", {}, [])
    assert b"may hold 2 QPs" in client.unsent[-1]
    memory = os.memfd_create("region", os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, 4096)
    fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    for number in (5, 6):
        requests.message(client, number, "reg_mr", {"length": 4096, "va": 0}, [memory])
    assert b"may hold 1 regions" in client.unsent[-1]
    # Refused by the core: there is room for another.
    requests.deliver([CommandDone(7, command.token, "no", {}) for command in commands])  # type: ignore[attr-defined]
    for number, op, args in ((7, "create_qp", {}), (8, "reg_mr", {"length": 4096, "va": 0})):
        requests.message(client, number, op, args, [memory])
    assert len(commands) == 5
    requests.deliver([CommandDone(8, commands[4].token, "no", {})])  # type: ignore[attr-defined]
    os.close(memory)
    theirs.close()
    client.sock.close()


def another(requests: VerbsRequests, limits: VerbsLimits) -> tuple[Client, socket.socket]:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client = Client(mine, limits)
    requests.message(client, 1, "open", {"version": VERSION}, [])
    return client, theirs


def test_who_comes_back_again_and_again_asks_for_no_more_than_the_nic_takes_of_all() -> None:
    limits = VerbsLimits(requests_max=3, nic_commands_max=7)
    requests, first, theirs, commands = opened(limits)
    ends = [theirs]
    client = first
    for _ in range(50):
        for number in range(2, 6):
            requests.message(client, number, "create_qp", {}, [])
        refused = client.unsent[-1]
        requests.abandon(client)
        client.sock.close()
        client, theirs = another(requests, limits)
        ends.append(theirs)
    assert len(commands) == 7
    assert b"7 requests and posts of all applications under way" in refused
    assert client.unsent, "open was answered"
    # The core answers: each QP of an application that has left goes again, and there is room.
    requests.deliver([CommandDone(7, one.token, None, {"qpn": n}) for n, one in enumerate(commands)])  # type: ignore[attr-defined]
    assert [type(one).__name__ for one in commands[7:]] == ["DestroyQp"] * 7
    requests.deliver([CommandDone(8, one.token, None, {}) for one in commands[7:]])  # type: ignore[attr-defined]
    requests.message(client, 2, "create_qp", {}, [])
    assert len(commands) == 15
    assert not first.qps
    for end in (*ends, client.sock):
        end.close()


def test_posts_count_as_requests_of_all_applications() -> None:
    limits = VerbsLimits(nic_commands_max=2)
    requests, client, theirs, commands = opened(limits)
    requests.message(client, 2, "create_qp", {}, [])
    requests.deliver([CommandDone(7, commands[0].token, None, {"qpn": 5})])  # type: ignore[attr-defined]
    with sealed(4096) as memory:
        requests.message(client, 3, "reg_mr", {"length": 4096, "va": 0}, [memory])
    requests.deliver([CommandDone(7, commands[1].token, None, {"region_id": 1})])  # type: ignore[attr-defined]
    requests.message(client, 0, "post", [[5, number, 1, 0, 1, 0, 0, None] for number in range(3)], [])
    assert len(commands) == 4
    assert [(cqe[1], cqe[2]) for cqe in client.cqes] == [(2, "refused")]
    assert "2 requests and posts of all applications under way" in client.cqes[0][-1]
    requests.abandon(client)
    theirs.close()
    client.sock.close()


def test_of_who_has_left_only_what_the_core_has_is_kept() -> None:
    """While fabric time stands still regions stay mapped: they count until the core has let go of them."""
    limits = VerbsLimits(nic_regions_max=2)
    requests, client, theirs, commands = opened(limits)
    with sealed(4096) as memory:
        for number in (2, 3):
            requests.message(client, number, "reg_mr", {"length": 4096, "va": 0}, [memory])
        requests.deliver([CommandDone(7, commands[0].token, None, {"region_id": 1})])  # type: ignore[attr-defined]
        assert client.unsent
        requests.abandon(client)
        client.sock.close()
        assert (list(client.unsent), client.posted, client.cqes) == ([], {}, [])
        back, end = another(requests, limits)
        requests.message(back, 2, "reg_mr", {"length": 4096, "va": 0}, [memory])
        assert b"this NIC has 2 regions of all applications" in back.unsent[-1]
        # One had been asked for, and is given back as soon as it is there.
        requests.deliver([CommandDone(8, commands[1].token, None, {"region_id": 2})])  # type: ignore[attr-defined]
        gone = [one for one in commands if type(one).__name__ == "DeregisterMemory"]
        assert len(gone) == 2
        assert not client.unsent, "nobody is there to hear it"
        requests.deliver([CommandDone(9, one.token, None, {}) for one in gone])  # type: ignore[attr-defined]
        requests.message(back, 3, "reg_mr", {"length": 4096, "va": 0}, [memory])
        assert type(commands[-1]).__name__ == "RegisterMemory"
        requests.deliver([CommandDone(9, commands[-1].token, "no", {})])  # type: ignore[attr-defined]
    for one in (theirs, end, back.sock):
        one.close()


def test_loopback_refuses_what_it_does_not_know() -> None:
    nic = LoopbackNic(0, [], lambda events: None)
    with pytest.raises(ValueError, match="not a verbs command"):
        nic.result_of(object(), [])  # type: ignore[arg-type]
