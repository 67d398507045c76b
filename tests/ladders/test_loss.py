"""Loss, seen from the wire: what is sent again, how often, and what it took to find out."""

import pytest

from mrcfabric.wire.layout import NACK, PROBE
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA


@pytest.mark.spec("MRC 1.0", "3")
def test_without_loss_nothing_is_sent_twice() -> None:
    ladder = Ladder()
    ladder.write(40)
    assert ladder.run()
    ladder.verify()
    assert sorted(seen.number for seen in ladder.data()) == list(range(40))
    assert (ladder.a.retransmits, ladder.a.probes) == ({}, 0)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("switches", [False, True])
@pytest.mark.parametrize("packets", [30, 80, 300])
def test_one_lost_psn_in_the_middle_is_one_retransmission_and_no_timeout(packets: int, switches: bool) -> None:
    ladder = Ladder(switches=switches)
    ladder.wire.drop(direction=AB, number=20, nth=1)
    ladder.write(packets)
    assert ladder.run()
    ladder.verify()
    assert [(seen.number, seen.rtx) for seen in ladder.data(number=20)] == [(20, False), (20, True)]
    assert ladder.a.retransmits == {"gap": 1}
    assert ladder.a.timeouts == 0
    # A later packet of the same path has arrived, so nothing has to be asked.
    assert ladder.a.probes == 0


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("switches", [False, True])
@pytest.mark.parametrize("packets", [1, 2, 60])
def test_a_lost_last_psn_is_one_timeout_one_probe_and_one_retransmission(packets: int, switches: bool) -> None:
    ladder = Ladder(switches=switches)
    ladder.wire.drop(direction=AB, number=packets - 1, nth=1)
    ladder.write(packets)
    assert ladder.run()
    ladder.verify()
    assert (ladder.a.timeouts, ladder.a.probes, ladder.a.retransmits) == (1, 1, {"timeout": 1})
    assert [(seen.number, seen.rtx) for seen in ladder.data(number=packets - 1)] == [
        (packets - 1, False),
        (packets - 1, True),
    ]
    # Later ones only bring the accused EV back.
    assert len([seen for seen in ladder.sent(AB, opcode=PROBE) if seen.at_ns < ladder.data(rtx=True)[0].at_ns]) == 1


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("switches", [False, True])
def test_every_trim_is_one_nack_and_one_retransmission(switches: bool) -> None:
    ladder = Ladder(switches=switches)
    ladder.wire.trim(direction=AB, number={3, 7, 11, 12}, rtx=False)
    ladder.write(40)
    assert ladder.run()
    ladder.verify()
    assert [seen.reason for seen in ladder.sent(BA, opcode=NACK)] == ["TRIMMED"] * 4
    assert sorted(seen.number for seen in ladder.data(rtx=True)) == [3, 7, 11, 12]
    assert ladder.a.retransmits == {"trim": 4}
    assert not ladder.sent(AB, opcode=PROBE)


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("switches", [False, True])
def test_a_doubled_packet_is_written_once(switches: bool) -> None:
    ladder = Ladder(switches=switches)
    ladder.wire.duplicate(after_ns=3_000, direction=AB, number=4)
    ladder.write(10)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.count("duplicates") == 1
    assert ladder.b.count("bytes_placed") == 10 * ladder.mtu
