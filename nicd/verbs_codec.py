"""The verbs protocol between an application and its NIC daemon, without any I/O.

Owns the messages on the Unix socket and the application's side of the conversation (`Session`); the sockets are in
`nicd.verbs` (client) and `nicd.verbs_server` (daemon). One SOCK_SEQPACKET packet is one msgpack message:

    application -> NIC   [id, op, args]            a request; `id` counts from 1; a memfd rides beside `reg_mr`
                         [0, "post", [WORK...]]    posted work; nobody answers, every WORK ends in a CQE
    NIC -> application   [id, error, result]       the answer to a request; error is None or one line of text
                         [0, "cqe", [CQE...]]      completions, in order
                         [0, "qp_error", [qpn, reason]]
                         [0, "bye", reason]        the NIC hangs up, and why

MRC 1.0 section 3: WRITE and WRITE_WITH_IMM only; connection data travel out of band, by the application.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgpack

VERSION = 1
MESSAGE_BYTES_MAX = 64 * 1024
"""Longest packet either side sends; a longer one is refused."""
POSTS_PER_MESSAGE_MAX = 256
CQES_PER_MESSAGE_MAX = 200
# MRC 1.0 section 3: message length and virtual addresses.
LENGTH_MAX = (1 << 32) - 1
VA_MAX = (1 << 64) - 1
U32_MAX = (1 << 32) - 1
PSN_MASK = (1 << 24) - 1

STATUS_OK = "ok"
STATUS_REFUSED = "refused"
"""The NIC did not take the work: wrong state, no such region, out of bounds, queue full; `detail` says which."""


class VerbsError(Exception):
    """A verbs call failed: the NIC refused it, hung up, or did not answer in time."""


class Cqe(NamedTuple):
    """One completion. Times are fabric time, ns."""

    qpn: int
    wr_id: int
    """The application's own number; on the receiving side of a WRITE_WITH_IMM the message's MSN."""
    status: str
    """"ok", "refused", or a status name of the NIC core."""
    opcode: str
    """"write", "write_with_imm", or on the receiving side "recv_with_imm"."""
    byte_len: int
    imm: int | None
    at_ns: int
    posted_ns: int
    """When the NIC took the work; `at_ns` on the receiving side."""
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.status == STATUS_OK


class Work(NamedTuple):
    """One posted WRITE, or with `imm` a WRITE_WITH_IMM, as it travels to the NIC."""

    qpn: int
    wr_id: int
    region_id: int
    local_va: int
    length: int
    remote_va: int
    r_key: int
    imm: int | None


class QpOffer(NamedTuple):
    """The limits that one end of a QP grants and offers to the other."""

    mpr: int
    """Its tracking window in units of 128 PSNs."""
    max_wimm: int
    """Early with-immediate messages it holds."""
    trim_nack: bool
    dynamic_mpr: bool
    service_time: bool


class QpLimits(NamedTuple):
    """The limits of a connected QP."""

    receive_mpr: int
    send_mpr: int
    receive_wimm: int
    send_wimm: int
    trim_nack: int
    dynamic_mpr: int
    service_time: int
    """1 where both ends offer the option."""


class Endpoint(NamedTuple):
    """What one end of a QP tells the other, out of band."""

    nic_index: int
    qpn: int
    psn: int
    """First PSN this end sends, 24 bits."""
    offer: QpOffer | None = None
    """None: the peer offers the same limits as the QP itself."""


class NicInfo(NamedTuple):
    """The answer to `open`: facts about the NIC."""

    node: str
    nic_index: int
    cq_depth: int
    """CQEs the NIC holds for an application that does not read, before it hangs up."""
    posts_max: int
    """Work requests that may be outstanding; more are refused, one CQE each."""


class MemoryRegion(NamedTuple):
    """A registered region: `buffer` is the very memory the NIC reads and writes."""

    region_id: int
    r_key: int
    va: int
    length: int
    buffer: memoryview


class QueuePair(NamedTuple):
    """A QP of this application; the application must send `local` to the peer."""

    qpn: int
    local: Endpoint


def pack(message: Sequence[Any]) -> bytes:
    """One message as bytes."""
    data: bytes = msgpack.packb(message, use_bin_type=True)
    return data


def unpack(data: bytes | memoryview) -> list[Any]:
    """One message from bytes. Raises VerbsError for anything that is not a list of three."""
    try:
        message = msgpack.unpackb(data, raw=False, strict_map_key=True)
    except Exception as error:  # msgpack raises half a dozen unrelated types for bad bytes
        raise VerbsError(f"not a message: {type(error).__name__}") from None
    if type(message) is not list or len(message) != 3:
        raise VerbsError("not a message: a list of three is expected")
    return message


def work_of(qp: QueuePair, mr: MemoryRegion, offset: int, length: int, target: tuple[int, int], wr_id: int,
            imm: int | None = None) -> Work:  # fmt: skip
    """Work from handles: `length` bytes at `offset` of `mr` to `target` (remote VA, R_Key).

    Raises VerbsError for a range outside the region or a number that does not fit its field.
    """
    if not 0 < length <= LENGTH_MAX or offset < 0 or offset + length > mr.length:
        raise VerbsError(f"{length} bytes at offset {offset} are not inside the region of {mr.length} bytes")
    remote_va, r_key = target
    if not 0 <= remote_va <= VA_MAX or not 0 <= r_key <= U32_MAX:
        raise VerbsError(f"remote address {remote_va:#x} or key {r_key:#x} does not fit")
    if not 0 <= wr_id <= VA_MAX or (imm is not None and not 0 <= imm <= U32_MAX):
        raise VerbsError(f"wr_id {wr_id} needs 64 bits at most, an immediate 32")
    return Work(qp.qpn, wr_id, mr.region_id, mr.va + offset, length, remote_va, r_key, imm)


class Session:
    """The application's side of one conversation: numbers requests, sorts answers and completions. No I/O."""

    def __init__(self) -> None:
        self._last_id = 0
        self._replies: dict[int, tuple[str | None, Any]] = {}
        self._awaited: set[int] = set()
        self.cqes: deque[Cqe] = deque()
        """Completions not yet polled; the NIC's own bound (cq_depth) covers what is not yet received."""
        self.qp_errors: list[tuple[int, str]] = []
        """QPs that went into error, with the reason."""
        self.closed: str | None = None
        """Why the conversation is over, or None."""

    def request(self, op: str, **args: Any) -> tuple[int, bytes]:
        """A new request: (its id, the packet to send)."""
        if self.closed is not None:
            raise VerbsError(self.closed)
        self._last_id += 1
        self._awaited.add(self._last_id)
        return self._last_id, pack((self._last_id, op, args))

    def posts(self, works: Sequence[Work]) -> list[bytes]:
        """The packets that post `works`, in order."""
        if self.closed is not None:
            raise VerbsError(self.closed)
        step = POSTS_PER_MESSAGE_MAX
        return [pack((0, "post", works[start : start + step])) for start in range(0, len(works), step)]

    def receive(self, packet: bytes | memoryview) -> None:
        """Take one packet from the NIC; an empty one means that it hung up. Raises VerbsError for a malformed one."""
        if not packet:
            self.hang_up("the NIC closed the connection")
            return
        number, head, body = unpack(packet)
        try:
            if number:
                if number in self._awaited:
                    self._awaited.remove(number)
                    self._replies[number] = (head, body)
            elif head == "cqe":
                self.cqes.extend([Cqe(*cqe) for cqe in body])
            elif head == "qp_error":
                qpn, reason = body
                self.qp_errors.append((qpn, reason))
            elif head == "bye":
                self.hang_up(str(body))
        except (TypeError, ValueError):
            # A number that no set can hold, or a list of another length: the server is no NIC of ours.
            raise VerbsError("not a message of a NIC") from None

    def hang_up(self, reason: str) -> None:
        """End the conversation; the first reason stays."""
        self.closed = self.closed or reason

    def answered(self, number: int) -> bool:
        """Whether `result_of(number)` has its final outcome: a result or an error."""
        return number in self._replies or self.closed is not None

    def result_of(self, number: int) -> Any:
        """The result of an answered request. Raises VerbsError with the NIC's text if it was refused."""
        if number not in self._replies:
            raise VerbsError(self.closed or "no answer yet")
        error, result = self._replies.pop(number)
        if error is not None:
            raise VerbsError(error)
        return result

    def forget(self, number: int) -> None:
        """Drop an answer that nobody waits for any more."""
        self._awaited.discard(number)
        self._replies.pop(number, None)

    def take_cqes(self, count_max: int) -> list[Cqe]:
        """Up to `count_max` completions, oldest first."""
        cqes = self.cqes
        return [cqes.popleft() for _ in range(min(count_max, len(cqes)))]
