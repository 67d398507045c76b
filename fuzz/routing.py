"""Packets between routing cores: their decoders (`bgp`, `local`), and a core that hears them damaged (`router`).

Whatever the bytes, a decoder returns or raises the one error of its kind with a reason that a counter can have. A core
never raises; what it keeps stays bounded by its neighbours; and when the noise is over, its sessions come back.
"""

from functools import cache

from fuzz.script import Script, damaged
from mrcfabric.errors import WireError
from mrcfabric.prefix import Prefix
from mrcfabric.wire import bfd, bgp, bgp_update, local, tcp
from mrcfabric.wire.bgp import Open
from mrcfabric.wire.bgp_update import Attributes
from switchd.core.routing.session import ESTABLISHED
from tests.support.speakers import S, clos

STEPS_MAX = 40
PACKETS_KEPT = 64
_HOP = bytes.fromhex("fe80" + "00" * 13 + "01")


def messages(data: bytes) -> None:
    """The first byte chooses a reader, the rest is a message, or a stream of them."""
    choice, raw = (data[0] if data else 0) % 4, data[1:]
    try:
        if choice == 0:
            stream = bytearray(raw)
            while bgp.take(stream) is not None:
                assert len(stream) < len(raw), "a message takes bytes"
        elif choice == 1:
            bgp.parse_open(raw)
        elif choice == 2:
            bgp.parse_notification(raw)
        else:
            found = bgp_update.parse(raw)
            assert all(0 <= one.length <= 128 for one in (*found.reach, *found.unreach))
    except WireError as error:
        assert error.reason.isidentifier(), "a reason is a counter's name"


def packets(data: bytes) -> None:
    """A packet for a switch itself: TCP and BFD in IPv6."""
    try:
        found = local.parse(data)
        if found.next_header == local.NEXT_HEADER_TCP:
            tcp.parse(found)
        else:
            bfd.parse(found)
    except WireError as error:
        assert error.reason.isidentifier(), "a reason is a counter's name"


def router(data: bytes) -> None:
    """Two T0s and two T1s whose real packets are heard again, damaged, at any port and instant."""
    script = Script(data)
    graph = clos(2, 2, bfd=True, bgp_connect_retry_ns=S)
    graph.run(3 * S)
    real = _packets()
    names = list(graph.routers)
    for _ in range(min(STEPS_MAX, script.left)):
        name = script.one_of(names)
        packet = script.one_of(real)
        heard = damaged(script, packet, real, (1, 2)) if script.number() & 1 else packet
        graph.hear(name, script.below(3), bytes(heard))
        graph.run(graph.now + script.number() * 1_000_000)
    graph.run(graph.now + 60 * S)
    for name, core in graph.routers.items():
        states = {session.state for session in core.sessions.values()}
        assert states == {ESTABLISHED}, f"{name}: {states}"
        assert all(len(routes) <= len(core.sessions) for routes in core.rib.heard.values())
        assert len(core.writer.waiting) == 0


@cache
def _packets() -> tuple[bytes, ...]:
    """What cores say to one another while sessions come up and a link fails."""
    graph = clos(2, 2, bfd=True)
    graph.run(2 * S)
    graph.cut("t0-0", "t1-0")
    graph.run(3 * S)
    every = [packet for found in graph.arrivals.values() for _, packet in found]
    return tuple(dict.fromkeys(every[:: max(1, len(every) // PACKETS_KEPT)]))


def message_seeds() -> list[bytes]:
    """Each message, for its reader."""
    attributes = Attributes((4_200_000_000, 4_200_000_001), _HOP, 0, (bgp_update.GRACEFUL_SHUTDOWN,))
    prefixes = [Prefix(0xFD << 120 | one << 64, 64) for one in range(3)]
    whole = [bgp.encode_open(Open(4_200_000_001, 9, 7)), *bgp_update.announcements(attributes, prefixes),
             *bgp_update.withdrawals(prefixes), bgp_update.end_of_rib(), bgp.frame(bgp.KEEPALIVE),
             bgp.encode_notification(bgp.Notification(bgp.CEASE, bgp.CEASE_RESET))]  # fmt: skip
    bodies = [bytes([choice]) + one[bgp.HEADER_SIZE :] for one in whole for choice in (1, 2, 3)]
    return [b"\0" + b"".join(whole), *(b"\0" + one for one in whole), *bodies]


def packet_seeds() -> list[bytes]:
    """What cores say to one another."""
    return list(_packets())


def router_seeds() -> list[bytes]:
    """Quiet and noisy runs."""
    return [bytes((17 * one + 31 * size) & 255 for one in range(size)) for size in (0, 8, 40, 120)]
