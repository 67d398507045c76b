"""UDP ports for tests that open their own sockets."""

import contextlib
import random
import socket
from pathlib import Path
from typing import Final

_LEAST: Final = 12_000
_PICK: Final = random.SystemRandom()


def free_udp_ports(count: int) -> list[int]:
    """Ports on loopback that were free a moment ago, all different.

    They lie below those that the kernel hands out by itself: whoever asks for any port a moment later, as hundreds of
    tests do, gets none of them.
    """
    handed_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found: list[int] = []
    with contextlib.ExitStack() as holding:
        while len(found) < count:
            holder = holding.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            with contextlib.suppress(OSError):
                holder.bind(("127.0.0.1", _PICK.randrange(_LEAST, handed_out)))
                found.append(int(holder.getsockname()[1]))
    return found
