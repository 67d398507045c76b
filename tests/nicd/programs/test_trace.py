"""Messages from a list, each at its instant."""

from tests.support.hosted import Hosted, program, run, total

MESSAGES = [[0, 1, 5_000, 40_000], [0, 1, 70, 10], [2, 1, 9_000, 10], [1, 0, 20_000, 0], [0, 1, 71, 10]]


def test_every_message_is_sent_at_its_instant_and_checked() -> None:
    records = run("trace", 4, {"messages": MESSAGES})
    assert [record["state"] for record in records] == ["done"] * 4
    assert [record["bytes_verified"] for record in records] == [20_000, 14_141, 0, 0]
    assert total(records, "bytes_wrong") == 0
    flows = records[1]["flows"]
    assert flows["h000"]["messages"] == 3
    assert flows["h000"]["first_ns"] < 20_000
    assert flows["h000"]["last_ns"] > 50_000
    assert records[3]["end_ns"] == 10_000


def test_nothing_is_sent_before_its_instant() -> None:
    hosted = Hosted(program("trace", 2, {"messages": [[0, 1, 5_000, 40_000]]}))
    hosted.fabric.run(49_999)
    assert hosted.fabric.counters("h000")["data_packets"] == 0
    hosted.fabric.run(50_000)
    assert hosted.fabric.counters("h000")["data_packets"] == 2
