"""Decides which host carries which node, at which addresses and ports, and whether it fits."""
