"""The control class goes first, up to its share: what trimming sends ahead cannot starve what it speaks of."""

import pytest

from tests.support.switch_bench import AT_NS, DOWNLINK, SwitchBench

pytestmark = pytest.mark.spec("UEC", "CMS")
FAN_IN, PACKETS = 40, 25


def incast(bench: SwitchBench) -> float:
    """Forty senders at line rate into one down-link, for 25 packets each; the share of the link that data got."""
    size = len(bench.data(DOWNLINK))
    gap_ns = -(-(size + 38) * 8 // 100)
    for sender in range(FAN_IN):
        bench.offer(DOWNLINK, PACKETS, at_ns=AT_NS + sender, gap_ns=gap_ns)
    bench.run(AT_NS + PACKETS * gap_ns)
    data = bench.row(DOWNLINK)["data"]["sent_packets"] * (size + 38)
    return data * 8 / 100 / (PACKETS * gap_ns)


def test_forty_senders_into_one_port_leave_data_half_of_the_link():
    assert incast(SwitchBench()) == pytest.approx(0.5, abs=0.05)


def test_the_share_is_a_setting():
    assert incast(SwitchBench(control_share=0.25)) == pytest.approx(0.75, abs=0.05)


def test_strict_priority_would_leave_data_next_to_nothing():
    assert incast(SwitchBench(control_share=1.0)) < 0.1


def test_what_the_share_does_not_carry_is_dropped_and_counted():
    bench = SwitchBench()
    incast(bench)
    row = bench.row(DOWNLINK)
    assert row["control"]["trim_dropped"] > 0
    assert row["data"]["trimmed"] == row["control"]["trim_admitted"] + row["control"]["trim_dropped"]
    assert row["control"]["held"] > 0


def test_acknowledgements_overtake_data_as_ever():
    bench = SwitchBench()
    bench.offer(DOWNLINK, 20)
    bench.acknowledge(DOWNLINK, 60, at_ns=AT_NS + 1)
    bench.run()
    order = [len(packet) < 200 for packet in bench.out(DOWNLINK)]
    assert order == [False] + [True] * 60 + [False] * 19
    assert bench.row(DOWNLINK)["control"]["held"] == 0


def test_the_share_binds_only_while_data_waits():
    bench = SwitchBench(control_share=0.1)
    bench.acknowledge(DOWNLINK, 1_000)
    bench.run()
    assert bench.row(DOWNLINK)["control"]["held"] == 0
    assert bench.drops == {}
