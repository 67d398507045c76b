"""Faults: what can be broken, where, when and by whom, and which commands make the daemons break it."""
