"""A fabric in virtual time: the cores of all nodes run in one process, without sockets."""
