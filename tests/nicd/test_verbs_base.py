"""The memory of a region, and what both forms of the host API share."""

import fcntl
import os
import socket

import pytest

from nicd.verbs_base import SEALS, allocate, region_memory, rights
from nicd.verbs_codec import VerbsError


def test_a_regions_memory_is_zeroed_mapped_and_cannot_shrink() -> None:
    with region_memory(5000) as (fd, mapping):
        assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) == SEALS
        with pytest.raises(PermissionError):
            os.ftruncate(fd, 10)
        mapping[4999] = 7
        assert os.pread(fd, 5000, 0) == bytes(4999) + b"\x07"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    assert mapping[4999] == 7
    mapping.close()


@pytest.mark.parametrize("length", [0, -1, 1 << 32, 1 << 62])
def test_impossible_lengths_are_one_line(length: int) -> None:
    with pytest.raises(VerbsError, match=r"region of -?\d+ bytes"), region_memory(length):
        pass


def test_a_descriptor_rides_beside_the_packet() -> None:
    assert rights(None) == []
    ((level, kind, body),) = rights(5)
    assert (level, kind, body) == (socket.SOL_SOCKET, socket.SCM_RIGHTS, (5).to_bytes(4, "little"))


def test_more_than_is_free_is_refused_before_the_kernel_is_asked() -> None:
    fd = os.memfd_create("sparse")
    with pytest.raises(OSError, match="Cannot allocate memory"):
        allocate(fd, 1 << 50)
    assert os.fstat(fd).st_blocks == 0
    os.close(fd)
