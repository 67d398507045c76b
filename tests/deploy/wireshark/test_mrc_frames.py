"""Link headers as Wireshark shows them are those that a port writes, one frame by itself or several in a row."""

from pathlib import Path

import pytest

from mrcfabric.rng import Rng
from mrcfabric.wire import pcapng_writer
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.link import CONTROL, LINK_VERSION, link_frame, link_stamp
from mrcfabric.wire.pfc import encode
from tests.checks.source import ROOT
from tests.support.roce_packets import one_of_each_rc
from tests.support.tshark import fields
from tests.vectors import wire as golden

pytestmark = pytest.mark.integration

SCRIPT = ROOT / "deploy/wireshark/mrc_frames.lua"
NAMES = (
    "mrclink.arrival_ns", "mrclink.sequence", "mrclink.incarnation", "mrclink.version", "mrclink.control",
    "mrclink.tag", "mrclink.bytes", "mrclink.body",
)  # fmt: skip
PAUSE = bytes(encode(bytes(6), {3: 65_535}))
TAG = 0xC0FFEE42


def datagram(payload: bytes) -> bytes:
    """As a network between hosts carries it."""
    udp = Udp(40_000, 40_001, 8 + len(payload)).emit()
    return (
        Ipv6(payload_length=8 + len(payload), source=bytes(15) + b"\1", destination=bytes(15) + b"\1").emit()
        + udp
        + payload
    )


def frame(sequence: int, body: bytes, flags: int = 0, version: int = LINK_VERSION) -> bytes:
    return link_frame(1_000 * sequence, sequence, link_stamp(7, flags, TAG, version), body)


def shown(tmp_path: Path, payloads: list[bytes]) -> list[dict[str, list[str]]]:
    file = tmp_path / "x.pcapng"
    out = [pcapng_writer.section("mrcfabric"), pcapng_writer.interface("lo")]
    packets = [datagram(payload) for payload in payloads]
    out += [pcapng_writer.packet(0, at_ns, packet, len(packet)) for at_ns, packet in enumerate(packets)]
    file.write_bytes(b"".join(out))
    return fields(file, NAMES, "-o", "udp.ignore_ipv6_zero_checksum:TRUE", scripts=(SCRIPT,))


def test_frames_alone_and_in_trains(tmp_path: Path) -> None:
    bodies = [golden.WRITE, *one_of_each_rc(), PAUSE, golden.SACK]
    train = [frame((1 << 40) - 2 + place, body, body == PAUSE and CONTROL) for place, body in enumerate(bodies)]
    rows = shown(tmp_path, [*train, b"".join(train)])
    for row, body, place in zip(rows, bodies, range(len(bodies)), strict=False):
        sequence = (1 << 40) - 2 + place
        assert row["mrclink.arrival_ns"] == [str(1_000 * sequence)]
        assert row["mrclink.sequence"] == [str(sequence)]
        assert (row["mrclink.incarnation"], row["mrclink.version"]) == (["7"], [str(LINK_VERSION)])
        assert row["mrclink.control"] == [str(int(body == PAUSE))]
        assert row["mrclink.tag"] == [f"0x{TAG:08x}"]
        assert row["mrclink.bytes"] == [str(len(body))]
        assert row["mrclink.body"] == [body.hex()]
    together = rows[-1]
    assert together["mrclink.body"] == [body.hex() for body in bodies]
    assert [int(text) for text in together["mrclink.sequence"]] == [
        (1 << 40) - 2 + place for place in range(len(bodies))
    ]


def test_other_datagrams_are_left_alone(tmp_path: Path) -> None:
    rng = Rng("frames", "noise")
    noise = [bytes(rng.below(256) for _ in range(1 + rng.below(120))) for _ in range(200)]
    good = frame(1, golden.WRITE)
    others = [frame(1, golden.WRITE, version=1), frame(1, golden.WRITE, flags=2), frame(1, golden.WRITE, flags=CONTROL)]
    others += [frame(1, PAUSE), b"", good[:24], good[:30]]
    # What stands behind UDP in a packet, with an address and a key that look like version, flags and IPv6.
    others += [bytes((opcode, *good[1:])) for opcode in (0x06, 0x11, 0x81, 0xC6, 0xDE)]
    rows = shown(tmp_path, [*noise, *others, good])
    assert not any(row["mrclink.version"] for row in rows[:-1])
    assert rows[-1]["mrclink.bytes"] == [str(len(golden.WRITE))]


def test_a_spoilt_train_makes_no_script_raise(tmp_path: Path) -> None:
    rng = Rng("frames", "spoilt")
    train = b"".join(frame(place, PAUSE, CONTROL) for place in range(1, 6))
    payloads = []
    for _ in range(300):
        copy = bytearray(train)
        for _ in range(rng.below(4)):
            copy[rng.below(len(copy))] = rng.below(256)
        payloads.append(bytes(copy[: rng.below(len(copy) + 1)]))
    assert len(shown(tmp_path, payloads)) == 300
