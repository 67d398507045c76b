"""What an initiator does about NACKs."""

import pytest

from mrcfabric.wire.trim import trim
from mrcfabric.wire.uet_layout import (
    FLAG_RETX,
    FLAG_SYN,
    NACK_INVALID_SYN,
    NACK_NO_PDC,
    NACK_OUT_OF_WINDOW,
    NACK_TRIMMED,
    NACK_UNKNOWN_PDC,
)
from nicd.core.uet.target import Target
from tests.nicd.core.uet.pipe import FIRST_PSN, QPN_B, Pipe, Seen

FIRST = FIRST_PSN


@pytest.mark.parametrize("dscp", [12, 16])
def test_every_trim_costs_a_nack_and_a_retransmission(dscp: int) -> None:
    cut: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool | bytearray:
        if seen.is_data and not seen.flags & FLAG_RETX and seen.psn % 10 == 3:
            cut.append(seen.psn)
            return trim(seen.packet, 256, dscp)
        return True

    pipe = Pipe(fate)
    pipe.write(1 << 19)
    pipe.run(2_000_000)
    assert len(cut) == 13
    assert pipe.counter(0, "retransmits", "trim") == 13
    assert [seen.psn for seen in pipe.data() if seen.flags & FLAG_RETX] == cut
    assert pipe.counter(0, "retransmits", "timeout") == pipe.counter(0, "retransmits", "gap") == 0
    assert sum(pipe.counter(1, "trims").values()) == 13
    assert pipe.target()[: 1 << 19] == bytes(pipe.source[: 1 << 19])
    assert pipe.quiet


def test_the_first_packet_may_be_trimmed() -> None:
    pipe = Pipe(lambda at_ns, side, seen: trim(seen.packet, 256, 12) if seen.is_data and at_ns < 1_500 else True)
    pipe.write(20_000)
    pipe.run(500_000)
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert pipe.counter(1, "uet", "contexts_taken") == 1
    assert pipe.completions()[0].at_ns < 8_000, "no time-out"


def test_an_ordered_sender_goes_back_to_what_is_missing() -> None:
    lost: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if side == 0 and seen.psn == (FIRST + 20) & 0xFFFFFFFF and len(lost) < 2:
            lost.append(at_ns)
            return False
        return True

    pipe = Pipe(fate, uet_mode="rod")
    pipe.write(1 << 19)
    pipe.run(2_000_000)
    assert len(lost) == 2, "lost once more on the second pass"
    psns = [(seen.psn - FIRST) & 0xFFFFFFFF for seen in pipe.data()]
    backs = [place for place in range(1, len(psns)) if psns[place] != psns[place - 1] + 1]
    assert [psns[place] for place in backs] == [20, 20]
    assert pipe.counter(0, "timeouts") == 0
    assert len({seen.entropy for seen in pipe.data()}) == 1
    assert pipe.target()[: 1 << 19] == bytes(pipe.source[: 1 << 19])


def test_a_target_that_forgot_the_context_ends_the_qp() -> None:
    pipe = Pipe()
    pipe.write(1 << 19)
    pipe.run(20_000)
    target = next(iter(pipe.link(1).targets.values()))
    pipe.transport(1).forget_target(target)
    pipe.run(2_000_000)
    assert pipe.errors()[0].reason == "context_gone"
    assert pipe.counter(1, "drops", "uet_unknown_context") > 0
    assert pipe.quiet


def test_a_number_that_the_target_knows_otherwise_is_changed() -> None:
    pipe = Pipe()
    pipe.write(20_000)
    pipe.run(12)
    link = pipe.link(0)
    old = link.pdcid
    # An earlier life of the initiator has left a context of that number behind.
    peer = pipe.link(1).peer
    stale = Target(pipe.transport(1).board, pipe.transport(1).uet, peer, old, QPN_B, 100, 5, False)
    pipe.transport(1).contexts.enter(stale)
    pipe.transport(1)._targets[peer.address, old] = stale
    pipe.run(500_000)
    assert link.pdcid != old
    assert [done.status for done in pipe.completions()] == ["ok"]
    assert pipe.counter(1, "drops", "uet_invalid_syn") > 0
    assert pipe.target()[:20_000] == bytes(pipe.source[:20_000])


def test_nacks_that_mean_nothing_change_nothing() -> None:
    pipe = Pipe()
    pipe.write(1 << 16)
    pipe.run(1_300)
    link = pipe.link(0)
    out = len(link.initiator.table.by_psn)
    nack = link.refusals.on_nack
    assert not nack(pipe.now, NACK_TRIMMED, (FIRST + 500) & 0xFFFFFFFF, 0, 0, 0), "never sent"
    assert nack(pipe.now, NACK_TRIMMED, (FIRST - 5) & 0xFFFFFFFF, 0, 0, 0), "long acknowledged"
    assert nack(pipe.now, NACK_TRIMMED, FIRST, 0, FLAG_RETX, 0), "of a retransmission that there was not"
    assert nack(pipe.now, NACK_UNKNOWN_PDC, FIRST, 0, 0, 0), "of a context that was never answered"
    assert (len(link.initiator.table.by_psn), link.initiator.table.lost) == (out, 0)
    assert not pipe.errors()


def test_a_packet_outside_the_window_goes_again() -> None:
    pipe = Pipe()
    pipe.write(1 << 16)
    pipe.run(1_300)
    link = pipe.link(0)
    assert link.refusals.on_nack(pipe.now, NACK_OUT_OF_WINDOW, FIRST + 1, 0, 0, 0)
    pipe.run(1_000_000)
    assert pipe.counter(0, "retransmits", "nack") == 1
    assert pipe.counter(1, "duplicates") == 1


def test_no_context_is_waited_for() -> None:
    """A target whose contexts are all in use refuses, and asks for the one that was silent longest."""
    pipe = Pipe(connect=False, uet_contexts_max=1, rto_ns=60_000)
    pipe.connect(100, QPN_B)
    pipe.connect(101, QPN_B + 1)
    pipe.write(9_000, wr_id=1)
    pipe.write(9_000, wr_id=2, at_ns=30_000, qpn=101, offset=9_000)
    pipe.run(2_000_000)
    assert [(done.wr_id, done.status) for done in pipe.completions()] == [(1, "ok"), (2, "ok")]
    assert pipe.counter(1, "uet", "contexts_refused") >= 1
    assert pipe.counter(1, "uet", "closes_asked") == 1
    assert pipe.counter(1, "uet", "targets") == 1
    codes = {seen.peeked[5] >> 8 for seen in pipe.sent(1) if seen.is_nack}
    assert codes == {NACK_NO_PDC}
    # The first QP opens another context when it has something to send again.
    pipe.write(9_000, wr_id=3, at_ns=pipe.now + 10)
    pipe.run(4_000_000)
    assert pipe.completions()[-1].status == "ok"
    assert pipe.data()[-1].flags & FLAG_SYN
    assert NACK_INVALID_SYN not in codes
    assert pipe.quiet
