"""Processes and their surroundings: fork server, run folder, ports, streams between processes, logs."""
