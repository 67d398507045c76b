"""Runs: a scenario carried out on real daemons or in virtual time, and what was recorded of it."""
