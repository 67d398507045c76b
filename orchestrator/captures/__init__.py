"""Captures: write the packets of several links of a running fabric into one pcapng file."""
