"""One emulated switch as an asyncio daemon."""
