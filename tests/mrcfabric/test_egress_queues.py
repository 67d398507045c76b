"""What holds of admission and marks, however many queues a port has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.egress_config import EgressConfig
from mrcfabric.egress_queues import DROP_REASONS, REFUSALS, EgressQueues
from mrcfabric.impairment import LOSS_REASONS
from mrcfabric.rng import Rng
from tests.mrcfabric.test_egress import SMALL, packet, port


@pytest.mark.pure
def test_queues_alone_are_no_port() -> None:
    with pytest.raises(TypeError, match="abstract"):
        EgressQueues(EgressConfig(), 0, Rng("test"), REFUSALS[:3])  # type: ignore[abstract]


def test_every_drop_is_a_refusal_or_a_loss_on_the_link() -> None:
    assert tuple(port().drops) == DROP_REASONS == (*REFUSALS, *LOSS_REASONS)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(100, 700), st.booleans()), max_size=40))
def test_the_books_balance_at_every_instant(offers: list[tuple[int, int, bool]]) -> None:
    egress, now, offered = port(SMALL), 0, 0
    for step, size, control in offers:
        now += step
        offered += size
        egress.offer(now, packet(size), control, [])
        counters = egress.counters()
        refused = sum(egress.drops[reason] for reason in REFUSALS)
        waiting = counters["data_waiting"] + counters["control_waiting"]
        assert offered == egress.bytes + egress.data_bytes + egress.control_bytes + egress.refused_bytes
        assert egress.offered_packets == egress.packets + waiting + refused
        assert egress.trimmed == egress.trim_admitted + egress.trim_dropped
    assert (egress.offered_packets, egress.offered_bytes) == (len(offers), offered)
