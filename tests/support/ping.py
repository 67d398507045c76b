"""One echo request, as large as the question is, out of the network in which its socket was made."""

import asyncio
import errno
import os
import socket
import struct

_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER = 10, 23
_NEVER_FRAGMENT = 2
_ECHO_BYTES = 8
_IPV4_BYTES, _IPV6_BYTES = 20, 40
_UNREACHED = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EMSGSIZE)


def opened(address: str) -> socket.socket:
    """A socket for echoes to the address, by which no packet is cut into fragments. Needs CAP_NET_RAW."""
    if ":" in address:
        made = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _NEVER_FRAGMENT)
    else:
        made = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _NEVER_FRAGMENT)
    made.setblocking(False)
    return made


async def answers(by: socket.socket, address: str, packet_bytes: int, within_s: float) -> bool:
    """Whether the address answers an IP packet of this size."""
    loop = asyncio.get_running_loop()
    six = by.family == socket.AF_INET6
    kind, reply = (128, 129) if six else (8, 0)
    body = os.urandom(packet_bytes - _ECHO_BYTES - (_IPV6_BYTES if six else _IPV4_BYTES))
    header = struct.pack("!BBHHH", kind, 0, 0, os.getpid() & 0xFFFF, 1)
    sum_at_2 = struct.pack("!H", 0 if six else _checksum(header + body))
    try:
        async with asyncio.timeout(within_s):
            by.connect((address, 0))
            await loop.sock_sendall(by, header[:2] + sum_at_2 + header[4:] + body)
            while True:
                packet = await loop.sock_recv(by, packet_bytes + _IPV4_BYTES)
                answer = packet if six else packet[(packet[0] & 15) * 4 :]
                if answer[0] == reply and answer[_ECHO_BYTES:] == body:
                    return True
    except TimeoutError:
        return False
    except OSError as error:
        if error.errno in _UNREACHED:
            return False
        raise


def _checksum(data: bytes) -> int:
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
