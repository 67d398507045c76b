"""What a port counts: departures add up, and a table of the counters is a copy."""

from mrcfabric.attributes import attribute_names
from mrcfabric.port_counts import PortCounts


def test_departures_and_their_bytes_are_those_of_both_classes() -> None:
    counts = PortCounts(("full",))
    counts.data_packets, counts.data_sent_bytes = 3, 300
    counts.control_packets, counts.control_sent_bytes = 2, 20
    assert (counts.packets, counts.bytes) == (5, 320)
    sums = counts.sums()
    assert (sums["packets"], sums["bytes"], sums["control_packets"]) == (5, 320, 2)


def test_every_counter_is_told_and_peaks_are_not() -> None:
    counts = PortCounts(("full", "lost"))
    counts.drops["lost"] += 1
    sums = counts.sums()
    told = {"data_packets", "data_sent_bytes", "data_bytes_peak", "control_bytes_peak"}
    assert set(attribute_names(PortCounts)) - told == set(sums) - {"packets", "bytes"}
    assert sums["drops"] == {"full": 0, "lost": 1}
    counts.drops["lost"] += 1
    assert sums["drops"] == {"full": 0, "lost": 1}
