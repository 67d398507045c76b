"""Engines: each starts the program of a fabric's share on a host in its own way, and hears how it ends."""
