"""Prometheus beside a fabric: its configuration, service discovery, recording and alerting rules, and the server."""
