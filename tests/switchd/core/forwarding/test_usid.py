"""uSID forwarding behind the interface does what the switch's own loop does, packet by packet."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from switchd.core.forwarding.usid import UsidForwarding
from switchd.core.switch import Switch
from tests.support.mutate import mutated
from tests.switchd.core.test_switch import CONFIG, LAST, NEXT, OWN, STRANGER, frame, packet

PACKETS = (
    packet(OWN, NEXT, LAST, STRANGER), packet(OWN, LAST), packet(OWN, OWN, OWN, NEXT, LAST), packet(NEXT), packet(OWN),
    packet(STRANGER, NEXT), packet(OWN, NEXT, hop_limit=1), packet(OWN, NEXT)[:39], bytearray(b"\x45" + bytes(60)),
    packet(OWN, 5, NEXT),
)  # fmt: skip
ADJACENT = replace(CONFIG, adjacency={5: 0})


def compared(body: bytes | bytearray | memoryview) -> None:
    """One packet through both."""
    switch = Switch(ADJACENT)
    sent = switch.advance([frame(bytes(body))], 10_000)
    forwarding = UsidForwarding(ADJACENT)
    routed = forwarding.route(10, 0, body)
    drops = [reason for reason, count in switch.counters()["drops"].items() if count]
    if isinstance(routed, str):
        assert drops == [routed]
        assert not sent
    else:
        assert [(entry[0], entry[2]) for entry in sent] == [routed]
    assert forwarding.counters()["usids"] == switch.counters()["usids"]


@pytest.mark.spec("RFC 9800", "4.1.1")
@pytest.mark.parametrize("body", PACKETS)
def test_every_kind_of_packet(body: bytearray) -> None:
    for form in (bytes(body), bytearray(body), memoryview(bytearray(body)), memoryview(bytes(body))):
        compared(form)


@given(st.integers(0, 2**32))
def test_mutated_packets(seed: int) -> None:
    rng = Rng("usid", seed)
    compared(mutated(rng, PACKETS[rng.below(len(PACKETS))], sealed=False))


def test_the_usual_packet_is_patched_in_place() -> None:
    body = packet(OWN, NEXT, LAST)
    assert UsidForwarding(CONFIG).route(10, 0, body) == (1, packet(NEXT, LAST, hop_limit=63))
    assert body == packet(NEXT, LAST, hop_limit=63)


def test_a_dead_port_changes_nothing() -> None:
    forwarding = UsidForwarding(CONFIG)
    forwarding.carrier(10, 1, False)
    assert forwarding.route(11, 0, packet(OWN, NEXT, LAST))[0] == 1
