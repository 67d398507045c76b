"""Round robin among senders, pulled by ports with room."""

from collections import Counter

from mrcfabric.egress_config import EgressConfig
from nicd.core.ports import Ports
from nicd.core.scheduler import Scheduler, Sender


class Source(Sender):
    """A sender with a number of packets left."""

    def __init__(self, name: int, left: int, ports: int = 0b11) -> None:
        self.name = name
        self.left = left
        self.ports = ports
        self.waiting = False
        self.used: list[int] = []

    def has_packet(self) -> bool:
        return self.left > 0

    def open_ports(self) -> int:
        return self.ports

    def emit(self, now: int, ports: int) -> tuple[int, bytearray]:
        self.left -= 1
        port = (ports & -ports).bit_length() - 1
        self.used.append(port)
        return port, bytearray([self.name]) * 100


def made() -> tuple[Scheduler, Ports]:
    ports = Ports((EgressConfig(rate_bps=8_000_000_000, overhead_bytes=0),) * 2, 100, "test")
    return Scheduler(ports), ports


def drain(scheduler: Scheduler, ports: Ports) -> list[int]:
    now = 0
    while scheduler.busy:
        scheduler.pump(now)
        if ports.tracking:
            now = ports.next_ns
            ports.depart(now)
    ports.run(1 << 40)
    return [entry[2][0] for entry in sorted(ports.out, key=lambda entry: entry[1])]


def test_senders_take_turns_by_packet() -> None:
    scheduler, ports = made()
    for source in (Source(1, 10), Source(2, 10), Source(3, 10)):
        scheduler.wake(source)
        scheduler.wake(source)
    order = drain(scheduler, ports)
    assert Counter(order) == {1: 10, 2: 10, 3: 10}
    for end in range(1, 31):
        counts = [order[:end].count(name) for name in (1, 2, 3)]
        assert max(counts) - min(counts) <= 2
    assert not ports.tracking


def test_a_sender_without_a_plane_holds_nobody_up() -> None:
    scheduler, ports = made()
    stuck, free = Source(1, 5, ports=0), Source(2, 5, ports=0b10)
    scheduler.wake(stuck)
    scheduler.wake(free)
    now = 0
    while free.left:
        scheduler.pump(now)
        now = ports.next_ns
        ports.depart(now)
    assert free.used == [1] * 5
    assert stuck.left == 5
    scheduler.forget(stuck)
    scheduler.pump(now)
    assert not scheduler.busy


def test_who_has_nothing_to_send_does_not_enter_the_ring() -> None:
    scheduler, _ = made()
    scheduler.wake(Source(1, 0))
    assert not scheduler.busy


def test_a_sender_whose_window_closed_meanwhile_leaves_the_ring() -> None:
    scheduler, ports = made()
    source = Source(1, 1)
    scheduler.wake(source)
    source.left = 0
    scheduler.pump(0)
    assert not scheduler.busy
    assert not source.waiting
    assert ports.out == []
