"""Prometheus beside a fabric: its configuration, service discovery, rules, and the server process."""
