"""Transports by name."""

from nicd.compose import nic_config
from nicd.core.settings import NicSettings
from nicd.core.transports import TRANSPORTS, resident_max, slot_bytes, transport_of
from tests.nicd.core.bench import topology


def test_each_has_the_name_that_it_is_found_by() -> None:
    assert all(kind.name == name for name, kind in TRANSPORTS.items())


def test_each_has_a_board_of_its_own() -> None:
    one, other = (transport_of(nic_config(topology(), name), 0) for name in ("h000", "h001"))
    assert one.board is not other.board
    assert (one.board.config.name, other.board.config.name) == ("h000", "h001")


def test_each_says_what_a_qp_takes_on_the_chip() -> None:
    for name in TRANSPORTS:
        knobs = NicSettings(transport=name, sram_bytes=1 << 24)
        assert resident_max(knobs, 8) == (1 << 24) // slot_bytes(knobs, 8)
        assert resident_max(NicSettings(transport=name, sram_bytes=1), 8) == 1
        assert resident_max(NicSettings(transport=name), 8) is None
        assert slot_bytes(NicSettings(transport=name, sram_qp_bytes=777), 8) == 777
    assert slot_bytes(NicSettings(transport="rc"), 8) * 30 < slot_bytes(NicSettings(), 8)
