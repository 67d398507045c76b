"""Two NICs and a wire that loses or marks by a rule."""

import pytest

from studies.systems.lossy_pair import LOSE, MARK, PASS, START_NS, LossyPair


def pair(rule: object, **nic: object) -> LossyPair:
    return LossyPair(rule, rate_bps=10**10, delay_ns=2_000, mtu=1024, size=1 << 16, **nic)  # type: ignore[arg-type]


def test_what_passes_arrives_once_and_in_the_time_of_the_wire() -> None:
    made = pair(lambda number, psn: PASS, cc="none")
    made.write(1 << 16)
    end_ns = made.finish(1, 10**9)
    assert len(made.wire.times) == 64
    assert 64 * made.packet_ns() < end_ns - START_NS < 64 * made.packet_ns() + made.round_ns() + 3_000
    assert made.receiver.counters()["bytes_placed"] == 1 << 16


def test_the_rule_sees_numbers_and_psns_and_its_losses_are_sent_again() -> None:
    seen: list[tuple[int, int]] = []

    def rule(number: int, psn: int) -> int:
        seen.append((number, psn))
        return LOSE if number == 5 else PASS

    made = pair(rule, cc="none")
    made.write(1 << 16)
    made.finish(1, 10**9)
    assert seen[:6] == [(number, number) for number in range(6)]
    assert len([psn for _, psn in seen if psn == 5]) == 2
    assert made.rc("passes_begun") == 1


def test_a_mark_is_a_notification() -> None:
    made = pair(lambda number, psn: MARK if number == 3 else PASS, cc="dcqcn")
    made.write(1 << 16)
    made.run(200_000)
    assert made.rc("cnps_received") == 1
    assert made.row()["rate_bps"] < 10**10


def test_what_never_arrives_is_no_success() -> None:
    made = pair(lambda number, psn: LOSE, cc="none", rc_timeout=1, rc_retry_cnt=1)
    made.write(1024)
    with pytest.raises(RuntimeError, match="0 of 1 messages"):
        made.finish(2, 10**9) if made.done else made.finish(1, 10_000)
