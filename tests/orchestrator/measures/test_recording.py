"""When a fault of a recording was over."""

import pytest

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.recording import Injected
from tests.support.plans import FLAP

LASTING = Fault("x", "loss", ("a~b",), (Window(30_000, NEVER, {}),))


@pytest.mark.parametrize(
    ("injected", "over_ns", "early"),
    [
        (Injected(FLAP), 70_000, False),
        (Injected(FLAP, healed_ns=55_000), 55_000, True),
        (Injected(FLAP, healed_ns=80_000), 70_000, False),
        (Injected(LASTING), NEVER, False),
        (Injected(LASTING, healed_ns=50_000), 50_000, True),
    ],
)
def test_a_fault_is_over_when_it_ends_or_is_healed(injected: Injected, over_ns: int, early: bool) -> None:
    assert (injected.over_ns, injected.healed_early) == (over_ns, early)
