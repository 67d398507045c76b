"""How many entries of each table a QP of a UET NIC really holds, counted in its live structures.

Owns the counting; `nicd.core.state_report` makes the report, and `nicd.core.uet.footprint` has widths and sums.
"""

from typing import Final

from nicd.core.state_report import Account
from nicd.core.uet.footprint import UetCounts, limits_of, nic_bytes, on_chip_bytes, qp_bytes, slot_bytes
from nicd.core.uet.qp import UetLink


def held(link: UetLink) -> UetCounts:
    """How many of everything a connected QP holds now."""
    initiator, targets = link.initiator, link.targets.values()
    return UetCounts(
        len(initiator.table.by_psn),
        sum(target.early for target in targets),
        sum(len(target.messages) for target in targets),
        initiator.unfinished,
        sum(len(target.kept) for target in targets),
    )


def peak(link: UetLink) -> UetCounts:
    """The most of everything that it has held."""
    initiator, targets = link.initiator, link.targets.values()
    return UetCounts(
        initiator.table.peak,
        max((target.early_peak for target in targets), default=0),
        max((target.messages.peak for target in targets), default=0),
        initiator.unfinished_peak,
        max((target.kept.peak for target in targets), default=0),
    )


ACCOUNT: Final[Account[UetLink, UetCounts]] = Account(
    held, peak, limits_of, qp_bytes, on_chip_bytes, nic_bytes, slot_bytes
)
