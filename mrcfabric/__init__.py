"""What NICs, switches and the orchestrator share: the wire, the topology, time, and the drivers of the cores."""

from mrcfabric.cores import CORES as CORES  # before any core: it chooses which of them run
