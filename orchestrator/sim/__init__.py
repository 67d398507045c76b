"""A fabric in virtual time: the cores of the daemons in one process, without sockets."""
