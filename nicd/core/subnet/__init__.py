"""InfiniBand's management in a NIC: the agent that answers, and the subnet manager that one NIC may run."""
