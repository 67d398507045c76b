"""Captures: the packets of several links of a running fabric, in one pcapng file."""
