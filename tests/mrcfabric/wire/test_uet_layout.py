"""Sizes of UET's headers, and which semantic header may follow which packet delivery header."""

from mrcfabric.wire import uet_headers as headers
from mrcfabric.wire.uet_layout import (
    ACK,
    ACK_CC,
    CC_REQUESTS,
    CONTROL,
    CONTROL_NAMES,
    NACK,
    NEXT_MEDIUM,
    NEXT_NONE,
    NEXT_RESPONSE,
    NEXT_SMALL,
    NEXT_STANDARD,
    PDS_SIZES,
    REQUESTS,
    SES_SIZES,
    TYPE_NAMES,
    semantic_size,
)


def test_sizes_are_those_of_the_tables() -> None:
    request, ack = headers.PdsRequest.SIZE, headers.PdsAck.SIZE
    assert request == headers.PdsSyn.SIZE
    for kind in REQUESTS:
        assert PDS_SIZES[kind] == request + (headers.PdsRequestCc.SIZE if kind in CC_REQUESTS else 0)
    assert (PDS_SIZES[ACK], PDS_SIZES[ACK_CC]) == (ack, ack + headers.PdsAckNscc.SIZE)
    assert headers.PdsAckCredit.SIZE == headers.PdsAckNscc.SIZE
    assert (PDS_SIZES[NACK], PDS_SIZES[CONTROL]) == (headers.PdsNack.SIZE, headers.PdsControl.SIZE)
    assert SES_SIZES == {
        NEXT_NONE: 0, NEXT_SMALL: headers.SesSmall.SIZE, NEXT_MEDIUM: headers.SesMedium.SIZE,
        NEXT_STANDARD: headers.SesFirst.SIZE, NEXT_RESPONSE: headers.SesResponse.SIZE,
    }  # fmt: skip
    assert headers.SesStandard.SIZE == headers.SesFirst.SIZE == 44
    assert PDS_SIZES.keys() == TYPE_NAMES.keys()


def test_what_may_follow() -> None:
    for kind in range(32):
        for following in range(16):
            size = semantic_size(kind, following)
            if kind in REQUESTS:
                assert (size > 0) == (following in (NEXT_SMALL, NEXT_MEDIUM, NEXT_STANDARD))
            elif kind in (ACK, ACK_CC):
                assert size == {NEXT_NONE: 0, NEXT_RESPONSE: 12}.get(following, -1)
            elif kind == CONTROL:
                assert (size == 0) == (following < len(CONTROL_NAMES))
            else:
                assert (size == 0) == (kind == NACK and following == NEXT_NONE)
