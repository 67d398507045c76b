"""A NIC with a host: what daemons and the simulator run. The core alone is `nicd.core.nic.Nic`."""

from mrcfabric.units import Instant
from nicd.core.nic import Nic
from nicd.core.settings import NicConfig
from nicd.programs.host import Host


class HostedNic(Nic):
    """An MRC NIC beside which programs run."""

    def __init__(self, config: NicConfig, start_ns: Instant = 0) -> None:
        super().__init__(config, start_ns)
        self.host = Host(self._board, self._executor)
        """Has the results of programs; the command `RunProgram` starts them."""
