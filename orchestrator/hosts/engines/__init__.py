"""Engines: how the program of a fabric's share is started on a host, and how its end is heard."""
