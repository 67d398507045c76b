"""Rows of `spec_choices`: where a NIC keeps its state, and how large it is."""

from typing import Final

from tests.checks.choice import NIC, UNKNOWN, Choice
from tests.checks.choice import of as _of

STATE: Final = (
    Choice(
        "Where a NIC keeps the state of its QPs, and what a context that is not on the chip costs",
        UNKNOWN,
        "No public text says. All of it is on the chip and costs nothing, unless a size is set: then the context "
        "longest unused is spilled, and a packet of a spilled QP waits, in order, for a fetch of this length. Sizes "
        "are added up from named field widths; a QP's slot holds every table at its limit.",
        _of(NIC, "sram_bytes", "sram_qp_bytes", "sram_miss_ns", "sram_fetches", "sram_waiting_max"),
    ),
    Choice(
        "Bits per EV in a NIC's table",
        UNKNOWN,
        "The 32 that travel; plane and up-link alone need 11 in a fabric of 8 planes and 256 up-links.",
        _of(NIC, "ev_bits"),
    ),
)
