"""The shape of a description: its lines, and its JSON."""

import json

from mrcfabric.wire.description import Description, Layer, Row
from mrcfabric.wire.packet import Packet


def test_lines_and_json_say_the_same() -> None:
    rows = [Row("qp", 24, 7, "mine"), Row("p_key", 16, 0xFFFF), Row("source", 128, bytes(15) + b"\1")]
    packet = Packet(payload=bytes(20), carried=20, sent=40, icrc=0x01020304, icrc_good=False, missing=20)
    description = Description(60, [Layer("BTH", 8, 12, rows)], "some packet", "icrc", ["Cut."], packet)
    assert description.as_text().splitlines() == [
        "60 bytes: some packet", "BTH  at 8, 12 bytes", "    qp      7  (mine)", "    p_key   0xffff",
        "    source  ::1",
        "Payload  20 bytes of 40: 0000 0000 0000 0000 0000 0000 0000 0000 ...", "ICRC  0x04030201  (wrong)", "Cut.",
        "Malformed: icrc",
    ]  # fmt: skip
    answer = json.loads(json.dumps(description.as_json()))
    assert answer["layers"] == [
        {"name": "BTH", "offset": 8, "size": 12, "fields": {"qp": 7, "p_key": 0xFFFF, "source": "::1"},
         "meanings": {"qp": "mine"}}
    ]  # fmt: skip
    assert (answer["icrc"], answer["missing_bytes"], answer["payload_bytes_sent"]) == (0x04030201, 20, 40)
