"""Compiles the cores: mypyc makes extension modules of the sources that are on the way of a packet."""
