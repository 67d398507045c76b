"""The tick under the horizon rule, step by step, with the neighbour's horizon written by hand."""

from collections.abc import Iterator

import pytest

from mrcfabric.clock import ClockPage
from mrcfabric.drive import NOTHING, Drive
from mrcfabric.link_port import LinkEnd
from mrcfabric.node import Input, Rank
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.tally import NAMES, TOTALS
from mrcfabric.tap import Tap, records_in
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.dscp import Dscp
from tests.support.nodes import Source
from tests.support.ports import free_udp_ports

pytestmark = pytest.mark.integration

DELAY_NS = 1_000
ME, NEIGHBOUR = 0, 1


class ByHand:
    """A runner that takes no turns by itself and counts what it is asked for."""

    def __init__(self) -> None:
        self.page = ClockPage.create([[(NEIGHBOUR, 0)], [(ME, 0)]])
        self.shared = True
        self.furthest_ns: Instant = NEVER
        self.kicks = 0
        self.retries = 0

    def look_ahead(self) -> Instant:
        return self.furthest_ns

    def kick(self) -> None:
        self.kicks += 1

    def ring(self, doorbell: int) -> None:
        raise AssertionError("the neighbour is in this process")

    def retry_soon(self) -> None:
        self.retries += 1

    def neighbour_is_at(self, horizon: Instant) -> None:
        self.page.words[self.page.horizon_word(NEIGHBOUR)] = horizon


@pytest.fixture
def turns() -> ByHand:
    return ByHand()


@pytest.fixture
def drive(turns: ByHand) -> Iterator[Drive]:
    drive = open_drive(turns, Source("me", ports=1, packets=3, period_ns=500, size=200))
    yield drive
    drive.close()


def open_drive(turns: ByHand, core: Source) -> Drive:
    one, two = free_udp_ports(2)
    end = LinkEnd(0, ("127.0.0.1", one), ("127.0.0.1", two), peer_node=NEIGHBOUR, peer_port=0, delay_ns=DELAY_NS)
    return Drive(turns, core, ME, [end])


def tick(drive: Drive, wall_bound: Instant = NEVER) -> bool:
    return drive.tick(wall_bound, wall_step_ns=100)


def test_nobody_goes_beyond_the_neighbours_horizon_and_a_hop(turns: ByHand, drive: Drive) -> None:
    assert tick(drive)
    assert drive.now_ns == DELAY_NS
    assert not tick(drive)
    turns.neighbour_is_at(700)
    assert not tick(drive), "less than a hop is not worth a tick"
    turns.neighbour_is_at(1_000)
    assert tick(drive)
    assert drive.now_ns == turns.page.horizon(ME) == 2_000


def test_who_waits_says_for_what(turns: ByHand, drive: Drive) -> None:
    tick(drive)
    want = turns.page.want_word(NEIGHBOUR, 0)
    assert drive.must_wait()
    assert turns.page.words[want] == drive.now_ns
    turns.neighbour_is_at(drive.now_ns)
    assert not drive.must_wait()


def test_what_the_neighbour_waits_for_is_ticked_off(turns: ByHand, drive: Drive) -> None:
    wanted = turns.page.want_word(ME, 0)
    turns.page.words[wanted] = 900
    tick(drive)
    assert turns.page.words[wanted] == NEVER
    turns.page.words[wanted] = 5_000
    turns.neighbour_is_at(1_000)
    tick(drive)
    assert turns.page.words[wanted] == 5_000


def test_the_wall_clock_binds_in_smaller_steps(turns: ByHand, drive: Drive) -> None:
    turns.neighbour_is_at(10_000)
    assert not tick(drive, wall_bound=99)
    assert tick(drive, wall_bound=100)
    assert drive.now_ns == 100


def test_a_frame_that_comes_late_is_counted_with_its_port(turns: ByHand, drive: Drive) -> None:
    tick(drive)
    assert drive.fidelity_record()["ports"] == {}
    drive._held.append(Input(DELAY_NS - 300, Rank.FRAME, 0, 1, bytearray(100)))
    turns.neighbour_is_at(4_000)
    assert tick(drive)
    record = drive.fidelity_record()
    assert (record["late_frames"], record["late_ns_max"], record["ports"]) == (1, 301, {0: [1, 0]})


def test_sent_frames_are_published_with_the_horizon(turns: ByHand, drive: Drive) -> None:
    turns.neighbour_is_at(4_000)
    tick(drive)
    assert turns.page.words[turns.page.sent_word(ME, 0)] == 3
    assert turns.page.words[turns.page.pending_word(ME)] == 0


def test_taps_see_what_is_sent_as_it_is_sent(turns: ByHand, drive: Drive) -> None:
    tap = Tap(PacketFilter(), 16, 8, Dscp())
    drive.taps = (tap,)
    turns.neighbour_is_at(4_000)
    tick(drive)
    records = list(records_in(tap.after(0, 9)["records"]))
    assert [record[1:3] for record in records] == [(0, 200)] * 3
    assert records == sorted(records)


def test_a_frame_on_its_way_through_the_kernel_holds_the_node(turns: ByHand, drive: Drive) -> None:
    turns.page.words[turns.page.sent_word(NEIGHBOUR, 0)] = 1
    assert not tick(drive)
    assert (drive.now_ns, turns.retries) == (0, 1)


def test_a_command_makes_work_and_asks_for_a_turn(turns: ByHand, drive: Drive) -> None:
    drive.command("now")
    assert (turns.kicks, turns.page.words[turns.page.pending_word(ME)]) == (1, 1)
    tick(drive)
    core = drive.core
    assert isinstance(core, Source)
    assert [(event.at_ns, event.text) for event in core.heard] == [(1, "now")]


def test_commands_come_in_the_order_of_their_instants(turns: ByHand, drive: Drive) -> None:
    for at_ns, text in ((800, "c"), (200, "a"), (800, "d"), (300, "b")):
        drive.command(text, at_ns)
    tick(drive)
    core = drive.core
    assert isinstance(core, Source)
    assert "".join(event.text for event in core.heard) == "abcd"


def test_what_is_scripted_keeps_nobody_awake_and_happens_all_the_same(turns: ByHand) -> None:
    drive = open_drive(turns, Source("me", ports=1, packets=0, period_ns=500, size=200))
    core, pending = drive.core, drive._pending_word
    assert isinstance(core, Source)
    drive.script("far", 9_000)
    drive.command("near", 3_500)
    assert turns.kicks == 2
    for horizon, busy, heard in ((2_000, 1, []), (3_000, 0, [3_500]), (9_000, 0, [3_500, 9_000])):
        turns.neighbour_is_at(horizon)
        assert drive.tick(NEVER, 1)
        assert turns.page.words[pending] == busy
        assert [event.at_ns for event in core.heard] == heard
    drive.command("last", 11_000)
    turns.neighbour_is_at(9_500)
    drive.tick(NEVER, 1)
    assert turns.page.words[pending] == 1
    drive.close()


def test_the_last_of_several_scripted_commands_for_one_instant_counts(turns: ByHand) -> None:
    drive = open_drive(turns, Source("me", ports=1, packets=0, period_ns=500, size=200))
    core = drive.core
    assert isinstance(core, Source)
    for text in ("down", "up"):
        drive.script(text, 3_500)
    for text in ("one", "other"):
        drive.command(text, 3_500)
    turns.neighbour_is_at(3_000)
    drive.tick(NEVER, 1)
    assert [event.text for event in core.heard] == ["up", "one", "other"]
    drive.close()


def test_a_restarted_node_is_dark_until_its_start(turns: ByHand) -> None:
    turns.page.mark_booting(ME, 6_000)
    core = Source("late", ports=1, packets=1, period_ns=100, size=200, start_ns=9_000)
    drive = open_drive(turns, core)
    assert drive.now_ns == 6_000
    drive.command("hello")
    turns.neighbour_is_at(7_000)
    assert tick(drive)
    assert (drive.now_ns, core.now_ns) == (8_000, 9_000)
    assert turns.page.words[turns.page.pending_word(ME)] == 1
    turns.neighbour_is_at(9_000)
    assert tick(drive)
    assert core.now_ns == 10_000
    assert [(event.at_ns, event.text) for event in core.heard] == [(9_001, "hello")]
    drive.close()


def test_inputs_are_never_in_the_past(turns: ByHand, drive: Drive) -> None:
    turns.neighbour_is_at(3_000)
    tick(drive)
    drive.command("late", 1_500)
    turns.neighbour_is_at(6_000)
    tick(drive)
    core = drive.core
    assert isinstance(core, Source)
    assert [event.at_ns for event in core.heard] == [4_001]
    assert drive.fidelity_record()["late_commands"] == 1


def test_who_waits_for_an_instant_keeps_the_node_awake_until_then(turns: ByHand) -> None:
    drive = open_drive(turns, Source("me", ports=1, packets=0, period_ns=500, size=200))
    pending = drive._pending_word
    drive.stay_awake(5_000)
    assert turns.kicks == 1
    for horizon, busy in ((2_000, 1), (3_000, 1), (4_000, 0)):
        turns.neighbour_is_at(horizon)
        drive.tick(NEVER, 1)
        assert (drive.now_ns, turns.page.words[pending]) == (horizon + DELAY_NS, busy)
    drive.close()


def test_the_tally_of_an_idle_node_follows_time_without_its_counts_being_asked_for(turns: ByHand) -> None:
    drive = open_drive(turns, Source("me", ports=1, packets=0, period_ns=500, size=200))
    core = drive.core
    assert isinstance(core, Source)
    asked = 0

    def totals() -> list[int]:
        nonlocal asked
        asked += 1
        return [len(core.heard), *NOTHING[1:]]

    def told(horizon: Instant) -> tuple[int, int, int]:
        """The time and the first count that stand in the page, and how often counts were asked for."""
        turns.neighbour_is_at(horizon)
        assert tick(drive)
        drive.tell_in_time(0)
        row = dict(zip(NAMES, turns.page.tally(ME), strict=True))
        return row["at_ns"], row[TOTALS[0]], asked

    drive.totals = totals
    assert told(1_000) == (2_000, 0, 1)
    assert told(2_000) == (3_000, 0, 1)
    assert told(3_000) == (4_000, 0, 1)
    drive.command("count")
    assert told(4_000) == (5_000, 1, 2)
    assert told(5_000) == (6_000, 1, 2)
    drive.script("count", 8_500)
    assert told(6_000)[:2] == (7_000, 1)
    assert told(7_000)[:2] == (8_000, 1)
    assert told(8_000)[:2] == (9_000, 2), "a command that keeps nobody awake counts, too"
    drive.close()
