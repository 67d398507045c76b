"""Which of several scripted commands for one instant a node carries out."""

from dataclasses import dataclass

from mrcfabric.node import Input, Rank
from mrcfabric.orders import Orders


@dataclass
class Carrier:
    port: int
    up: bool


@dataclass
class Trim:
    on: bool


def due(orders: Orders, *commands: tuple[int, object]) -> list[Input]:
    """Note these commands, with their instants, and return what a driver would take."""
    found = []
    for number, (at_ns, command) in enumerate(commands, 1):
        orders.note(at_ns, number, command)
        found.append(Input(at_ns, Rank.COMMAND, 0, number, command))
    return found


def counting(orders: Orders, inputs: list[Input]) -> list[int]:
    return [one.sequence for one in orders.counting(inputs)]


def test_the_last_for_an_instant_counts_and_nothing_else_is_touched() -> None:
    orders = Orders()
    waiting = due(
        orders,
        (500, Carrier(1, False)),
        (500, Carrier(2, False)),
        (600, Carrier(1, True)),
        (500, Trim(False)),
        (500, Carrier(1, True)),
        (500, Carrier(1, False)),
    )
    frame = Input(500, Rank.FRAME, 1, 1, b"")
    assert counting(orders, [frame, *waiting]) == [1, 2, 3, 4, 6]
    assert orders.latest == {}


def test_what_is_due_at_different_times_is_forgotten_in_turn() -> None:
    orders = Orders()
    first, second, third = due(orders, (500, Trim(False)), (700, Trim(False)), (700, Trim(True)))
    assert counting(orders, [first]) == [1]
    assert counting(orders, [second, third]) == [3]
    # A command that is no part of a script has a number of its own, and stays.
    other = Input(700, Rank.COMMAND, 0, 4, Trim(False))
    assert counting(orders, [other]) == [4]
    assert orders.latest == {}
