"""How long and how often a VL has waited for credit."""

from mrcfabric.credit_waits import CreditWaits


def test_waits_add_up_by_vl_and_the_present_one_counts() -> None:
    waits = CreditWaits()
    assert [waits.note(10, 3, True), waits.note(20, 3, True), waits.note(25, 4, True)] == [True, False, True]
    assert (waits.since(3), waits.total_ns(3, 30), waits.total_ns(3, 5)) == (10, 20, 0)
    assert [waits.note(40, 3, False), waits.note(50, 3, False)] == [True, False]
    assert (waits.since(3), waits.total_ns(3, 90), waits.times[3]) == (None, 30, 1)
    waits.note(100, 3, True)
    assert (waits.total_ns(3, 105), waits.times[3], waits.times[4], waits.times[0]) == (35, 2, 1, 0)
