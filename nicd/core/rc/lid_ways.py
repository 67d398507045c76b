"""The path of an RC QP on InfiniBand, the way that its answers take, and its second path.

Owns which of the LIDs of both ends a QP uses, and automatic path migration. `nicd.core.rc.ways` is the same for RoCE.
An answer goes back by the port on which its cause came, where that has carrier, and over the LIDs of the QP's present
path.

A QP with two paths is armed at first, and its packets say so (MigReq is 0). When it takes the second one they say that
too (MigReq is 1), and a peer that is armed and hears this goes over with it. Then it has no other path any more.

Sources: IBTA 17.2.8 (automatic path migration), 9.6.1.1 (MigReq), 4.1.1 (LIDs).
"""

from mrcfabric.lids import base_lid
from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from mrcfabric.wire.lrh_rc import LrhControlTemplate, LrhDataTemplate
from nicd.core.board import Board
from nicd.core.credit_ports import CreditPorts
from nicd.core.rc.ways import NO_PORT


class LidWays:
    """What one QP sends by."""

    __slots__ = (
        "_board", "_controls", "_lid", "_other", "_peer_qpn", "_sl", "address", "armed", "migrations", "port", "sport",
    )  # fmt: skip

    def __init__(self, board: Board, qpn: int, peer_index: int, peer_qpn: int, port: int) -> None:
        config, settings = board.config, board.settings
        self._board = board
        self._peer_qpn = peer_qpn
        lmc = settings.lid_lmc
        self._lid = base_lid(config.index, lmc)
        self.address = base_lid(peer_index, lmc)
        """The peer's first LID."""
        self._sl = settings.lid_sl
        self.port = port
        """The port of the QP's own packets."""
        rng = Rng(config.seed, config.name, "lid", qpn, peer_index, peer_qpn)
        self.sport = rng.below(1 << lmc)
        """Which of its LIDs the QP uses, at both ends."""
        count = board.ports.count
        self._other = ((port + 1) % count, (self.sport + 1) % (1 << lmc))
        self.armed = settings.apm and self._other != (port, self.sport)
        """Whether there is a second path that has not been taken."""
        self.migrations = 0
        self._controls: dict[int, LrhControlTemplate] = {}

    def data(self) -> LrhDataTemplate:
        """The template of data packets by `port`."""
        return LrhDataTemplate(
            self._lid + self.sport, self.address + self.sport, self._peer_qpn, sl=self._sl, vl=self._vl(self.port),
            migrated=not self.armed, options=self._board.config.options,
        )  # fmt: skip

    def ack(self, now: Instant, port: int, psn24: int, msn24: int, syndrome: int, cause24: int) -> bool:
        """Send an acknowledgement or a NAK for what came by `port`. False: no port could take it."""
        carrier = self._board.ports.carrier
        if not carrier >> port & 1:
            port = self.port if carrier >> self.port & 1 else NO_PORT
        if port == NO_PORT:
            self._board.stats.drop("no_port")
            return False
        template = self._controls.get(port)
        if template is None:
            template = self._controls[port] = LrhControlTemplate(
                self._lid + self.sport, self.address + self.sport, self._peer_qpn, sl=self._sl, vl=self._vl(port),
                migrated=not self.armed, options=self._board.config.options,
            )  # fmt: skip
        self._board.ports.offer(now, port, template.ack(psn24, msn24, syndrome, cause24), True)
        return True

    def notify(self, now: Instant, port: int) -> bool:
        """Nothing: there are no CNPs here. Congestion control of InfiniBand is off, as it is deployed."""
        return False

    def migrate(self) -> bool:
        """Take the second path. False: there is none, or none that has carrier."""
        port, bits = self._other
        if not self.armed or not self._board.ports.carrier >> port & 1:
            return False
        self.port, self.sport, self.armed = port, bits, False
        self.migrations += 1
        self._controls.clear()
        return True

    def _vl(self, port: int) -> int:
        ports = self._board.ports
        assert isinstance(ports, CreditPorts)
        return ports.data_vl(port)
