"""One fabric time for all hosts: the clock page of a host, and the relay that synchronises the pages of all hosts."""
