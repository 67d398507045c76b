"""By which plane packets leave: in turn, by those with carrier, and not by one that is silent while others deliver."""

from nicd.core.commands import SetCarrier
from tests.nicd.core.uet.pipe import QPN_A, Pipe, Seen


def by_port(pipe: Pipe, since_ns: int = 0, until_ns: int = 1 << 60) -> dict[int, int]:
    bins = pipe.nics[1]._board.bins.since(0)
    counts: dict[int, int] = {}
    for start, row in bins:
        if since_ns <= start < until_ns:
            for port, size in enumerate(row):
                counts[port] = counts.get(port, 0) + size
    return counts


def test_all_planes_carry_the_same() -> None:
    pipe = Pipe(planes=4)
    pipe.write(1 << 20)
    pipe.run(1_000_000)
    counts = by_port(pipe)
    assert max(counts.values()) - min(counts.values()) <= 3 * 4_096
    assert pipe.completions()[0].at_ns < 27_000


def test_each_plane_has_entropies_of_its_own() -> None:
    pipe = Pipe(planes=2, evs=4, uet_path="oblivious")
    pipe.write(1 << 19)
    pipe.run(1_000_000)
    planes = pipe.link(0).planes
    found = [set(choice._entropies) for choice in planes._choices]  # type: ignore[attr-defined]
    assert [len(one) for one in found] == [4, 4]
    assert {seen.entropy for seen in pipe.data()} == found[0] | found[1]


def test_an_ordered_context_keeps_to_one_plane_and_moves_when_it_must() -> None:
    pipe = Pipe(planes=4, uet_mode="rod")
    pipe.write(1 << 18)
    pipe.run(10_000)
    used = [port for port, size in by_port(pipe).items() if size]
    assert len(used) == 1
    pipe.command(0, pipe.now + 5, SetCarrier(0, used[0], False))
    pipe.run(2_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert len([size for size in by_port(pipe).values() if size]) == 2
    assert pipe.target()[: 1 << 18] == bytes(pipe.source[: 1 << 18])


def test_a_port_without_carrier_carries_nothing() -> None:
    pipe = Pipe(planes=4)
    pipe.command(0, 5, SetCarrier(0, 2, False))
    pipe.write(1 << 18)
    pipe.run(1_000_000)
    assert by_port(pipe)[2] == 0
    assert [done.status for done in pipe.completions()] == ["ok"]


def test_without_any_carrier_it_waits_and_goes_on() -> None:
    pipe = Pipe(planes=2)
    for port in (0, 1):
        pipe.command(0, 5, SetCarrier(0, port, False))
    pipe.write(1 << 16)
    pipe.run(300_000)
    assert not pipe.data()
    pipe.command(0, 300_010, SetCarrier(0, 1, True))
    pipe.run(1_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]


def test_a_plane_that_is_silent_while_others_deliver_is_left() -> None:
    dead = [0]
    pipe = Pipe(planes=4)

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        return True

    pipe.fate = fate
    pipe.nics[1].advance([], 1)
    pipe.now = 1
    pipe.command(1, 2, SetCarrier(0, dead[0], False))
    pipe.write(1 << 20, at_ns=100)
    pipe.run(4_000_000)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert pipe.counter(0, "uet", "planes_left") >= 1
    lost = pipe.counter(0, "packets_lost")
    for number in range(4):
        pipe.write(1 << 20, wr_id=2 + number, at_ns=pipe.now + 10)
        pipe.run(pipe.now + 100_000)
    assert len(pipe.completions()) == 5
    more = pipe.counter(0, "packets_lost") - lost
    assert more < 4 * lost, "it is tried again now and then, each time after twice as long"
    assert pipe.link(0, QPN_A).planes.left >> dead[0] & 1 or more < lost
