"""Transports by name."""

from nicd.compose import nic_config
from nicd.core.transports import TRANSPORTS, transport_of
from tests.nicd.core.bench import topology


def test_each_has_the_name_that_it_is_found_by() -> None:
    assert all(kind.name == name for name, kind in TRANSPORTS.items())


def test_each_has_a_board_of_its_own() -> None:
    one, other = (transport_of(nic_config(topology(), name), 0) for name in ("h000", "h001"))
    assert one.board is not other.board
    assert (one.board.config.name, other.board.config.name) == ("h000", "h001")
