"""Faults: what can be broken, where, when, by whom, and which commands to which daemons bring that about."""
