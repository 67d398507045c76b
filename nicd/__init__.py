"""One emulated NIC as an asyncio daemon, and the host library that applications use to reach it."""

import mrcfabric as mrcfabric  # before any core: it chooses which of them run
