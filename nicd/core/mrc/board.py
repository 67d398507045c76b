"""What all parts of an MRC NIC share beside the board of every NIC: EV profiles, the deny list, tallies of EVs.

Owns nothing but the references, and figures that many QPs add to.
"""

from typing import Final

from mrcfabric.units import Instant
from mrcfabric.wire.layout import EXTENSION_OFFSET, ICRC_SIZE, METH_SIZE, RETH_SIZE, TSETH_SIZE
from nicd.core.board import Board
from nicd.core.ev_state import EvState
from nicd.core.mrc.deny_list import DenyList
from nicd.core.mrc.ev_events import EvEvents
from nicd.core.mrc.ev_profiles import ProfileTable
from nicd.core.mrc.footprint import resident_max
from nicd.core.mrc.penalty import penalty_of
from nicd.core.mrc.probe_turns import ProbeTurns
from nicd.core.settings import NicConfig

PACKET_OVERHEAD: Final = EXTENSION_OFFSET + METH_SIZE + RETH_SIZE + ICRC_SIZE
"""A data packet beside its payload, without a time stamp."""


class MrcBoard(Board):
    """One per NIC."""

    __slots__ = ("denied", "ev_events", "ev_tally", "length_turn_ns", "ooo_held", "penalty", "probe_turns", "profiles")

    def __init__(self, config: NicConfig) -> None:
        settings = config.settings
        # One full packet: payload, all headers, ICRC.
        packet = settings.mtu_bytes + PACKET_OVERHEAD + (TSETH_SIZE if settings.timestamps else 0)
        super().__init__(config, packet, resident_max(settings, len(config.ports)))
        self.denied = DenyList(settings.deny_entries_max)
        self.profiles = ProfileTable(config)
        self.ev_events = EvEvents(settings.ev_events_max)
        self.ev_tally = [[0] * len(EvState) for _ in config.ports]
        """EVs of all connected QPs that are not in error, by plane and state."""
        self.ooo_held = 0
        """Packets that all QPs together hold out of order."""
        self.length_turn_ns: Instant = 0
        """When the NIC may next ask a peer how long planes are."""
        self.penalty = penalty_of(settings)
        """Decides when our SACKs penalise senders; None: they never do."""
        self.probe_turns = ProbeTurns(settings.reverse_refresh_ns, settings.reverse_turns * len(config.ports))
        """Decides when which peer's reverse paths are probed."""
