"""A failing case is made small, and still fails in the same way."""

import pytest

from nicd.core.mrc.requestor import Requestor
from swarm.case import Fault
from swarm.run import Outcome, run
from swarm.shrink import kind_of, shrink
from tests.swarm.cases import calm, lossy


@pytest.mark.pure
def test_what_does_not_matter_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    build = Requestor.emit

    def mistaken(self: Requestor, now: int, plane: int) -> bytearray:
        """Messages of more than sixteen packets carry a wrong byte."""
        packet = build(self, now, plane)
        if len(packet) > 4_000 and self._messages[0].length > 65_536:
            raise ZeroDivisionError
        return packet

    monkeypatch.setattr(Requestor, "emit", mistaken)
    case = lossy()
    case.faults.append(Fault("nic_port", "h003", 20_000, 40_000, 1))
    small = shrink(case, 40)
    assert kind_of(run(small)) == "ZeroDivisionError"
    assert not small.faults
    assert sum(len(flow.forth) for flow in small.flows) == 1


def test_a_case_that_holds_stays_as_it_is() -> None:
    case = calm()
    assert shrink(case, 5, Outcome) is case
