"""What leaves a switch, and what does not, is what leaves the kernel's own router with the same table.

The kernel follows RFC 9800 (NEXT-C-SID flavours of End and End.X) by itself, in a network namespace. Every packet is
given to both; the port and every byte are compared. Reasons of drops are our own and not compared.
"""

from collections import Counter
from struct import pack

import pytest

from mrcfabric.egress_config import EgressConfig
from mrcfabric.rng import Rng
from switchd.core.endpoint import settle
from switchd.core.settings import SwitchConfig
from tests.support.kernel_router import kernel_router

pytestmark = pytest.mark.integration

BLOCK, OWN, NEXT, LAST, STRANGER, LOCAL = 0xFCBB_BB00, 0x4001, 0x8002, 0x4003, 0x9999, 0x0002
CONFIG = SwitchConfig(
    "s", usid=OWN, block=BLOCK, fib={NEXT: 0, LAST: 1}, ports=(EgressConfig(),) * 2, adjacency={LOCAL: 1}
)
USIDS = (0, OWN, NEXT, LAST, STRANGER, LOCAL)
RANDOM_PACKETS = 3_000
_KERNEL_CALLS_MAX = 8


def container(*usids: int) -> bytes:
    """Six uSIDs at most; a zero among them is a hole."""
    return pack(">I6H", BLOCK, *usids, *(0,) * (6 - len(usids)))


def packet(
    first: bytes,
    *segments: bytes,
    left: int | None = None,
    units: int | None = None,
    last: int | None = None,
    hop_limit: int = 64,
    cut: int = 0,
) -> bytes:
    """A packet with these segments; `units` is what the routing header says of its length."""
    srh = b""
    if segments:
        count = len(segments)
        head = [59, 2 * count if units is None else units, 4, count if left is None else left]
        srh = bytes([*head, count - 1 if last is None else last, 0, 0, 0]) + b"".join(segments)
    body = srh + bytes(24)
    body = body[: len(body) - cut]
    # What the router of the test appends to a packet is counted in, so that its length is true.
    length = (len(body) + 10).to_bytes(2, "big")
    source = bytes.fromhex("fd99") + bytes(13) + b"\x01"
    return b"\x60" + bytes(3) + length + bytes([43 if segments else 59, hop_limit]) + source + first + body


def ours(body: bytes) -> tuple[int, bytes] | None:
    """What this project's switch does with it."""
    # The router appends ten bytes; a routing header that is longer than the rest must not find them.
    mine = bytearray(body + bytes(10))
    found = settle(mine, CONFIG)
    if isinstance(found, str):
        return None
    return {**CONFIG.fib, **CONFIG.adjacency}[found], bytes(mine[:-10])


NAMED = {
    "to a neighbour": packet(container(OWN, NEXT, LAST)),
    "a hole behind the own uSID": packet(container(OWN, 0, NEXT)),
    "such a hole, and a segment": packet(container(OWN, 0, NEXT), container(LAST)),
    "a hole further behind": packet(container(OWN, NEXT, 0, LAST)),
    "only the last place is not zero": packet(container(OWN, 0, 0, 0, 0, 7), container(LAST)),
    "a hole behind an adjacency": packet(container(OWN, LOCAL, 0, NEXT)),
    "a hole behind an adjacency, and a segment": packet(container(OWN, LOCAL, 0, NEXT), container(LAST)),
    "an adjacency and nothing": packet(container(OWN, LOCAL)),
    "an adjacency and a segment": packet(container(OWN, LOCAL), container(NEXT)),
    "used up": packet(container(OWN)),
    "used up, and a segment": packet(container(OWN), container(NEXT)),
    "used up, and a segment with a hole": packet(container(OWN), container(OWN, 0, NEXT)),
    "no segment left": packet(container(OWN), container(NEXT), left=0),
    "a header longer than its packet": packet(container(OWN), container(NEXT), units=40),
    "a header longer than its packet, not needed yet": packet(container(OWN, NEXT), container(NEXT), units=40),
    "a header cut short": packet(container(OWN), container(NEXT), container(LAST), cut=36),
    "another's uSID, of a neighbour": packet(container(NEXT, LAST)),
    "another's uSID, of a neighbour, last hop": packet(container(NEXT, LAST), hop_limit=1),
    "another's uSID, of nobody": packet(container(STRANGER, LAST)),
    "an adjacency without the own uSID": packet(container(LOCAL, LAST)),
    "the own uSID twice": packet(container(OWN, OWN, NEXT)),
    "the own uSID twice, two hops left": packet(container(OWN, OWN, NEXT), hop_limit=2),
    "no hop left": packet(container(OWN, NEXT), hop_limit=1),
}


def drawn(rng: Rng) -> bytes:
    """Any container, with any routing header that is not all nonsense."""

    def any_container() -> bytes:
        own = (OWN,) * (rng.below(4) > 0)
        rest = 6 - len(own)
        return container(*own, *(USIDS[rng.below(len(USIDS))] for _ in range(rng.below(rest + 1))))

    segments = tuple(any_container() for _ in range(max(0, rng.below(6) - 2)))
    strange = rng.below(4) == 0
    return packet(
        any_container(),
        *segments,
        left=rng.below(5) if strange else None,
        units=rng.below(12) if strange and rng.below(2) else None,
        last=rng.below(5) if strange and rng.below(2) else None,
        hop_limit=(64, 64, 2, 1)[rng.below(4)],
        cut=rng.below(24) if rng.below(4) == 0 else 0,
    )


def comparable(body: bytes) -> bool:
    """Whether nothing stands in the routing header behind its list, and the own uSID comes less than eight times.

    The kernel reads TLVs, which a switch passes over, and ends a packet that calls it again more often than that.
    """
    if body.count(OWN.to_bytes(2, "big")) >= _KERNEL_CALLS_MAX:
        return False
    return body[6] != 43 or body[41] <= 2 * (body[44] + 1) or len(body) + 10 < 48 + 8 * body[41]


@pytest.mark.spec("RFC 9800", "4.1.1")
@pytest.mark.spec("RFC 8754", "4.3")
def test_every_packet_leaves_where_it_leaves_the_kernel_and_as_it_does() -> None:
    rng = Rng("kernel forwarding")
    random = {f"drawn {number}": drawn(rng) for number in range(RANDOM_PACKETS)}
    bodies = {**NAMED, **{name: body for name, body in random.items() if comparable(body)}}
    with kernel_router(CONFIG) as router:
        theirs = router.forward(list(bodies.values()))
    different = {
        name: (body.hex(), own, kernel)
        for (name, body), kernel in zip(bodies.items(), theirs, strict=True)
        if (own := ours(body)) != kernel
    }
    assert different == {}
    outcomes = Counter(None if left is None else left[0] for left in theirs)
    assert min(outcomes[port] for port in (None, 0, 1)) > RANDOM_PACKETS // 20, "each outcome was tried often"
