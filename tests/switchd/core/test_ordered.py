"""The loop over instants is the same under both kinds of lossless switch."""

from switchd.core.credited import CreditSwitch
from switchd.core.lossless import LosslessSwitch
from switchd.core.ordered import OrderedSwitch
from tests.switchd.core.test_credited import switch
from tests.switchd.core.test_lossless import switch as pausing


def test_both_go_from_instant_to_instant() -> None:
    for node, kind in ((switch(), CreditSwitch), (pausing(), LosslessSwitch)):
        assert isinstance(node, OrderedSwitch)
        assert isinstance(node, kind)
        assert "advance" not in vars(kind)


def test_an_entry_that_no_longer_counts_is_no_timeout() -> None:
    node = switch(begun=False)
    assert node.next_timeout() == 1
    node.advance([], 10_000)
    assert node.next_timeout() is None or node.next_timeout() > 10_000
    node._set_timer(0, 2 * 10**9)
    node._set_timer(0, 3 * 10**9)
    due = node.next_timeout()
    assert due is not None
    assert due != 2 * 10**9
