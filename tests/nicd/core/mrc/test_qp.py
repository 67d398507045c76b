"""What a SACK or NACK means for an EV, and the life of a QP."""

import pytest

from mrcfabric.wire.layout import (
    M_ALWAYS_SKIP,
    M_NONE,
    M_SKIP_ONCE,
    NACK_NO_RESOURCE,
    NACK_TRIMMED,
    NACK_TRIMMED_LASTHOP,
    NACK_UNEXP_EVENT,
    PSN_MASK,
)
from nicd.core.ev_state import EvState
from nicd.core.qp_state import QpState
from tests.nicd.core.bench import PSN_SEND, QPN, Bench


def sack(m: int, ev: int, pr: int = 0, cack: int = PSN_SEND - 1) -> tuple[int, ...]:
    return (m, pr, 0, ev, cack, 32, 1, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("m", "state"), [(M_NONE, EvState.GOOD), (M_SKIP_ONCE, EvState.SKIP), (M_ALWAYS_SKIP, EvState.ASSUMED_BAD)]
)
@pytest.mark.spec("MRC 1.0", "11.2")
def test_what_a_sack_says_about_its_ev(m: int, state: EvState) -> None:
    bench = Bench(ev_min_active=0)
    index = 3
    assert bench.link.on_sack(5, sack(m, bench.link.profile.evs[index]))
    assert bench.link.profile.states[index] == state
    assert bench.link.on_sack(5, sack(m, 0xDEAD))


def test_a_sack_for_packets_never_sent_is_nonsense() -> None:
    assert not Bench().link.on_sack(5, sack(M_NONE, 0, cack=PSN_SEND))


@pytest.mark.parametrize(
    ("reason", "state", "cause"),
    [
        (NACK_TRIMMED, EvState.SKIP, "trim"),
        (NACK_TRIMMED_LASTHOP, EvState.GOOD, "trim"),
        (NACK_NO_RESOURCE, EvState.GOOD, "nack"),
    ],
)
@pytest.mark.spec("MRC 1.0", "11.2")
def test_what_a_nack_says_about_its_ev(reason: int, state: EvState, cause: str) -> None:
    bench = Bench()
    bench.post(0, 100)
    ((*_, psn, ev, _, _, _, _),) = bench.pump(0)
    index = bench.link.profile.index_of[ev]
    bench.link.on_nack(10, reason, ev, psn)
    assert bench.link.profile.states[index] == state
    ((*_, again_psn, again_ev, _, _, _, _),) = bench.pump(10_000)
    assert again_psn == psn
    assert again_ev != ev
    assert bench.board.stats.retransmits[cause] == 1
    assert 0 < bench.board.stats.retransmitted_bytes <= bench.board.settings.mtu_bytes


@pytest.mark.spec("MRC 1.0", "3")
def test_an_unexpected_event_is_the_end() -> None:
    bench = Bench()
    bench.post(0, 100)
    bench.pump(0)
    # Of what this QP has not sent only one that had its number before can be told.
    assert not bench.link.on_nack(9, NACK_UNEXP_EVENT, 0, PSN_SEND - 1)
    assert not bench.link.on_nack(9, NACK_UNEXP_EVENT, 0, (PSN_SEND + 1) & PSN_MASK)
    assert bench.link.on_nack(10, NACK_UNEXP_EVENT, 0, PSN_SEND)
    qp = bench.table.find(QPN)
    assert (qp.state, qp.reason) == (QpState.ERROR, "unexpected_event")
    assert qp.record()["unfinished"] == 0
