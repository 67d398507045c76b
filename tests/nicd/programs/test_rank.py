"""Messages by rank, channel and note, as a program sees them."""

from typing import Any

from nicd.programs.program import Program
from nicd.programs.rank import UNAWAITED_MAX, Arrival, Rank


class Wire:
    """Notes what is put up for sending."""

    def __init__(self) -> None:
        self.posted: list[tuple[int, ...]] = []

    def __call__(self, *post: int) -> None:
        self.posted.append(post)


def rank_and_wire() -> tuple[Rank, Wire]:
    wire = Wire()
    program = Program("p", "p2p", 0, (4, 7, 9), 100, "s")
    return Rank(program, 1, ("h004", "h007", "h009"), memoryview(bytearray(64)), wire), wire


def step(rank: Rank, now: int) -> None:
    rank.strands.run(now, lambda: True)


def test_a_message_is_sent_and_acknowledged() -> None:
    rank, wire = rank_and_wire()
    seen: list[int] = []

    async def talk() -> None:
        await rank.send(2, 8, 16, 32, channel=3, note=5)
        seen.append(rank.now)

    rank.begin(talk())
    step(rank, 200)
    assert wire.posted == [(200, 2, 0, 1, 8, 16, 32, 3 << 8 | 5)]
    rank.strands.now = 250
    rank.on_sent(1)
    step(rank, 250)
    assert seen == [250]
    assert rank.record.latencies.kept() == [("h009", 250, 50)]
    assert (rank.record.messages_sent, rank.record.bytes_sent) == (1, 16)


def test_messages_find_who_awaits_their_channel_early_or_late() -> None:
    rank, _ = rank_and_wire()
    seen: list[tuple[str, Arrival]] = []

    async def hear(name: str, peer: int, channel: int) -> None:
        for _ in range(2):
            arrival = await rank.receive(peer, channel)
            seen.append((name, arrival))

    rank.begin(hear("first", 0, 1))
    step(rank, 100)
    rank.on_received(0, 10, 1 << 8 | 7)
    rank.on_received(0, 11, 2 << 8)
    rank.on_received(2, 12, 1 << 8)
    step(rank, 110)
    assert seen == [("first", Arrival(10, 7))]
    rank.on_received(0, 13, 1 << 8)
    rank.begin(hear("second", 0, 2))
    rank.on_received(0, 14, 2 << 8)
    step(rank, 120)
    assert seen[1:] == [("first", Arrival(13, 0)), ("second", Arrival(11, 0)), ("second", Arrival(14, 0))]
    assert {name: flow.received_bytes for name, flow in rank.record.flows.items()} == {"h004": 48, "h009": 12}


def test_of_nothing_nothing_is_sent_and_nothing_comes() -> None:
    rank, wire = rank_and_wire()
    ends: list[Any] = []

    async def nothing() -> None:
        await rank.send(0, 0, 0, 0)
        ends.append(await rank.receive(0, size=0))

    rank.begin(nothing())
    step(rank, 100)
    assert ends == [Arrival(0, 0)]
    assert not wire.posted


def test_a_peer_that_sends_what_nobody_awaits_fails_the_rank() -> None:
    rank, _ = rank_and_wire()
    for number in range(UNAWAITED_MAX):
        rank.on_received(0, 1, number << 8)
    assert rank.record.state == "running"
    rank.on_received(0, 1, 7 << 8)
    assert (rank.record.state, rank.record.reason) == ("failed", "h004 sends what is not awaited")


def test_bytes_are_counted_as_verified_and_as_wrong() -> None:
    rank, _ = rank_and_wire()
    rank.memory[8:12] = b"abcd"
    rank.verify(8, b"abcd")
    rank.verify(8, b"abXY")
    assert (rank.record.bytes_verified, rank.record.bytes_wrong) == (8, 2)


def test_after_the_end_nothing_goes_on() -> None:
    rank, _ = rank_and_wire()

    async def talk() -> None:
        await rank.sleep(10)
        raise AssertionError("it is over")

    rank.begin(talk())
    step(rank, 100)
    rank.end(105, "failed", "for a reason")
    rank.end(106, "failed", "another")
    step(rank, 200)
    assert (rank.record.state, rank.record.reason, rank.record.end_ns) == ("failed", "for a reason", 105)
