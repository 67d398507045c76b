"""The agent of a running fabric: the HTTP server that answers commands, scripts and Prometheus."""
