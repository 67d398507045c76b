"""What a witness hears of a port with eight classes: class, what waits in it, and pauses old and new."""

from dataclasses import replace

import pytest

from mrcfabric.choice import Choice
from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import TRIM_CLASS
from mrcfabric.node import Transmit
from mrcfabric.wire.dscp import Dscp
from mrcfabric.witness import Witness
from tests.mrcfabric.test_class_egress import PLAIN, drained, port
from tests.mrcfabric.test_egress_witness import packet, told


def watched(egress: ClassEgress) -> Witness:
    witness = Witness(Choice(), Dscp())
    egress.set_witness(witness)
    return witness


def test_the_class_and_what_waits_in_it() -> None:
    egress, out = port(), list[Transmit]()
    witness = watched(egress)
    size = len(packet(0))
    for psn, cls in enumerate((3, 0, 3, 3, 7)):
        egress.offer(0, packet(psn), cls, out)
    offers = told(witness, "offer")
    assert [(one["class"], one["class_bytes"]) for one in offers] == [
        (3, 0), (0, 0), (3, size), (3, 2 * size), (7, 0)
    ]  # fmt: skip
    assert [one["data_bytes"] for one in offers] == [0, size, 2 * size, 3 * size, 4 * size]
    drained(egress, out)


def test_what_is_trimmed_waits_in_another_class() -> None:
    egress, out = port(replace(PLAIN, data_bytes_max=500, trim=True)), list[Transmit]()
    witness = watched(egress)
    for psn in range(3):
        egress.offer(0, packet(psn), 3, out)
    assert [(one["verdict"], one["class"]) for one in told(witness, "offer")] == [
        ("queued", 3), ("trimmed", TRIM_CLASS), ("trimmed", TRIM_CLASS)
    ]  # fmt: skip


@pytest.mark.parametrize("since_ns", [100, 700])
def test_a_pause_in_force_is_told_when_a_packet_comes_to_wait(since_ns: int) -> None:
    egress, out = port(), list[Transmit]()
    if since_ns < 500:
        egress.pause(since_ns, 3, 5_000, out)
    egress.run(500, out)
    witness = watched(egress)
    if since_ns > 500:
        egress.pause(since_ns, 3, 5_000, out)
    egress.offer(1_000, packet(0), 3, out)
    egress.offer(1_000, packet(1), 0, out)
    egress.pause(2_000, 3, 9_000, out)
    egress.pause(3_000, 0, 9_000, out)
    egress.pause(4_000, 3, 4_000, out)
    drained(egress, out)
    pauses = [(one["at_ns"], one["since_ns"], one["until_ns"]) for one in told(witness, "pause")]
    assert pauses == [(1_000, since_ns, 5_000), (2_000, since_ns, 9_000), (4_000, since_ns, 4_000)]
    assert [one["at_ns"] for one in told(witness, "depart")] == [1_000, 4_000]


def test_a_pause_that_is_over_before_the_witness_comes_is_not_told() -> None:
    egress, out = port(), list[Transmit]()
    egress.pause(0, 3, 400, out)
    egress.run(500, out)
    witness = watched(egress)
    egress.offer(600, packet(0), 3, out)
    drained(egress, out)
    assert told(witness, "pause") == []


def test_since_when_a_class_is_paused() -> None:
    egress, out = port(), list[Transmit]()
    egress.pause(0, 3, 5_000, out)
    assert (egress.paused_since(3, 10), egress.paused_since(4, 10), egress.paused_since(3, 5_000)) == (0, None, None)
