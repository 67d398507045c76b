"""Where the fork server finds a worker: names only, so that who starts workers loads no tensors."""

ENTRY = "orchestrator.workers.worker:main"
"""The entry point for the fork server."""
PRELOADED = ("numpy", "orchestrator.workers.worker")
"""Modules that the fork server imports before, for all workers."""
