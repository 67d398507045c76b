"""Coroutines in fabric time: who goes on when, and in which order."""

from mrcfabric.units import NEVER
from nicd.programs.strands import Signal, Strands


def always() -> bool:
    return True


def test_a_strand_goes_on_when_its_signal_fires_and_returns_a_value() -> None:
    strands = Strands()
    signal: Signal[int] = Signal(strands)

    async def waits() -> int:
        return 2 * await signal

    strand = strands.begin(waits())
    strands.run(5, always)
    assert not strand.end.fired
    assert strands.next_ns == NEVER
    signal.fire(21)
    assert strands.next_ns == 5
    strands.run(7, always)
    assert strand.end.value == 42


def test_strands_go_on_in_the_order_in_which_they_became_ready() -> None:
    strands = Strands()
    order: list[str] = []

    async def one(name: str, at_ns: int) -> None:
        await strands.until(at_ns)
        order.append(f"{name}@{strands.now}")

    async def all_of_them() -> None:
        for strand in [strands.begin(one(name, at_ns)) for name, at_ns in (("a", 9), ("b", 4), ("c", 9), ("d", 0))]:
            await strand
        order.append("all")

    strands.begin(all_of_them())
    strands.run(0, always)
    assert strands.next_ns == 4
    strands.run(4, always)
    strands.run(9, always)
    assert order == ["d@0", "b@4", "a@9", "c@9", "all"]


def test_nobody_goes_on_after_the_guard_has_fallen_or_after_the_end() -> None:
    strands = Strands()
    seen: list[int] = []

    async def note(number: int) -> None:
        seen.append(number)
        await strands.until(100)
        seen.append(-number)

    strands.begin(note(1))
    strands.begin(note(2))
    strands.run(1, lambda: not seen)
    assert seen == [1]
    strands.close()
    strands.run(200, always)
    assert seen == [1]
    assert strands.next_ns == NEVER


def test_strands_that_are_over_are_forgotten() -> None:
    strands = Strands()

    async def nothing() -> None:
        pass

    for _ in range(1000):
        strands.begin(nothing())
        strands.run(0, always)
    assert len(strands._alive) < 40
