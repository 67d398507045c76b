"""Port blocks: free, outside the ephemeral range, not shared, and the rival named."""

import os
import socket
import subprocess
import sys

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process import ports
from orchestrator.process.ports import PORT_END, PORT_MIN, PortBlock, allocate, command_of, ephemeral_range, owner_of
from tests.support.wait import eventually_blocking


def bound_udp(port: int) -> socket.socket:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", port))
    return one


def lonely_base() -> int:
    """Far above where launches look first, and different per process: other tests search at this moment too."""
    return 30_001 + os.getpid() % 40 * 40


def test_a_block_lies_outside_the_ephemeral_range() -> None:
    block = allocate(300)
    span = set(range(block.base, block.base + 300))
    assert min(span) >= PORT_MIN
    assert max(span) < PORT_END
    assert span.isdisjoint(ephemeral_range())
    block.close()


def test_blocks_of_two_fabrics_never_meet() -> None:
    blocks = [allocate(100) for _ in range(5)]
    numbers = [port for block in blocks for port in range(block.base, block.base + block.size)]
    assert len(numbers) == len(set(numbers))
    for block in blocks:
        block.close()


def test_what_is_given_back_can_be_had_again() -> None:
    allocate(20, lonely_base()).close()
    again = allocate(20, lonely_base())
    assert again.base == lonely_base()
    again.close()


def test_the_search_goes_round_a_port_in_use() -> None:
    free = allocate(10)
    free.close()
    with bound_udp(free.base + 3):
        other = allocate(10)
        assert not free.base <= other.base + 3 < free.base + 10 or other.base != free.base
        other.close()


def test_an_explicit_base_is_taken_as_it_is() -> None:
    block = allocate(20, lonely_base())
    assert (block.base, block.size) == (lonely_base(), 20)
    block.close()


def test_the_owner_of_a_port_is_named() -> None:
    base = lonely_base()
    with bound_udp(base + 7):
        with pytest.raises(ConfigError) as refused:
            allocate(20, base)
        assert f"port {base + 7} is in use by pid {os.getpid()} (" in str(refused.value)
        assert "--port-base" in str(refused.value)
        assert owner_of(base + 7).startswith(f"pid {os.getpid()} (")


def test_a_listening_tcp_port_is_in_use_too() -> None:
    base = lonely_base()
    with (
        socket.create_server(("127.0.0.1", base)),
        pytest.raises(ConfigError, match=f"port {base} is in use"),
    ):
        allocate(4, base)


def test_the_owner_of_a_reservation_is_named() -> None:
    block = allocate(64)
    with pytest.raises(ConfigError, match=rf"are reserved by pid {os.getpid()} \("):
        allocate(64, block.base)
    block.close()


@pytest.mark.parametrize("base", [-1, 0, 1023, 65_500, 70_000])
def test_impossible_bases_are_refused(base: int) -> None:
    with pytest.raises(ConfigError, match=r"not within 1024\.\.65535"):
        allocate(100, base)


def test_the_ephemeral_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "ephemeral_range", lambda: range(32_768, 61_000))
    with pytest.raises(ConfigError, match=r"meet the kernel's ephemeral range 32768\.\.60999 \(take a base from 10000"):
        allocate(100, 32_700)


def test_a_machine_whose_every_port_is_ephemeral_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "ephemeral_range", lambda: range(1024, 65_536))
    block = allocate(10)
    assert block.base >= PORT_MIN
    block.close()


def test_too_large_a_fabric_is_one_clear_refusal() -> None:
    with pytest.raises(ConfigError, match="no 30000 free ports in a row"):
        allocate(30_000)


@pytest.mark.parametrize(("own", "other"), [("127.0.0.1", "198.51.100.1"), ("::1", "2001:db8::1")])
def test_an_address_of_another_host_is_named(own: str, other: str) -> None:
    ports.check_own(own)
    with pytest.raises(ConfigError, match=f"has no address {other}"):
        ports.check_own(own, other)


def test_closing_twice_is_harmless() -> None:
    block: PortBlock = allocate(1)
    block.close()
    block.close()


def test_a_command_is_shown_in_one_line_whatever_its_arguments_are() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()", "a\x1b[31m\nb"], stdin=subprocess.PIPE) as process:
        try:
            eventually_blocking(lambda: "input()" in command_of(process.pid), 10.0)
            assert "a\\x1b[31m b" in command_of(process.pid)
        finally:
            process.kill()
