"""RoCE's numbers, by hand from the standard, and the sizes behind the BTH."""

from mrcfabric.wire import roce_layout as rc
from mrcfabric.wire.layout import OPCODE_NAMES


def test_opcodes_and_syndromes() -> None:
    assert [rc.RC_WRITE_FIRST, rc.RC_WRITE_ONLY_IMM, rc.RC_ACK, rc.CNP] == [0x06, 0x0B, 0x11, 0x81]
    assert set(rc.RC_OPCODE_NAMES) == rc.RC_DATA_OPCODES | {rc.RC_ACK, rc.CNP}
    assert not set(rc.RC_OPCODE_NAMES) & set(OPCODE_NAMES), "MRC has opcodes of its own"
    kinds = [one >> rc.SYNDROME_KIND_SHIFT for one in (rc.RC_ACK_SYNDROME, rc.RC_RNR_NAK, rc.NAK_SEQUENCE)]
    assert kinds == [rc.KIND_ACK, rc.KIND_RNR, rc.KIND_NAK]
    assert [rc.NAK_INVALID_REQUEST & 31, rc.NAK_REMOTE_ACCESS & 31, rc.NAK_REMOTE_OPERATIONAL & 31] == [1, 2, 3]


def test_only_what_begins_a_message_names_a_place_unless_both_are_selective() -> None:
    sizes = {one: rc.extension_size(one) for one in sorted(rc.RC_OPCODE_NAMES)}
    assert sizes == {0x06: 16, 0x07: 0, 0x08: 0, 0x09: 4, 0x0A: 16, 0x0B: 20, 0x11: 4, 0x81: 16}
    selective = {one: rc.extension_size(one, selective=True) for one in sorted(rc.RC_OPCODE_NAMES)}
    assert selective == {0x06: 16, 0x07: 16, 0x08: 16, 0x09: 20, 0x0A: 16, 0x0B: 20, 0x11: 8, 0x81: 16}
    assert {rc.extension_size(one) for one in range(256) if one not in rc.RC_OPCODE_NAMES} == {-1}
