"""Bytes lost are packets of full size, in proportion to the rate that is asked for."""

import pytest

from orchestrator.measures import counts
from orchestrator.measures.drop_reasons import DROP_REASONS
from orchestrator.measures.measure import Question
from orchestrator.measures.published_loss import FABRIC_LOSSES, RATES, bytes_lost
from orchestrator.measures.spans import whole
from tests.support.recordings import sample_recording


def test_every_reason_is_one_that_nodes_count() -> None:
    assert set(FABRIC_LOSSES) <= set(DROP_REASONS)


def test_a_faster_port_loses_as_much_more_as_it_is_faster() -> None:
    recording = sample_recording()
    for look in recording.looks[1:]:
        look.switches["drops.link_down"] = 7
        look.switches["drops.unknown_usid"] = 1_000
    (own,) = bytes_lost(Question(recording, (), (whole(recording),)))
    read = counts.by_label("drops.", FABRIC_LOSSES, switches=True)
    lost = {reason: read(recording.looks[-1])[reason] - read(recording.looks[0])[reason] for reason in FABRIC_LOSSES}
    assert lost["link_down"] >= 7
    assert own.value == sum(lost.values()) * recording.topology.mtu_bytes
    figures = bytes_lost(Question(recording, tuple(RATES), (whole(recording),)))
    assert [figure.of for figure in figures] == ["100G", "200G", "400G", "800G"]
    for figure, rate_bps in zip(figures, RATES.values(), strict=True):
        assert figure.value == pytest.approx(own.value * rate_bps / recording.topology.rate_bps)
