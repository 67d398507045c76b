"""One emulated NIC as an asyncio daemon, and the host library that applications use to reach it."""
