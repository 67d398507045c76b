"""The table of a PFC frame says what the encoder writes and the parser reads."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.pfc import CLASSES, encode, fault, parse
from mrcfabric.wire.pfc_headers import Fcs, PfcHeader, dissect, is_mac_control

QUANTA = st.dictionaries(st.integers(0, 7), st.integers(0, 0xFFFF))


@given(QUANTA, st.binary(min_size=6, max_size=6))
def test_the_table_agrees_with_encoder_and_parser(quanta: dict[int, int], source: bytes) -> None:
    frame = encode(source, quanta)
    header = PfcHeader.parse(frame)
    found = parse(frame)
    assert found is not None
    assert (header.classes, header.source) == (found.enabled, found.source)
    assert tuple(getattr(header, f"quanta_{one}") for one in range(CLASSES)) == found.quanta
    assert header.emit() + Fcs.parse(frame[60:]).emit() == frame


@given(st.binary(max_size=80))
def test_any_bytes_have_a_reason_or_are_good(frame: bytes) -> None:
    _, reason = dissect(frame)
    assert reason == fault(frame) or len(frame) == 60
    assert dissect(frame, left_out=3)[1] is None


def test_no_packet_begins_as_a_frame() -> None:
    frame = encode(bytes(6), {1: 1})
    assert is_mac_control(frame)
    assert not is_mac_control(b"\x60" + frame[1:])
    assert not is_mac_control(frame[:12] + b"\x86\xdd" + frame[14:])
    assert not is_mac_control(b"")
