"""The EV on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.entropy import EV_MAX, EvOrder, ev_from_wire, ev_to_wire


@pytest.mark.spec("MRC 1.0", "7.5.5")
def test_which_half_goes_where_is_one_setting() -> None:
    assert ev_to_wire(0x12345678) == (0x1234, 0x5678)
    assert ev_to_wire(0x12345678, EvOrder.PORT_HIGH) == (0x5678, 0x1234)


@given(ev=st.integers(0, EV_MAX), order=st.sampled_from(EvOrder), top=st.integers(0, 15))
def test_an_ev_comes_back_whatever_the_unused_bits_say(ev: int, order: EvOrder, top: int) -> None:
    label, port = ev_to_wire(ev, order)
    assert label >> 16 == 0
    assert ev_from_wire(label | top << 16, port, order) == ev
