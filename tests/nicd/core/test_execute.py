"""Commands about memory and ports, and those that a transport lacks."""

from dataclasses import dataclass
from typing import Any

from nicd.core.commands import DeregisterMemory, RegisterMemory, SetCarrier
from nicd.core.events import CommandDone, PortChange
from tests.nicd.core.bench import Bench


@dataclass
class Strange:
    """A command that nobody knows."""

    token: int = 3


def answers(bench: Bench) -> list[tuple[int, str | None, dict[str, Any]]]:
    return [(event.token, event.error, event.result) for event in bench.told(CommandDone)]


def test_memory_comes_and_goes() -> None:
    bench = Bench()
    bench.executor.execute(0, RegisterMemory(1, 0x8000, 64, 9, 77))
    bench.executor.execute(0, DeregisterMemory(2, 9))
    bench.executor.execute(0, DeregisterMemory(3, 9))
    (one, two, three) = answers(bench)
    assert one[:2] == (1, None)
    assert one[2]["r_key"] == 77
    assert two == (2, None, {"region_id": 9})
    assert three[1] is not None


def test_a_carrier_is_told_once_and_only_of_ports_that_exist() -> None:
    bench = Bench()
    for port in (1, 1, 9):
        bench.executor.execute(4, SetCarrier(0, port, False))
    assert [event.port for event in bench.told(PortChange)] == [1]
    assert [error is None for _, error, _ in answers(bench)] == [True, True, False]


def test_a_command_that_the_transport_lacks_is_refused_until_it_is_taught() -> None:
    bench = Bench()
    bench.executor.execute(0, Strange())
    assert answers(bench)[-1][1] == "transport mrc has no command Strange"
    bench.executor.teach(Strange, lambda now, command: {"at": now})
    bench.executor.execute(7, Strange())
    assert answers(bench)[-1] == (3, None, {"at": 7})
