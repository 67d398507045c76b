"""The daemon's books about one application."""

import contextlib
import fcntl
import os
import socket

import pytest

from nicd.verbs_base import region_memory
from nicd.verbs_client import KEPT_BYTES, Client, VerbsLimits, map_region, receive
from nicd.verbs_codec import CQES_PER_MESSAGE_MAX, MESSAGE_BYTES_MAX, VerbsError, unpack

WIDE_CQE = ((1 << 24) - 1, (1 << 64) - 1, "refused", "write_with_imm", (1 << 32) - 1, (1 << 32) - 1, *[1 << 62] * 2)


def pair() -> tuple[socket.socket, socket.socket]:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return mine, theirs


def test_both_sides_see_the_same_bytes() -> None:
    with region_memory(4096) as (fd, mapping):
        region = map_region(fd, 4000, 0x10, 1 << 20)
        mapping[3] = 9
        region.view[4] = 8
        assert (len(region.view), region.view[3], mapping[4]) == (4000, 9, 8)
        region.unmap()
        with pytest.raises(ValueError, match="released"):
            region.view[0]
        mapping.close()


def test_memory_still_in_use_is_left_to_its_last_user() -> None:
    with region_memory(4096) as (fd, mapping):
        region = map_region(fd, 4096, 0, 1 << 20)
        packet = region.view[10:20]
        region.unmap()
        packet[0] = 1
        assert mapping[10] == 1
        packet.release()
        mapping.close()


@pytest.mark.parametrize(("length", "va"), [(0, 0), (4097, 0), (1 << 21, 0), (10, -1), (10, (1 << 64) - 5)])
def test_sizes_that_do_not_fit_are_refused(length: int, va: int) -> None:
    with region_memory(4096) as (fd, mapping), pytest.raises(VerbsError):
        map_region(fd, length, va, 1 << 20)
    mapping.close()


def test_a_memfd_that_cannot_be_written_is_refused() -> None:
    fd = os.memfd_create("read-only", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, 4096)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE)
    with pytest.raises(VerbsError, match="cannot map"):
        map_region(fd, 4096, 0, 1 << 20)
    os.close(fd)


def test_many_completions_travel_in_messages_that_fit() -> None:
    mine, theirs = pair()
    client = Client(mine, VerbsLimits())
    client.cqes.extend([(*WIDE_CQE, "x" * 160)] * (CQES_PER_MESSAGE_MAX + 1))
    assert client.flush() is None
    sizes = []
    while theirs and sum(sizes) <= CQES_PER_MESSAGE_MAX:
        packet = theirs.recv(1 << 20)
        assert len(packet) < MESSAGE_BYTES_MAX
        sizes.append(len(unpack(packet)[2]))
    assert sizes == [CQES_PER_MESSAGE_MAX, 1]
    mine.close()
    theirs.close()


def test_an_application_that_reads_too_little_is_lost() -> None:
    mine, theirs = pair()
    client = Client(mine, VerbsLimits(cq_depth=1000))
    reasons = []
    for _ in range(1000):
        client.cqes.extend([WIDE_CQE] * 50)
        reasons.append(client.flush())
        if reasons[-1]:
            break
    assert reasons[-1] == "the application does not read its completions"
    assert not any(reasons[:-1])
    mine.close()
    theirs.close()


def test_an_application_that_is_gone_is_noticed_when_sending() -> None:
    mine, theirs = pair()
    client = Client(mine, VerbsLimits())
    theirs.close()
    client.answer(1, None, {})
    assert client.flush() == "Broken pipe"
    mine.close()


def test_receive_reports_nothing_packets_cuts_and_ends() -> None:
    mine, theirs = pair()
    assert receive(mine, 100) is None
    theirs.send(b"x" * 101)
    assert receive(mine, 100) == (b"x" * 100, [], True)
    socket.send_fds(theirs, [b"y"], [theirs.fileno()])
    data, fds, cut = receive(mine, 100) or (b"", [], False)
    assert (data, len(fds), cut) == (b"y", 1, False)
    os.close(fds[0])
    theirs.close()
    assert receive(mine, 100) == (b"", [], False)
    mine.close()


def test_an_application_that_never_reads_its_answers_is_hung_up_on_in_time() -> None:
    mine, theirs = pair()
    client = Client(mine, VerbsLimits(unsent_bytes_max=1 << 20))
    lost = None
    for number in range(100_000):
        client.answer(number, None, {"what": "x" * 100})
        if (lost := client.flush()) is not None:
            break
    assert lost == "the application does not read its answers"
    held = sum(len(message) + KEPT_BYTES for message in client.unsent)
    assert held == client.unsent_bytes <= (1 << 20) + KEPT_BYTES + 200
    while client.unsent:
        with contextlib.suppress(BlockingIOError):
            theirs.recv(1 << 20, socket.MSG_DONTWAIT)
        client.flush()
    assert client.unsent_bytes == 0
    mine.close()
    theirs.close()
