"""Another NIC, as a UET NIC knows it: its address, the planes towards it, the window and the credit for all QPs to it.

Owns what QPs to one destination share, UET's congestion control context. UEC 1.0 3.6 (CCC).
"""

from collections import deque

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.units import Instant
from mrcfabric.wire.uet_templates import UetTemplate, request_overhead
from nicd.core.board import Board
from nicd.core.congestion.open_window import OpenWindow
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.congestion.policies import window_towards
from nicd.core.queue_pair import Connection
from nicd.core.uet.credits import MOST_PRODUCTS, CreditSource, Grantor


def wire_overhead(with_credit: bool, crc: str) -> int:
    """Bytes that a data packet takes on the wire beside its payload."""
    return request_overhead(with_credit, crc) + OVERHEAD_BYTES


class Sharing(Connection):
    """A QP that shares window and credit with others."""

    __slots__ = ()

    @property
    def waiting_bytes(self) -> int:
        """Payload that is still to be sent, or to be sent again."""
        raise NotImplementedError

    @property
    def idle(self) -> bool:
        """Whether nothing is out and nothing waits."""
        raise NotImplementedError


class UetPeer:
    """One NIC that QPs of ours are connected to."""

    __slots__ = (
        "_board",
        "_mtu",
        "address",
        "credit",
        "grantor",
        "index",
        "overhead",
        "ports",
        "sharing",
        "template",
        "told",
        "windows",
    )

    def __init__(self, board: Board, index: int, grantor: Grantor | None = None) -> None:
        config, settings = board.config, board.settings
        self._board = board
        self._mtu = settings.mtu_bytes
        self.index = index
        destination = config.paths.towards(index)
        self.address = destination.address
        self.ports = destination.ports
        """The ports of both ends by plane."""
        self.template = UetTemplate(
            config.address, self.address, dscp=config.dscp, crc=settings.uet_crc, hop_limit=config.options.hop_limit
        )
        windowed = settings.uet_cc in ("nscc", "both")
        self.windows = PlaneWindows(
            settings, destination.rates_bps, board.stats, destination.same_t0, board.timers, self.wake,
            settings.uet_mode == "rud" and settings.uet_path != "oblivious", window_towards if windowed else OpenWindow,
        )  # fmt: skip
        self.credit: CreditSource | None = None
        """None: no credits."""
        credited = settings.uet_cc in ("rccc", "both")
        self.overhead = wire_overhead(credited, settings.uet_crc)
        if credited:
            bdp = sum(destination.rates_bps) * settings.base_rtt_ns // 8_000_000_000
            self.credit = CreditSource(
                bdp * settings.uet_speculation_ppt // 1000, MOST_PRODUCTS * max(bdp, settings.mtu_bytes) // 2
            )
        self.grantor = grantor if settings.uet_cc == "rccc" else None
        """Grants credit to this peer as a sender; None: acknowledgements speak of none."""
        self.told = 0
        """The last target that a packet carried."""
        self.sharing: deque[Sharing] = deque()
        """The living QPs that share these windows."""

    def wake(self) -> None:
        """A packet may leave towards this peer that could not before."""
        self.sharing.rotate(-1)
        for sender in self.sharing:
            self._board.scheduler.wake(sender)

    @property
    def idle(self) -> bool:
        """Whether no QP towards this peer has anything out or waiting."""
        return all(sender.idle for sender in self.sharing)

    def credit_target(self) -> int:
        """Up to where credit is wanted for all that waits, in units, 24 bits. Only where there are credits."""
        assert self.credit is not None
        self.told = target = self._target(self.credit)
        return target

    @property
    def untold(self) -> bool:
        """Whether packets wait for credit that the receiver has not been asked for."""
        credit = self.credit
        return credit is not None and not credit.open and self._target(credit) != self.told

    def _target(self, credit: CreditSource) -> int:
        waiting = sum([sender.waiting_bytes for sender in self.sharing])
        return credit.target(waiting + -(-waiting // self._mtu) * self.overhead)

    def credited(self) -> int | None:
        """All that the peer was ever granted, 24 bits; None: acknowledgements speak of no credit."""
        return None if self.grantor is None else self.grantor.granted(self.index)

    def send(self, now: Instant, port: int, packet: bytearray) -> bool:
        """Send an answer by the port if it has carrier, or by another. False: none has."""
        ports = self._board.ports
        if not ports.carrier >> port & 1:
            if not ports.carrier:
                self._board.stats.drop("no_port")
                return False
            port = (ports.carrier & -ports.carrier).bit_length() - 1
        ports.offer(now, port, packet, True)
        return True
