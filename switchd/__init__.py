"""One emulated switch as an asyncio daemon."""

import mrcfabric as mrcfabric  # before any core: it chooses which of them run
