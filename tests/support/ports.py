"""UDP ports for tests that open their own sockets."""

import socket


def free_udp_ports(count: int) -> list[int]:
    """Ports on loopback that were free a moment ago, all different."""
    holders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    try:
        for holder in holders:
            holder.bind(("127.0.0.1", 0))
        return [int(holder.getsockname()[1]) for holder in holders]
    finally:
        for holder in holders:
            holder.close()
