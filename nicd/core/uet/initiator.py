"""The sending half of a UET QP: it cuts messages into packets on a context that its first packet opens.

Owns segmentation, PSNs, the flags of requests, retransmission and completion. `outstanding` knows which packets are
out, `silence` judges what is lost without a word, `entropy` chooses paths, the peer has window and credit.

No packet goes before data: until the target's PDCID is known, every packet says SYN and how far it is behind the first
one. A message is complete when its response has come, or when all its packets are acknowledged, which a target does
with the default response: it stands for OK. UEC PDS (contexts, requests, ACK, NACK), UEC SES (requests, responses).
"""

from collections import deque
from typing import Final

from mrcfabric.units import Instant
from mrcfabric.wire.uet import AckCc, Write
from mrcfabric.wire.uet_layout import (
    FLAG_AR,
    FLAG_PROBE,
    FLAG_RETX,
    FLAG_SYN,
    INDEX_MASK,
    MPR_UNIT_UET,
    PID_SHIFT,
    PSN_MASK_UET,
    RC_OK,
    RESPONSE,
    ROD_CC_REQUEST,
    ROD_REQUEST,
    RUD_CC_REQUEST,
    RUD_REQUEST,
    SERVICE_TICK_NS,
    SES_EOM,
    SES_HD,
    SES_SOM,
    SYN_OFFSET_MAX,
)
from nicd.core.board import Board
from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import NO_PLANE
from nicd.core.events import STATUS_OK, STATUS_REMOTE_INVALID, WRITE, WRITE_WITH_IMM, Completion
from nicd.core.lag import Lag
from nicd.core.memory import Region
from nicd.core.uet.outstanding import IN_FLIGHT, Outstanding, Sent, UetMessage
from nicd.core.uet.peer import UetPeer
from nicd.core.uet.planes import Planes
from nicd.core.uet.silence import LinkLike, Silence
from nicd.core.uet.uet_stats import UetStats

HALF_PSN: Final = 1 << 31
_JOB: Final = 1
"""All NICs of a fabric run one job; generation 0."""
_CLEAR_LEAST: Final = -(1 << 15)


class Initiator:
    """One QP's sending half."""

    __slots__ = (
        "_asked_index", "_board", "_completed", "_index", "_link", "_messages", "_mpr", "_mtu", "_peer", "_planes",
        "_posted", "_queue", "_stats", "_target", "_uet", "dpdcid", "ordered", "psn_first", "psn_next", "queued_bytes",
        "silence", "table", "unfinished_peak",
    )  # fmt: skip

    def __init__(
        self, link: LinkLike, board: Board, uet: UetStats, peer: UetPeer, planes: Planes, psn_first: int
    ) -> None:
        settings = board.settings
        self._link = link
        self._board = board
        self._stats = board.stats
        self._uet = uet
        self._peer = peer
        self._planes = planes
        self._mtu = settings.mtu_bytes
        self._mpr = settings.mpr_units * MPR_UNIT_UET
        self.ordered = settings.uet_mode == "rod"
        self.dpdcid = 0
        """The target's PDCID; 0: not known yet."""
        self.psn_first = self.psn_next = psn_first
        """First PSN of the context, and the next one that was never sent."""
        self.table = Outstanding(board.stats, peer.windows, psn_first)
        self._index = 0
        self._asked_index = 0
        """Transmissions so far, and how many there were when one last asked for an acknowledgement."""
        self._queue: deque[UetMessage] = deque()
        """Messages with bytes that were never sent."""
        self.queued_bytes = 0
        """Those bytes."""
        self._messages: dict[int, UetMessage] = {}
        """Message id -> message that is not complete, in the order of posting."""
        self._completed = 0
        self._posted = Lag(board.timers, settings.host_post_ns, self._ready) if settings.host_post_ns else None
        self._target = (link.peer_qpn >> PID_SHIFT, link.peer_qpn & INDEX_MASK)
        self.unfinished_peak = 0
        self.silence = Silence(link, board, self, planes, uet)

    @property
    def unfinished(self) -> int:
        """Messages that are posted and not complete."""
        return len(self._messages)

    @property
    def idle(self) -> bool:
        """Whether nothing is out and nothing waits."""
        return not self._messages

    @property
    def waiting_bytes(self) -> int:
        """Payload that is still to be sent, or to be sent again."""
        return self.queued_bytes + self.table.lost_bytes

    # -- posting

    def post(self, now: Instant, work: PostWrite, region: Region, view: memoryview) -> None:
        """Take a message; `view` is its bytes in `region`."""
        # Message ids of 16 bits; a message that is overtaken by 65,535 others keeps its own.
        while self._completed & 0xFFFF in self._messages:
            self._completed += 1
        message = UetMessage(work, region, view, self._completed & 0xFFFF, -(-work.length // self._mtu))
        self._completed += 1
        region.readers += 1
        self._messages[message.msn] = message
        self.unfinished_peak = max(self.unfinished_peak, len(self._messages))
        if self._posted is None:
            self._ready(now, message)
        else:
            self._posted.put(now, message)

    def _ready(self, now: Instant, message: UetMessage) -> None:
        """A posted message has reached the NIC: its packets may leave."""
        self._queue.append(message)
        self.queued_bytes += message.length
        self.silence.begin(now)
        self._link.window_moved()
        self._link.ask_credit(now)

    # -- sending

    def has_packet(self) -> bool:
        """Whether a packet is left to send that the target's window and the credit allow."""
        credit = self._peer.credit
        if credit is not None and not credit.open:
            return False
        return self.table.lost > 0 or self._has_new()

    def _has_new(self) -> bool:
        if not self._queue or self.psn_next - self.table.cack > self._mpr:
            return False
        return self.dpdcid > 0 or self.psn_next - self.psn_first <= SYN_OFFSET_MAX

    def emit(self, now: Instant, plane: int, port: int) -> bytearray:
        """Build the next packet for `plane`: the oldest lost one, or the next new one. Only after `has_packet`."""
        table = self.table
        flags, avoid = 0, -1
        if table.lost:
            lost = table.take_lost()
            psn, message, offset, size = lost.psn, lost.message, lost.offset, lost.size
            flags = FLAG_RETX
            if lost.plane == plane:
                avoid = lost.entropy
        else:
            lost = None
            psn, (message, offset, size) = self.psn_next, self._cut()
        sent_ns = max(now, self._board.ports.egress[port].busy_until)
        entropy = self._planes.choose(now, plane, avoid)
        self._index += 1
        sent = Sent(psn, message, offset, size, plane, entropy, sent_ns, self._index)
        if lost is not None:
            sent.tries, sent.trims, sent.blames, sent.silences = lost.tries + 1, lost.trims, lost.blames, lost.silences
            sent.first = lost.first or lost
        table.add(sent)
        credit = self._peer.credit
        if credit is not None:
            credit.spend(size + self._peer.overhead)
        if self._asks(sent):
            flags |= FLAG_AR
            self._asked_index = self._index
        return self._build(sent, flags, "" if lost is None else lost.cause)

    def _cut(self) -> tuple[UetMessage, int, int]:
        """The next packet of new bytes: (message, offset, size)."""
        message = self._queue[0]
        offset = message.sent
        if not offset:
            message.psn_first = self.psn_next
            message.psn_last = self.psn_next + message.left - 1
        size = min(self._mtu, message.length - offset)
        message.sent += size
        self.queued_bytes -= size
        if message.sent == message.length:
            self._queue.popleft()
        self.psn_next += 1
        return message, offset, size

    def _asks(self, sent: Sent) -> bool:
        """Whether a packet asks for its acknowledgement."""
        if sent.tries or sent.offset + sent.size == sent.message.length or not self.has_packet():
            return True
        # UEC CMS: ask when the window is full; twice per window is enough.
        windows = self._peer.windows
        if windows.open >> sent.plane & 1:
            return False
        return self._index - self._asked_index >= windows.cwnd_bytes // (2 * self._mtu)

    def _build(self, sent: Sent, flags: int, cause: str) -> bytearray:
        stats, message, peer = self._stats, sent.message, self._peer
        ses = SES_SOM if not sent.offset else 0
        if sent.offset + sent.size == message.length:
            ses |= SES_EOM
        data = 0
        if message.imm is not None and ses & SES_SOM:
            ses |= SES_HD
            data = message.imm
        write = Write(
            ses, message.msn, _JOB, *self._target, message.remote_va, self._link.qpn, message.r_key, data, sent.offset,
            message.length,
        )  # fmt: skip
        spdcid, third = self._link.pdcid or self._link.begin(), self.dpdcid
        if not third:
            flags |= FLAG_SYN
            third = sent.psn - self.psn_first
            self._uet.syn_packets += 1
        kind, target = (ROD_REQUEST if self.ordered else RUD_REQUEST), 0
        if peer.credit is not None:
            kind = ROD_CC_REQUEST if self.ordered else RUD_CC_REQUEST
            target = peer.credit_target()
        packet = peer.template.request(
            sent.entropy, kind, flags, max(self.table.cack - sent.psn, _CLEAR_LEAST), sent.psn & PSN_MASK_UET, spdcid,
            third, write, message.view[sent.offset : sent.offset + sent.size], target,
        )  # fmt: skip
        stats.data_packets += 1
        stats.payload_bytes += sent.size
        if cause:
            stats.retransmits[cause] += 1
            stats.retransmitted_bytes += sent.size
            if self._board.witness is not None:
                self._board.witness.sent_again(packet, cause)
        self.silence.begin(sent.sent_ns)
        return packet

    # -- acknowledgements

    def on_ack(
        self, now: Instant, flags: int, field: int, cack32: int, spdcid: int, cc: AckCc | None,
        response: tuple[int, int, int, int] | None, marked: bool,
    ) -> bool:  # fmt: skip
        """Take an acknowledgement. False: nonsense, dropped."""
        table = self.table
        ahead = (cack32 - table.cack) & PSN_MASK_UET
        cack = table.cack + (ahead if ahead < HALF_PSN else ahead - 2 * HALF_PSN)
        base = cack + (cc.base if cc is not None else 0)
        bitmap = cc.bitmap if cc is not None else 0
        if not self.psn_first - 1 <= cack < self.psn_next or base + bitmap.bit_length() > self.psn_next:
            return False
        self.dpdcid = self.dpdcid or spdcid
        if cc is not None and cc.mpr:
            self._mpr = cc.mpr * MPR_UNIT_UET
        self.silence.heard(now)
        plane, rtt_ns, size = NO_PLANE, None, 0
        cause = -1
        if not flags & FLAG_PROBE:
            cause = cack + (field if field < 1 << 15 else field - (1 << 16))
            # The target says which transmission has come: it may have been judged lost.
            again = flags & FLAG_RETX > 0
            sent = table.by_psn.get(cause) if again else table.first_of(cause)
            if sent is not None and (not again or (sent.state == IN_FLIGHT and sent.tries > 0)):
                plane, size = sent.plane, sent.size
                self._planes.acked(now, sent, marked)
                self.silence.came(now, sent)
                if sent.tries <= 1:
                    rtt_ns = max(0, now - sent.sent_ns - (cc.service * SERVICE_TICK_NS if cc is not None else 0))
        whole = table.free(cack, base, bitmap)
        if rtt_ns is not None:
            self._measured(now, plane, size, rtt_ns)
        self._peer.windows.on_sack(now, plane, marked, rtt_ns, cc.penalty if cc is not None else 0)
        for message in whole:
            self.finish(now, message, STATUS_OK)
        if response is not None and response[0] == RESPONSE and not self._answered(now, cause, response):
            return True
        self.silence.judge(now)
        if flags & FLAG_PROBE:
            self.silence.answered(now, field, base, bitmap)
        self.settle(now)
        return True

    def _measured(self, now: Instant, plane: int, size: int, rtt_ns: int) -> None:
        self._stats.took(rtt_ns)
        window = self._peer.windows.of[plane]
        if size == self._mtu and rtt_ns < window.base_rtt_ns:
            window.on_base_rtt(now, rtt_ns)

    def _answered(self, now: Instant, psn: int, response: tuple[int, int, int, int]) -> bool:
        """Take the response to a packet. False: it says that the message failed, and with it the QP."""
        _, code, message_id, _ = response
        message = self._messages.get(message_id)
        # A response that was kept may come again when its message is done, and another one has its id.
        if message is None or not message.psn_first <= psn <= message.psn_last:
            return True
        if code != RC_OK:
            self._link.fail(now, STATUS_REMOTE_INVALID, "remote_invalid_request")
            return False
        if message.sent == message.length:
            self.table.free_message(message)
            self.finish(now, message, STATUS_OK)
            self._peer.windows.on_sack(now, NO_PLANE, False, None, 0)
        return True

    def settle(self, now: Instant) -> None:
        """Something has arrived or is lost: packets may leave, or all is done."""
        if not self._messages:
            self.silence.timer.cancel()
            if self._peer.credit is not None and self._peer.idle:
                self._peer.credit.rest()
        self._link.window_moved()

    # -- the end

    def renew(self) -> None:
        """The context was closed while nothing was out: the next packet opens another, behind it in PSNs."""
        self.dpdcid = 0
        self.psn_first = self.psn_next
        self.table.cack = self.psn_next - 1

    def flush(self, now: Instant, first: str, rest: str) -> None:
        """The QP has failed or goes away: the oldest message ends with status `first`, the others with `rest`."""
        self.silence.timer.cancel()
        self.table.clear(now)
        if self._posted is not None:
            self._posted.clear()
        self._queue.clear()
        self.queued_bytes = 0
        status = first
        for message in list(self._messages.values()):
            self.finish(now, message, status)
            status = rest

    def finish(self, now: Instant, message: UetMessage, status: str) -> None:
        if self._messages.pop(message.msn, None) is None:
            return
        message.region.readers -= 1
        opcode = WRITE if message.imm is None else WRITE_WITH_IMM
        self._board.complete(
            Completion(now, self._link.qpn, message.wr_id, status, opcode, message.length, message.imm)
        )
