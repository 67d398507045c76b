"""The application's side of the verbs conversation, packet by packet."""

import contextlib

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.verbs_codec import (
    MESSAGE_BYTES_MAX,
    POSTS_PER_MESSAGE_MAX,
    Cqe,
    Endpoint,
    MemoryRegion,
    QueuePair,
    Session,
    VerbsError,
    Work,
    pack,
    unpack,
    work_of,
)

REGION = MemoryRegion(3, 77, 0x1000, 100, memoryview(bytearray(100)))
QP = QueuePair(17, Endpoint(0, 17, 5))


def test_answers_find_their_requests_in_any_order() -> None:
    session = Session()
    first, packet = session.request("reg_mr", length=5)
    second, _ = session.request("create_qp")
    assert unpack(packet) == [first, "reg_mr", {"length": 5}]
    session.receive(pack((second, None, {"qpn": 9})))
    assert not session.answered(first)
    assert session.result_of(second) == {"qpn": 9}
    session.receive(pack((first, "no room", None)))
    with pytest.raises(VerbsError, match="no room"):
        session.result_of(first)


def test_a_late_answer_to_a_forgotten_request_is_dropped() -> None:
    session = Session()
    number, _ = session.request("create_qp")
    session.forget(number)
    session.receive(pack((number, None, {})))
    assert not session.answered(number)


def test_completions_and_errors_keep_their_order() -> None:
    session = Session()
    one, two = Cqe(1, 2, "ok", "write", 4, None, 10, 5), Cqe(1, 3, "refused", "write", 4, None, 0, 0, "why")
    session.receive(pack((0, "cqe", [one, two])))
    session.receive(pack((0, "qp_error", (1, "retry_exceeded"))))
    assert session.take_cqes(1) == [one]
    assert session.take_cqes(9) == [two]
    assert (one.ok, two.ok) == (True, False)
    assert session.qp_errors == [(1, "retry_exceeded")]


def test_after_a_hang_up_every_call_says_why() -> None:
    session = Session()
    number, _ = session.request("create_qp")
    session.receive(pack((0, "bye", "the daemon stops")))
    session.receive(b"")
    assert session.answered(number)
    for call in (lambda: session.result_of(number), lambda: session.request("x"), lambda: session.posts([])):
        with pytest.raises(VerbsError, match="the daemon stops"):
            call()


def test_posts_are_cut_into_messages_that_fit() -> None:
    widest = Work((1 << 24) - 1, (1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1, (1 << 32) - 1, (1 << 64) - 1, 1 << 31, 7)
    packets = Session().posts([widest] * (2 * POSTS_PER_MESSAGE_MAX + 1))
    assert [len(unpack(packet)[2]) for packet in packets] == [POSTS_PER_MESSAGE_MAX] * 2 + [1]
    assert max(map(len, packets)) < MESSAGE_BYTES_MAX


@pytest.mark.parametrize(
    ("offset", "length", "target", "wr_id", "imm"),
    [
        (0, 0, (0, 0), 0, None),
        (0, 101, (0, 0), 0, None),
        (-1, 5, (0, 0), 0, None),
        (96, 5, (0, 0), 0, None),
        (0, 5, (1 << 64, 0), 0, None),
        (0, 5, (0, 1 << 32), 0, None),
        (0, 5, (0, 0), -1, None),
        (0, 5, (0, 0), 0, 1 << 32),
    ],
)
def test_work_outside_its_bounds_is_refused(
    offset: int, length: int, target: tuple[int, int], wr_id: int, imm: int | None
) -> None:
    with pytest.raises(VerbsError):
        work_of(QP, REGION, offset, length, target, wr_id, imm)


def test_work_names_the_region_and_the_address() -> None:
    assert work_of(QP, REGION, 10, 90, (5, 6), 1, 2) == Work(17, 1, 3, 0x100A, 90, 5, 6, 2)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_a_verbs_error(data: bytes) -> None:
    try:
        message = unpack(data)
    except VerbsError:
        return
    assert len(message) == 3


@given(st.recursive(st.none() | st.integers(0, 9) | st.text(max_size=3), lambda inner: st.lists(inner, max_size=4)))
def test_any_message_but_a_list_of_three_is_refused(message: object) -> None:
    data = msgpack.packb(message)
    if isinstance(message, list) and len(message) == 3:
        assert unpack(data) == message
    else:
        with pytest.raises(VerbsError):
            unpack(data)


@pytest.mark.parametrize(
    "message",
    [(0, "cqe", None), (0, "cqe", [7]), (0, "cqe", [[1, 2]]), (0, "qp_error", [1]), ([], None, None), (0, "cqe", {})],
)
def test_nonsense_from_the_other_side_is_one_kind_of_error(message: tuple[object, ...]) -> None:
    session = Session()
    with contextlib.suppress(VerbsError):
        session.receive(pack(message))
    assert not session.cqes
    assert not session.qp_errors
