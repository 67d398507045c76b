"""One UET packet of every kind, for tests."""

from mrcfabric.naming import nic_address
from mrcfabric.wire.uet import Write
from mrcfabric.wire.uet_layout import (
    CC_CREDIT,
    CC_NSCC,
    CC_REQUESTS,
    CONTROL_NAMES,
    FLAG_AR,
    FLAG_MARKED,
    FLAG_RETX,
    FLAG_SYN,
    NACK_NAMES,
    RC_OK,
    REQUESTS,
    RESPONSE,
    SES_EOM,
    SES_HD,
    SES_SOM,
)
from mrcfabric.wire.uet_templates import UetTemplate, credit_state, nscc_state

NEAR, FAR = nic_address(3), nic_address(70_000)
UET_PAYLOAD = bytes(range(61))
FIRST = Write(SES_SOM | SES_HD, 0xABCD, 0x01000002, 0x123, 0x456, 1 << 63, 0xDEADBEEF, 0xFEDC, 0x1122334455667788, 0,
              9_000)  # fmt: skip
LAST = FIRST._replace(flags=SES_EOM, data=0, message_offset=8_939)


def one_of_each_uet(crc: str = "crc32") -> list[bytes]:
    """Requests of every type, first and later ones, with and without SYN; ACKs, NACKs, control packets."""
    there, back = UetTemplate(NEAR, FAR, crc=crc), UetTemplate(FAR, NEAR, crc=crc)
    packets = [
        there.request(0xC0DE, kind, flags, -5, 0xFFFFFFFE, 7, 9, ses, UET_PAYLOAD, 0x12345678 * (kind in CC_REQUESTS))
        for kind in sorted(REQUESTS)
        for flags in (0, FLAG_SYN | FLAG_AR, FLAG_RETX)
        for ses in (FIRST, LAST)
    ]
    packets += [
        back.ack(1, FLAG_MARKED, -3, 70, 9, 7, CC_NSCC, 32, -64, 1 << 63 | 1, nscc_state(3, 0x80, 4, 5)),
        back.ack(1, 0, 3, 70, 9, 7, CC_CREDIT, 32, 64, 5, credit_state(77, 5), (RESPONSE, RC_OK, 4, 1, 9_000)),
    ]
    packets += [back.nack(2, FLAG_MARKED, code, 77, 9, 7, 78) for code in sorted(NACK_NAMES)]
    packets += [back.control(2, kind, 0, 77, 9, 7, 78, 79) for kind in range(len(CONTROL_NAMES))]
    return [bytes(packet) for packet in packets]
