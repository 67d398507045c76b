"""When a receiver penalises its senders."""

from nicd.core.congestion.window import RESTORE
from nicd.core.mrc.penalty import penalty_of
from nicd.core.settings import NicSettings

RTT = 10_000


def test_nobody_is_penalised_by_default() -> None:
    assert penalty_of(NicSettings()) is None


class TestIncast:
    def heard(self, *peers: int, at_ns: int = 0) -> list[int]:
        return [self.made.byte(at_ns, peer, 100, 0) for peer in peers]

    def setup_method(self) -> None:
        made = penalty_of(NicSettings(base_rtt_ns=RTT, receiver_penalty="incast", penalty_senders=4))
        assert made is not None
        self.made = made

    def test_a_few_senders_are_none(self) -> None:
        assert self.heard(1, 2, 3, 4, 1, 2, 3, 4) == [0] * 8

    def test_more_are_told_to_keep_what_is_left_to_each(self) -> None:
        # Of 128: one part in five, two in six, four in eight.
        assert self.heard(1, 2, 3, 4, 5, 6, 7, 8) == [0, 0, 0, 0, 25, 42, 54, 64]
        assert self.heard(1, 2, 8, at_ns=1) == [64, 64, 64]

    def test_for_one_round_trip_each(self) -> None:
        assert self.heard(1, 2, 3, 4, 5)[-1] == 25
        assert self.heard(1, at_ns=5_000) == [25]
        assert self.heard(5, at_ns=RTT) == [0]
        assert self.heard(1, at_ns=RTT) == [25]
        assert self.heard(1, at_ns=5_000 + RTT) == [0]

    def test_when_they_are_few_again_windows_are_restored(self) -> None:
        self.heard(1, 2, 3, 4, 5)
        assert self.heard(1, at_ns=RTT) == [25]
        assert self.heard(1, at_ns=4 * RTT) == [RESTORE]
        assert self.heard(1, at_ns=5 * RTT) == [0]
        assert self.heard(2, at_ns=5 * RTT) == [RESTORE]
        assert self.heard(3, 4, 5, at_ns=5 * RTT)[-1] == 25


class TestOutOfOrder:
    def test_a_qp_that_holds_too_much_halves_its_sender_until_it_holds_half_as_much(self) -> None:
        made = penalty_of(NicSettings(base_rtt_ns=RTT, receiver_penalty="ooo", penalty_ooo_packets=100))
        assert made is not None
        course = [(0, 100, 0), (1, 101, 64), (2, 51, 64), (3, 50, RESTORE), (4, 0, RESTORE), (3 + RTT, 0, 0)]
        assert [made.byte(now, 7, 100, count) for now, count, _ in course] == [wanted for _, _, wanted in course]
        assert made.byte(5, 7, 101, 0) == 0, "another QP is another matter"
