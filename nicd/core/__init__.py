"""The NIC without I/O: queue pairs, entropy values, loss recovery, memory; driven in fabric time."""
