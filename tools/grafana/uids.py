"""The names of the boards in addresses, by which they link to each other."""

from typing import Final

OVERVIEW: Final = "mrcfabric-overview"
PLANES: Final = "mrcfabric-planes"
NICS: Final = "mrcfabric-nics"
FAULTS: Final = "mrcfabric-faults"
TRAINING: Final = "mrcfabric-training"
SYSTEMS: Final = "mrcfabric-systems"
FIDELITY: Final = "mrcfabric-fidelity"
