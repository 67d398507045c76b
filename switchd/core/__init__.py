"""The switch without I/O: uSID forwarding, queues, marking and trimming; driven in fabric time."""
