"""The one port and path of an RC QP, and the way that its answers take.

Owns the choice of the port, the source port (the entropy of ECMP), and the templates of acknowledgements and
notifications. An answer goes back by the port on which its cause came, where that has carrier. IBTA annex A17 (source
port), A17.9 (CNP).
"""

from typing import Final

from mrcfabric.rng import Rng, seed_of
from mrcfabric.units import Instant
from mrcfabric.wire.roce import CnpTemplate, RcControlTemplate, RcDataTemplate
from mrcfabric.wire.roce_layout import SPORT_MAX, SPORT_MIN
from nicd.core.board import Board

NO_PORT: Final = -1


def choose_port(carrier: int, turn: int, ends: tuple[tuple[int, int], tuple[int, int]] | None) -> int:
    """A port among the bits of `carrier`, or NO_PORT: number `turn` of them, or by the (NIC, QPN) of both ends.

    Both ends of a QP find the same port by their numbers, if the same ones have carrier.
    """
    ports = [port for port in range(carrier.bit_length()) if carrier >> port & 1]
    if not ports:
        return NO_PORT
    if ends is None:
        return ports[turn % len(ports)]
    (low, low_qpn), (high, high_qpn) = sorted(ends)
    return ports[seed_of("rc_port", low, low_qpn, high, high_qpn) % len(ports)]


class Ways:
    """What one QP sends by."""

    __slots__ = ("_board", "_cnps", "_controls", "_outers", "_peer_qpn", "address", "port", "sport")

    armed = False
    """There is one path."""

    def __init__(self, board: Board, qpn: int, peer_index: int, peer_qpn: int, port: int) -> None:
        config = board.config
        settings = board.settings
        self._board = board
        self._peer_qpn = peer_qpn
        destination = config.paths.towards(peer_index)
        self.address = destination.address
        self.port = port
        """The port of the QP's own packets."""
        rng = Rng(config.seed, config.name, "rc", qpn, peer_index, peer_qpn)
        self.sport = SPORT_MIN + rng.below(SPORT_MAX + 1 - SPORT_MIN)
        self._outers: list[bytes | None] = [None] * board.ports.count
        if settings.rc_path == "pinned":
            evs = destination.draw_evs(rng, 1, 0)[0]
            for ev in evs:
                path = destination.path(ev)
                self._outers[path.port] = path.outer
        self._controls: dict[int, RcControlTemplate] = {}
        self._cnps: dict[int, CnpTemplate] = {}

    def data(self) -> RcDataTemplate:
        """The template of data packets by `port`."""
        config, settings = self._board.config, self._board.settings
        return RcDataTemplate(
            config.address, self.address, self._peer_qpn, self.sport, dscp=settings.rc_data_dscp,
            outer=self._outers[self.port], selective=settings.rc_recovery == "selective", options=config.options,
        )  # fmt: skip

    def ack(self, now: Instant, port: int, psn24: int, msn24: int, syndrome: int, cause24: int) -> bool:
        """Send an acknowledgement or a NAK for what came by `port`. False: no port could take it."""
        port = self._way_back(port)
        if port == NO_PORT:
            self._board.stats.drop("no_port")
            return False
        template = self._controls.get(port)
        if template is None:
            config, settings = self._board.config, self._board.settings
            template = self._controls[port] = RcControlTemplate(
                config.address, self.address, self._peer_qpn, self.sport, dscp=settings.rc_ack_dscp,
                outer=self._outers[port], selective=settings.rc_recovery == "selective", options=config.options,
            )  # fmt: skip
        self._board.ports.offer(now, port, template.ack(psn24, msn24, syndrome, cause24), True)
        return True

    def notify(self, now: Instant, port: int) -> bool:
        """Send a congestion notification for what came by `port`. False: no port could take it."""
        port = self._way_back(port)
        if port == NO_PORT:
            self._board.stats.drop("no_port")
            return False
        template = self._cnps.get(port)
        if template is None:
            config, settings = self._board.config, self._board.settings
            template = self._cnps[port] = CnpTemplate(
                config.address, self.address, self._peer_qpn, self.sport, dscp=settings.np_cnp_dscp,
                outer=self._outers[port], options=config.options,
            )  # fmt: skip
        self._board.ports.offer(now, port, template.cnp(), True)
        return True

    def migrate(self) -> bool:
        """Take another path: there is none."""
        return False

    def _way_back(self, port: int) -> int:
        carrier = self._board.ports.carrier
        if carrier >> port & 1:
            return port
        return self.port if self.port != NO_PORT and carrier >> self.port & 1 else NO_PORT
