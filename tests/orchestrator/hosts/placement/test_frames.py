"""How long frames are between hosts, and what fits."""

from mrcfabric.wire.link import LINK_HEADER_BYTES
from orchestrator.hosts.placement.frames import frame_bytes, payload_within, what_fits


def test_frames_between_hosts() -> None:
    assert frame_bytes(4096, 4) == 4096 + 128 + 4 + LINK_HEADER_BYTES + 8 + 20
    assert frame_bytes(4096, 6) == frame_bytes(4096, 4) + 20


def test_the_payload_that_fits() -> None:
    assert payload_within(1500, 4) == 1024
    assert payload_within(9000, 6) == 4096
    assert payload_within(400, 4) is None
    assert what_fits(1500, 6) == "mtu_bytes: 1024 fits"
    assert what_fits(400, 4) == "no mtu_bytes is small enough"
