"""The files of `deploy/prometheus`, and the unit tests of its rules."""
