"""How many entries of each table a QP of an RC NIC really holds, counted in its live structures.

Owns the counting; `nicd.core.state_report` makes the report, and `nicd.core.rc.footprint` has widths and sums.
"""

from typing import Final

from nicd.core.rc.footprint import RcCounts, limits_of, nic_bytes, on_chip_bytes, qp_bytes, slot_bytes
from nicd.core.rc.qp import RcLink
from nicd.core.state_report import Account


def held(link: RcLink) -> RcCounts:
    """How many of everything a connected QP holds now."""
    return RcCounts(link.requestor.tracked, link.responder.early, link.requestor.unfinished)


def peak(link: RcLink) -> RcCounts:
    """The most of everything that it has held."""
    requestor = link.requestor
    return RcCounts(requestor.tracked_peak, link.responder.early_peak, requestor.unfinished_peak)


ACCOUNT: Final[Account[RcLink, RcCounts]] = Account(
    held, peak, limits_of, qp_bytes, on_chip_bytes, nic_bytes, slot_bytes
)
