"""RoCEv2's reliable connections (IBTA RC) with DCQCN: the transport of a NIC whose packets keep to one path."""
