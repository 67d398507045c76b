"""Golden packets, put together by hand, field by field.

Origin: each line is one header, written down from the field tables of MRC 1.0 7.5, RFC 8200 and RFC 9800 with the
numbers below, lengths added up by hand. The last line of each is the ICRC in the order of the wire, worked out by a
bit-serial CRC-32 (the oracle in `tests/mrcfabric/wire/test_icrc.py`).

From fd00::1, QP 0x11, to fd00::2, QP 0xabc. EV 0x12345678: flow label 0x01234, source port 0x5678. Way 4000 (T0), 8001
(T1), 4001 (T0), c002 (destination) in block 5f00:0000. Hop limit 0x40.
"""

SOURCE = bytes.fromhex("fd000000000000000000000000000001")
DESTINATION = bytes.fromhex("fd000000000000000000000000000002")
CONTAINER = bytes.fromhex("5f000000400080014001c00200000000")
EV = 0x12345678
QP = 0xABC
SOURCE_QP = 0x11

_ADDRESSES = SOURCE.hex() + DESTINATION.hex()
_TUNNEL = SOURCE.hex() + CONTAINER.hex()


def _packet(*lines: str) -> bytes:
    return bytes.fromhex("".join(lines))


# WRITE Only with Immediate of "hello": UDP length 8 + 12 + 4 + 4 + 16 + 4 + 5 + 3 + 4 = 60 = 0x3c, outer 100 = 0x64.
# Traffic class: DSCP 4 << 2 | ECT(0) = 0x12.
WRITE = _packet(
    "6120123400642940" + _TUNNEL,
    "61201234003c1140" + _ADDRESSES,
    "567812b7003c0000",
    # pad 3 -> 0x30; A and ts -> 0x90
    "cb30ffff00000abc90000102",
    # RQMSN 3, MSN 7
    "00030007",
    # TSETH: ftype 1
    "12340001",
    "0000000010000ffedeadbeef00000005",
    "cafef00d",
    "68656c6c6f000000",
    "a50ed860",
)
# SACK: UDP length 8 + 12 + 36 + 4 = 60 = 0x3c. Traffic class: DSCP 46 << 2 = 0xb8.
SACK = _packet(
    "6b80123400642940" + _TUNNEL,
    "6b801234003c1140" + _ADDRESSES,
    "567812b7003c0000",
    # rtx -> 0x20
    "dc00ffff00000abc20000100",
    # M = 1 -> 1 << 5; ack_psn_offset -2; entropy
    "0020fffe89abcdef",
    "00110abc00000100",
    # mpr 8 (1,024 PSNs), bitmap base cack + 1, PSNs 0x101, 0x102 and 0x104
    "00080001000000000000000b",
    # tx_timestamp, ooo_count 3, restore_cwnd 1 and penalty 5 -> 0x85, 17 * 256 bytes
    "1234000385000011",
    "14b3a76a",
)
# NACK: 8 + 12 + 20 + 4 = 44 = 0x2c, outer 84 = 0x54.
NACK = _packet(
    "6b80123400542940" + _TUNNEL,
    "6b801234002c1140" + _ADDRESSES,
    "567812b7002c0000",
    "dd00ffff00000abc00000105",
    # reason TRIMMED, vendor 0, entropy
    "0000010089abcdef",
    "00110abc0000010500001234",
    "efd2371a",
)
# Transport ACK: 8 + 12 + 4 + 4 = 28 = 0x1c, outer 68 = 0x44.
ACKNOWLEDGE = _packet(
    "6b80123400442940" + _TUNNEL,
    "6b801234001c1140" + _ADDRESSES,
    "567812b7001c0000",
    "d100ffff00000abc00000100",
    "1f000007",
    "89594b41",
)
# Probe: 8 + 12 + 16 + 4 = 40 = 0x28, outer 80 = 0x50. Traffic class: DSCP 0, ECT(0) = 0x02.
PROBE = _packet(
    "6020123400502940" + _TUNNEL,
    "6020123400281140" + _ADDRESSES,
    "567812b700280000",
    "de00ffff00000abc00000000",
    # probe_id, ids, tx_timestamp, ftype 1
    "00000000beef000000110abc12340001",
    "1e34d26f",
)
# Port Status Update, request 0x777, port 2 of 0..7 down: 8 + 12 + 16 + 4 = 40 = 0x28.
ENDPOINT_REQUEST = _packet(
    "6b80123400502940" + _TUNNEL,
    "6b80123400281140" + _ADDRESSES,
    "567812b700280000",
    "d800ffff0000000200000777",
    "00000000000000fb0000000012340001",
    "7e1a91ed",
)
# Answer to an EV Probe: 8 + 12 + 36 + 4 = 60 = 0x3c; op 1 in bits 3:2 of the second byte.
ENDPOINT_RESPONSE = _packet(
    "6b80123400642940" + _TUNNEL,
    "6b801234003c1140" + _ADDRESSES,
    "567812b7003c0000",
    "d900ffff0000000200000777",
    "0004" + "00" * 26 + "1234" + "00" * 6,
    "ef17e5a1",
)

ALL = {
    "write": WRITE,
    "sack": SACK,
    "nack": NACK,
    "acknowledge": ACKNOWLEDGE,
    "probe": PROBE,
    "endpoint_request": ENDPOINT_REQUEST,
    "endpoint_response": ENDPOINT_RESPONSE,
}
