"""The table of EV states: the full product, as MRC 1.0 11.2 has it."""

import pytest

from nicd.core.ev_state import TABLE, EvState, EvTrigger, step

G, S, B, D = EvState.GOOD, EvState.SKIP, EvState.ASSUMED_BAD, EvState.DENIED

# From GOOD, SKIP, ASSUMED_BAD, DENIED.
EXPECTED = {
    EvTrigger.ECN: (S, S, B, D),
    EvTrigger.ALWAYS_SKIP: (B, B, B, D),
    EvTrigger.TRIM: (S, S, B, D),
    EvTrigger.TRIM_LASTHOP: (G, S, B, D),
    EvTrigger.GAP: (B, B, B, D),
    EvTrigger.TIMEOUT: (B, B, B, D),
    EvTrigger.SCAN: (G, G, B, D),
    EvTrigger.PROBED_CLEAR: (G, S, G, D),
    EvTrigger.PROBED_MARKED: (G, S, S, D),
    EvTrigger.DENY: (D, D, D, D),
    EvTrigger.ALLOW: (G, S, B, G),
    EvTrigger.PATH: (B, B, B, D),
}


@pytest.mark.spec("MRC 1.0", "11.2")
@pytest.mark.parametrize("trigger", list(EvTrigger))
@pytest.mark.parametrize("state", list(EvState))
def test_every_state_meets_every_trigger(state: EvState, trigger: EvTrigger) -> None:
    assert step(state, trigger).target == EXPECTED[trigger][state]
    assert step(state, trigger).section


def test_the_table_is_the_full_product() -> None:
    assert len(TABLE) == len(EvState) * len(EvTrigger)


def test_only_probes_bring_back_what_is_assumed_bad() -> None:
    ways = {trigger for (state, trigger), rule in TABLE.items() if state == B and rule.target in (G, S)}
    assert ways == {EvTrigger.PROBED_CLEAR, EvTrigger.PROBED_MARKED}


def test_only_the_controller_bars_and_frees() -> None:
    assert {trigger for (state, trigger), rule in TABLE.items() if state != D and rule.target == D} == {EvTrigger.DENY}
    assert {trigger for (state, trigger), rule in TABLE.items() if state == D and rule.target != D} == {EvTrigger.ALLOW}
