"""The states of a QP."""

import pytest

from mrcfabric.errors import RefusedError
from nicd.core.mrc.limits import Hints, Offer
from nicd.core.mrc.qp import Qp
from nicd.core.qp_state import NEXT_STATES, QpState
from tests.nicd.core.bench import Bench

OFFER = Offer(32, 128, True, False, False)
ALLOWED = {
    (QpState.RESET, QpState.INIT),
    (QpState.INIT, QpState.RTR),
    (QpState.RTR, QpState.RTS),
    (QpState.INIT, QpState.ERROR),
    (QpState.RTR, QpState.ERROR),
    (QpState.RTS, QpState.ERROR),
}


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("target", list(QpState))
@pytest.mark.parametrize("source", list(QpState))
def test_the_full_table_of_states(source: QpState, target: QpState) -> None:
    assert (target in NEXT_STATES[source]) == ((source, target) in ALLOWED)
    board = Bench().board
    qp = Qp(board, 5, 0, board.profiles.tie(None), OFFER, Hints())
    qp.state = source
    if (source, target) in ALLOWED:
        qp.enter(1, target, "test")
        assert qp.state == target
    else:
        with pytest.raises(RefusedError, match="cannot go"):
            qp.enter(1, target, "test")
        assert qp.state == source
