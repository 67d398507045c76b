"""Names of attributes are the same for interpreted classes and for compiled ones."""

from mrcfabric.attributes import attribute_names
from nicd.core.board import Board
from nicd.core.mrc.board import MrcBoard


class One:
    __slots__ = ("first",)


class Two(One):
    __slots__ = ("second",)


class Compiled:
    __mypyc_attrs__ = ("second", "first")


def test_slots_of_bases_are_among_them() -> None:
    assert set(attribute_names(Two)) == {"first", "second"}
    assert attribute_names(int) == ()


def test_compiled_classes_have_theirs() -> None:
    assert attribute_names(Compiled) == ("second", "first")


def test_cores_have_the_same_whichever_run() -> None:
    assert {"config", "ports", "timers"} < set(attribute_names(Board)) < set(attribute_names(MrcBoard))
