"""Requests of applications become commands of the core; its events become answers and CQEs.

Owns which application has which QP and region, the tables of posted work, and the cleaning up after an application that
has left. `nicd.verbs_server` has the sockets, and `nicd.core` decides what a request does. This module checks sizes,
types and ownership of everything received, so that no application can hurt the daemon or another application.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nicd.core.commands import (
    Command,
    ConnectQp,
    CreateQp,
    DeregisterMemory,
    DestroyQp,
    ModifyQp,
    PostWrite,
    RegisterMemory,
)
from nicd.core.events import (
    RECV_WITH_IMM,
    STATUS_FLUSHED,
    WRITE,
    WRITE_WITH_IMM,
    CommandDone,
    Completion,
    QpChange,
)
from nicd.verbs_client import DETAIL_CHARS_MAX, Client, Posted, Region, VerbsLimits, map_region
from nicd.verbs_codec import (
    LENGTH_MAX,
    POSTS_PER_MESSAGE_MAX,
    PSN_MASK,
    STATUS_REFUSED,
    U32_MAX,
    VA_MAX,
    VERSION,
    VerbsError,
    pack,
)
from nicd.verbs_limits import RETRY_TIMERS, asked, checked, offered

FIRST_TOKEN = 1 << 32
"""Tokens of applications' commands begin here; those of the daemon's own commands are below."""
QPN_MAX = (1 << 24) - 1


def _number(args: Mapping[str, Any], key: str, high: int, low: int = 0) -> int:
    """An integer argument within bounds; VerbsError otherwise (a bool is no integer)."""
    value = args.get(key)
    if type(value) is not int or not low <= value <= high:
        raise VerbsError(f"{key} must be a whole number from {low} to {high}, not {value!r:.40}")
    return value


class VerbsRequests:
    """All applications of one NIC.

    It calls `submit` with commands, and `flush` with an application that has answers to send.
    """

    def __init__(self, submit: Callable[[Command], object], flush: Callable[[Client], None], node: str,
                 nic_index: int, limits: VerbsLimits) -> None:  # fmt: skip
        self._submit = submit
        self._flush = flush
        self._node = node
        self._nic_index = nic_index
        self._limits = limits
        self._tokens = itertools.count(FIRST_TOKEN)
        self._waiting: dict[int, Callable[[CommandDone], None]] = {}
        self._owners: dict[int, Client] = {}
        """QPN -> the application it belongs to."""
        self._mapped = 0
        """Regions that are mapped, also of applications that have left."""
        self.counts = {"requests": 0, "posts": 0, "refused": 0, "cqes": 0}

    def message(self, client: Client, number: Any, op: Any, args: Any, fds: list[int]) -> None:
        """Take one message of an application. Raises VerbsError if it is neither a request nor a post."""
        if number == 0 and op == "post" and client.opened:
            self._post(client, args)
            return
        if type(number) is not int or number < 1 or type(args) is not dict:
            raise VerbsError("not a request")
        operation = _OPERATIONS.get(op) if isinstance(op, str) else None
        self.counts["requests"] += 1
        try:
            if operation is None:
                raise VerbsError(f"no such call: {op!r:.40}")
            if not client.opened and op != "open":
                raise VerbsError("open comes first")
            if client.under_way >= self._limits.requests_max:
                raise VerbsError(f"{client.under_way} requests are under way already")
            if op != "open" and (full := self._full()):
                raise VerbsError(full)
            operation(self, client, number, args, fds)
        except VerbsError as error:
            self.counts["refused"] += 1
            client.answer(number, str(error), None)

    def deliver(self, events: Iterable[object]) -> None:
        """Take a batch of the core's events, in order, and pass them on to their applications."""
        touched: dict[Client, None] = {}
        for event in events:
            kind = type(event)
            if kind is Completion:
                client = self._completion(event)  # type: ignore[arg-type]
            elif kind is CommandDone:
                client = self._command_done(event)  # type: ignore[arg-type]
            elif kind is QpChange:
                client = self._qp_change(event)  # type: ignore[arg-type]
            else:
                continue
            if client is not None:
                touched[client] = None
        for client in touched:
            self._flush(client)

    # Events of the core.

    def _completion(self, event: Completion) -> Client | None:
        client = self._owners.get(event.qpn)
        if client is None or client.closing:
            return None
        wr_id, posted_ns = event.wr_id, event.at_ns
        if event.opcode != RECV_WITH_IMM:
            posted = client.posted.pop(event.wr_id, None)
            if posted is None:
                return None
            wr_id, posted_ns = posted.wr_id, posted.posted_ns
        client.cqes.append(
            (event.qpn, wr_id, event.status, event.opcode, event.byte_len, event.imm, event.at_ns, posted_ns)
        )
        self.counts["cqes"] += 1
        return client

    def _command_done(self, event: CommandDone) -> Client | None:
        done = self._waiting.pop(event.token, None)
        if done is None:
            return None
        done(event)
        return None

    def _qp_change(self, event: QpChange) -> Client | None:
        client = self._owners.get(event.qpn)
        if client is None or client.closing or event.target != "error":
            return None
        client.pack_cqes()  # send completions that came before the error first
        client.unsent.append(pack((0, "qp_error", (event.qpn, event.reason[:DETAIL_CHARS_MAX]))))
        return client

    # An application has left.

    def abandon(self, client: Client) -> None:
        """Clean up after an application that has left: destroy its QPs, then its regions."""
        client.leave()
        for qpn in list(client.qps):
            self._submit(DestroyQp(self._token(lambda done, qpn=qpn: self._orphan_gone(client, qpn)), qpn))  # type: ignore[misc]
        if not client.qps:
            self._forget_regions(client)

    def _orphan_gone(self, client: Client, qpn: int) -> None:
        client.qps.discard(qpn)
        self._owners.pop(qpn, None)
        if not client.qps:
            self._forget_regions(client)

    def _forget_regions(self, client: Client) -> None:
        # After the QPs: the core refuses to release memory that a posted write still reads.
        for region_id, region in list(client.regions.items()):
            self._forget_region(region_id, region)
        client.regions.clear()

    def _forget_region(self, region_id: int, region: Region) -> None:
        self._submit(DeregisterMemory(self._token(lambda done: self._unmap(region)), region_id))

    def _unmap(self, region: Region) -> None:
        self._mapped -= 1
        region.unmap()

    # Requests.

    def _full(self) -> str:
        """Why the core gets no more commands of anybody; empty if it does."""
        full = len(self._waiting) >= self._limits.nic_commands_max
        return f"this NIC has {len(self._waiting)} requests and posts of all applications under way" if full else ""

    def _token(self, done: Callable[[CommandDone], None]) -> int:
        token = next(self._tokens)
        self._waiting[token] = done
        return token

    def _asked(self, client: Client, done: Callable[[CommandDone], None]) -> int:
        """The token of a request, which is under way until `done` was called."""
        client.under_way += 1

        def answered(event: CommandDone) -> None:
            client.under_way -= 1
            done(event)

        return self._token(answered)

    def _answering(self, client: Client, number: int) -> Callable[[CommandDone], None]:
        """Pass the core's answer on unchanged."""

        def done(event: CommandDone) -> None:
            client.answer(number, event.error, event.result)
            self._flush(client)

        return done

    def _open(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        if args.get("version") != VERSION:
            raise VerbsError(f"this NIC speaks verbs version {VERSION}, not {args.get('version')!r:.20}")
        client.opened = True
        limits = self._limits
        client.answer(
            number,
            None,
            {
                "node": self._node,
                "nic_index": self._nic_index,
                "cq_depth": limits.cq_depth,
                "posts_max": limits.posts_max,
            },
        )

    def _reg_mr(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        if len(fds) != 1:
            raise VerbsError("reg_mr needs exactly one descriptor")
        if len(client.regions) + client.regions_asked >= self._limits.regions_max:
            raise VerbsError(f"an application may hold {self._limits.regions_max} regions")
        if self._mapped >= self._limits.nic_regions_max:
            raise VerbsError(f"this NIC has {self._mapped} regions of all applications")
        length, va = _number(args, "length", LENGTH_MAX, 1), _number(args, "va", VA_MAX)
        region = map_region(fds[0], length, va, self._limits.region_bytes_max)
        self._mapped += 1

        def done(event: CommandDone) -> None:
            client.regions_asked -= 1
            if event.error is not None:
                self._unmap(region)
            elif client.closing:
                self._forget_region(int(event.result["region_id"] or 0), region)
            else:
                client.regions[int(event.result["region_id"] or 0)] = region
            client.answer(number, event.error, event.result)
            self._flush(client)

        client.regions_asked += 1
        self._submit(RegisterMemory(self._asked(client, done), va, length, memory=region.view))

    def _dereg_mr(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        region_id = _number(args, "region_id", VA_MAX)
        region = client.regions.get(region_id)
        if region is None:
            raise VerbsError(f"this application has no region {region_id}")

        def done(event: CommandDone) -> None:
            if event.error is None:
                client.regions.pop(region_id, None)
                self._unmap(region)
            client.answer(number, event.error, None)
            self._flush(client)

        self._submit(DeregisterMemory(self._asked(client, done), region_id))

    def _create_qp(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        if len(client.qps) + client.qps_asked >= self._limits.qps_max:
            raise VerbsError(f"an application may hold {self._limits.qps_max} QPs")

        def done(event: CommandDone) -> None:
            client.qps_asked -= 1
            if event.error is None:
                qpn = int(event.result["qpn"] or 0)
                self._owners[qpn] = client
                client.qps.add(qpn)
                if client.closing:
                    self._submit(DestroyQp(self._token(lambda gone: self._orphan_gone(client, qpn)), qpn))
            client.answer(number, event.error, event.result)
            self._flush(client)

        wanted = asked(args)
        client.qps_asked += 1
        self._submit(CreateQp(self._asked(client, done), **wanted))

    def _qpn(self, client: Client, args: Mapping[str, Any]) -> int:
        qpn = _number(args, "qpn", QPN_MAX)
        if qpn not in client.qps:
            raise VerbsError(f"this application has no QP {qpn}")
        return qpn

    def _connect(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        qpn, psn, peer = self._qpn(client, args), _number(args, "psn", PSN_MASK), args.get("peer")
        if type(peer) is not list or len(peer) not in (3, 4):
            raise VerbsError("peer must be [NIC index, QPN, PSN] or [NIC index, QPN, PSN, offer]")
        whom = dict(zip(("peer index", "peer qpn", "peer psn"), peer[:3], strict=True))
        offer = offered(peer[3] if len(peer) == 4 else None)
        index, peer_qpn = _number(whom, "peer index", U32_MAX), _number(whom, "peer qpn", QPN_MAX)
        peer_psn = _number(whom, "peer psn", PSN_MASK)
        done = self._answering(client, number)
        self._submit(ConnectQp(self._asked(client, done), qpn, index, peer_qpn, psn, peer_psn, **offer))

    def _start(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        qpn, timers = self._qpn(client, args), checked(args, RETRY_TIMERS)
        self._submit(ModifyQp(self._asked(client, self._answering(client, number)), qpn, "rts", **timers))

    def _destroy_qp(self, client: Client, number: int, args: dict[str, Any], fds: list[int]) -> None:
        qpn = self._qpn(client, args)

        def done(event: CommandDone) -> None:
            if event.error is None:
                self._flush_posted(client, qpn, event.at_ns)
                client.qps.discard(qpn)
                self._owners.pop(qpn, None)
            client.answer(number, event.error, None)
            self._flush(client)

        self._submit(DestroyQp(self._asked(client, done), qpn))

    def _flush_posted(self, client: Client, qpn: int, at_ns: int) -> None:
        """End every post in a CQE, also one that the core dropped together with its QP."""
        for token in [token for token, posted in client.posted.items() if posted.qpn == qpn]:
            self._end_post(client, client.posted.pop(token), STATUS_FLUSHED, at_ns, "")
        client.pack_cqes()

    # Posted work.

    def _post(self, client: Client, works: Any) -> None:
        if type(works) is not list or len(works) > POSTS_PER_MESSAGE_MAX:
            raise VerbsError(f"a post is a list of up to {POSTS_PER_MESSAGE_MAX} works")
        for work in works:
            numbers = work[:-1] if type(work) is list and len(work) == 8 else [None]
            if any(type(number) is not int or not 0 <= number <= VA_MAX for number in numbers):
                raise VerbsError("a work is [qpn, wr_id, region, va, length, remote_va, r_key, imm]")
            self._post_one(client, *work)

    def _post_one(self, client: Client, qpn: int, wr_id: int, region_id: int, local_va: int, length: int,
                  remote_va: int, r_key: int, imm: int | None) -> None:  # fmt: skip
        self.counts["posts"] += 1
        posted = Posted(wr_id, qpn, WRITE if imm is None else WRITE_WITH_IMM, length, imm)
        refusal = self._refusal(client, posted, region_id, local_va, r_key)
        if refusal:
            self._end_post(client, posted, STATUS_REFUSED, 0, refusal)
            return

        def done(event: CommandDone) -> None:
            posted.posted_ns = event.at_ns
            if event.error is not None and client.posted.pop(token, None) is not None:
                self._end_post(client, posted, STATUS_REFUSED, event.at_ns, event.error)
                self._flush(client)

        token = self._token(done)
        client.posted[token] = posted
        self._submit(PostWrite(token, qpn, token, region_id, local_va, length, remote_va, r_key, imm))

    def _refusal(self, client: Client, posted: Posted, region_id: int, local_va: int, r_key: int) -> str:
        """Why this work does not go to the core; empty if it does."""
        region, length, imm = client.regions.get(region_id), posted.length, posted.imm
        if posted.qpn not in client.qps:
            return f"this application has no QP {posted.qpn}"
        if region is None:
            return f"this application has no region {region_id}"
        if not 0 < length <= LENGTH_MAX or not 0 <= local_va - region.va <= region.length - length:
            return f"{length} bytes at {local_va:#x} are not inside the local region"
        if r_key > U32_MAX or (imm is not None and (type(imm) is not int or not 0 <= imm <= U32_MAX)):
            return "the key and the immediate have 32 bits"
        if len(client.posted) >= self._limits.posts_max:
            return f"{self._limits.posts_max} posts are outstanding already"
        return self._full()

    def _end_post(self, client: Client, posted: Posted, status: str, at_ns: int, detail: str) -> None:
        self.counts["refused"] += status == STATUS_REFUSED
        imm = posted.imm if type(posted.imm) is int and 0 <= posted.imm <= U32_MAX else None
        client.cqes.append(
            (
                posted.qpn,
                posted.wr_id,
                status,
                posted.opcode,
                posted.length,
                imm,
                at_ns,
                posted.posted_ns,
                detail[:DETAIL_CHARS_MAX],
            )
        )


_Operation = Callable[[VerbsRequests, Client, int, dict[str, Any], list[int]], None]
_OPERATIONS: dict[str, _Operation] = {
    "open": VerbsRequests._open,
    "reg_mr": VerbsRequests._reg_mr,
    "dereg_mr": VerbsRequests._dereg_mr,
    "create_qp": VerbsRequests._create_qp,
    "connect": VerbsRequests._connect,
    "start": VerbsRequests._start,
    "destroy_qp": VerbsRequests._destroy_qp,
}
