"""The NIC core as a whole: whole fabrics in virtual time, and one NIC against hand-made inputs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.impairment import Impairment
from mrcfabric.naming import port_mac
from mrcfabric.node import Input, Rank
from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.wire.pfc import encode
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory, SetCarrier
from nicd.core.events import RECV_WITH_IMM, CommandDone, Completion, PeerPortChange, PortChange
from nicd.core.nic import Nic
from tests.nicd.core.fabric import R_KEY, READY_NS, SOURCE_VA, TARGET_VA, Fabric
from tests.support.lines import lines_of

SMALL = Topology(
    name="small", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)
PAIR = Topology(
    name="pair", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8
)
DEADLINE_NS = 20_000_000


def test_a_link_control_frame_is_a_drop_by_its_name() -> None:
    nic = Nic(nic_config(SMALL, "h000"))
    frame = encode(port_mac("p0-t0-0", 0), {3: 65_535})
    assert nic.advance([Input(10, Rank.FRAME, 0, 1, frame)], 20) == []
    assert {name: count for name, count in nic.counters()["drops"].items() if count} == {"link_control": 1}


class TestHealthy:
    def test_nothing_is_retransmitted_and_no_ev_is_accused(self) -> None:
        fabric = Fabric(SMALL)
        fabric.permutation(2, 1 << 20)
        fabric.write_all(1 << 20, 4)
        assert fabric.finish(DEADLINE_NS)
        fabric.verify(1 << 20)
        assert fabric.total("retransmits") == 0
        assert fabric.total("duplicates") == 0
        assert fabric.ev_states()["assumed_bad"] == 0
        assert fabric.total("bytes_placed") == 4 << 20
        assert fabric.total("drops") == 0

    def test_an_idle_fabric_has_nothing_pending(self) -> None:
        fabric = Fabric(SMALL)
        fabric.permutation(2, 1 << 18)
        fabric.write_all(1 << 18, 2)
        assert fabric.finish(DEADLINE_NS)
        fabric.simulator.run(fabric.simulator.now_ns + 20 * SMALL.base_rtt_ns())
        assert fabric.simulator.next_due() is None
        assert all(fabric.core(name).next_timeout() is None for name in SMALL.nic_names())

    @pytest.mark.slow
    def test_queues_just_below_the_trim_threshold_cost_nothing(self) -> None:
        """Two senders with windows that together fill the queue of the last hop not far from where it would trim."""
        nics = {"congestion": "fixed", "cwnd_bytes": SMALL.nic_bdp_bytes}
        topology = Topology(
            name="incast", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
            reserve_evs_per_qp=8, nic=nics,
        )  # fmt: skip
        fabric = Fabric(topology)
        size = 2 << 20
        for name in topology.nic_names():
            fabric.memory(name, size)
        fabric.connect("h000", "h002", 100, 200)
        fabric.connect("h001", "h002", 101, 201)
        for a, qpn, _, _ in fabric.flows:
            fabric.write(a, qpn, 0, 0, size, READY_NS)
        assert fabric.finish(DEADLINE_NS)
        peaks = [
            port["data_bytes_peak"]
            for name in topology.switch_names()
            for port in fabric.simulator.node(name).counters()["ports"].values()
        ]
        assert max(peaks) > 0.9 * topology.plane_bdp_bytes
        assert fabric.total("trims") == 0
        assert fabric.total("retransmits") == 0
        assert fabric.transitions("assumed_bad") == []

    def test_messages_of_every_size_arrive_whole(self) -> None:
        fabric = Fabric(PAIR)
        size = 1 << 16
        for name in PAIR.nic_names():
            fabric.memory(name, size)
        fabric.connect("h000", "h001", 100, 200)
        offset = 0
        for number, length in enumerate((1, 2, 3, 4, 5, 4095, 4096, 4097, 8191, 8192, 8193, 20_000)):
            fabric.write("h000", 100, number, offset, length, READY_NS, imm=number)
            offset += length
        assert fabric.finish(DEADLINE_NS)
        fabric.verify(offset)
        received = fabric.found(Completion, lambda event: event.opcode == RECV_WITH_IMM)
        assert [event.imm for event in received] == list(range(12))


@pytest.mark.slow
class TestFailures:
    SIZE = 10 << 20

    def _start(self) -> Fabric:
        fabric = Fabric(Topology.demo())
        fabric.permutation(4, self.SIZE)
        fabric.write_all(self.SIZE, 4)
        return fabric

    def _finish(self, fabric: Fabric) -> None:
        assert fabric.finish(DEADLINE_NS)
        fabric.verify(self.SIZE)
        assert fabric.errors() == []

    @pytest.mark.spec("MRC 1.0", "11.2")
    def test_a_dead_t1_costs_a_few_round_trips(self) -> None:
        fabric = self._start()
        dead, died_ns = "p3-t1-2", 30_000
        fabric.simulator.crash(dead, died_ns)
        fabric.simulator.restart(dead, 500_000, lambda start: fabric.switch(dead, start))
        self._finish(fabric)
        bad = fabric.transitions("assumed_bad")
        assert {(event.plane, event.path) for event in bad} == {(3, 2)}
        # Four active EVs of each of eight flows lead through it.
        assert len(bad) == 32
        rtt_ns = fabric.topology.base_rtt_ns()
        assert max(event.at_ns for event in bad) - died_ns < 8 * rtt_ns
        fabric.simulator.run(500_000 + 60 * rtt_ns)
        assert fabric.ev_states()["assumed_bad"] == 0
        assert {event.cause for event in fabric.transitions("good")} == {"probed_clear"}

    def test_a_dead_link_is_left_alone_until_it_is_back(self) -> None:
        fabric = self._start()
        fabric.impair("p1-t0-0", 4, Impairment(up=False), 30_000)
        self._finish(fabric)
        now_ns = fabric.simulator.now_ns
        assert {(event.plane, event.path) for event in fabric.transitions("assumed_bad")} == {(1, 0)}
        fabric.simulator.run(now_ns + 300_000)
        assert fabric.transitions("good") == []
        assert fabric.simulator.next_due() is not None
        fabric.impair("p1-t0-0", 4, Impairment(), now_ns + 310_000)
        fabric.simulator.run(now_ns + 1_000_000)
        assert fabric.ev_states()["assumed_bad"] == 0
        assert fabric.simulator.next_due() is None

    def test_a_lossy_link_delays_but_breaks_nothing(self) -> None:
        fabric = self._start()
        for switch in ("p1-t0-0", "p5-t0-1"):
            fabric.impair(switch, 5, Impairment(loss_ppm=300_000), 20_000)
        self._finish(fabric)
        assert fabric.total("retransmits") > 0

    @pytest.mark.spec("MRC 1.0", "2.6")
    def test_a_dead_t0_takes_its_plane_from_its_nics_without_accusing_evs(self) -> None:
        fabric = self._start()
        fabric.simulator.crash("p2-t0-1", 30_000)
        for nic in ("h004", "h005", "h006", "h007"):
            fabric.carrier(nic, 2, False, 31_000)
        self._finish(fabric)
        assert fabric.transitions("assumed_bad") == []
        assert len(fabric.found(PeerPortChange, lambda event: not event.up)) == 4

    def test_goodput_with_a_port_down_is_seven_eighths_and_comes_back(self) -> None:
        fabric = self._start()
        port, down_ns, up_ns = 5, 30_000, 60_000
        fabric.carrier("h005", port, False, down_ns)
        fabric.carrier("h005", port, True, up_ns)
        self._finish(fabric)
        assert fabric.transitions("assumed_bad") == []
        assert [event.up for event in fabric.found(PortChange)] == [False, True]
        bins = dict(fabric.core("h005").bins(0))
        before, during, after = (bins[at_ns] for at_ns in (25_000, 50_000, 75_000))
        assert during[port] == 0
        assert after[port] > 0.8 * before[port]
        assert sum(during) == pytest.approx(sum(before) * 7 / 8, rel=0.05)
        assert sum(after) > 0.95 * sum(before)


@pytest.mark.slow
def test_an_incast_trims_and_retransmits_but_accuses_no_path_and_loses_no_qp() -> None:
    fabric = Fabric(Topology.demo())
    names = list(fabric.topology.nic_names())
    size = 1 << 20
    for name in names:
        fabric.memory(name, size)
    for index, name in enumerate(names[1:], 1):
        fabric.connect(name, names[0], 100 + index, 200 + index)
        fabric.write(name, 100 + index, 0, 0, size, READY_NS)
    assert fabric.finish(DEADLINE_NS)
    assert fabric.total("trims") > 0
    assert fabric.total("trims") == fabric.total("retransmits")
    assert fabric.transitions("assumed_bad") == []
    assert fabric.errors() == []


class TestPeerGone:
    def test_the_qp_fails_when_the_retries_are_used_up(self) -> None:
        fabric = Fabric(PAIR)
        fabric.permutation(1, 1 << 16)
        fabric.simulator.crash("h001", READY_NS + 10)
        fabric.write("h000", 100, 7, 0, 1 << 16, READY_NS + 20)
        assert fabric.finish(200_000_000, 1_000_000)
        assert [event.status for event in fabric.found(Completion)] == ["retry_exceeded"]
        assert [event.reason for event in fabric.errors()] == ["retry_counter_exceeded"]
        fabric.simulator.run(fabric.simulator.now_ns + 1_000_000)
        assert fabric.simulator.next_due() is None


class TestRefusals:
    @pytest.mark.spec("MRC 1.0", "3")
    @pytest.mark.parametrize(
        ("va", "r_key", "length"),
        [(TARGET_VA + 4096, R_KEY, 8192), (TARGET_VA - 1, R_KEY, 16), (TARGET_VA, R_KEY + 1, 16), (0, R_KEY, 1)],
    )
    def test_a_write_outside_its_region_fails_the_qp_and_writes_nothing(self, va: int, r_key: int, length: int) -> None:
        fabric = Fabric(PAIR)
        fabric.permutation(1, 8192)
        fabric.simulator.command("h000", READY_NS, PostWrite(0, 100, 1, 1, SOURCE_VA, length, va, r_key))
        fabric.posted = 1
        assert fabric.finish(DEADLINE_NS)
        (completion,) = fabric.found(Completion)
        assert completion.status == "remote_invalid_request"
        assert len(fabric.errors()) == 2
        assert fabric.total("drops") > 0
        # Of the message that begins inside, the first packet may arrive before the second is refused.
        assert fabric.total("bytes_placed") in ((0, 4096) if va == TARGET_VA + 4096 else (0,))

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            (CreateQp(1, 2), "possible are"),
            (CreateQp(1, 100), "exists already"),
            (ConnectQp(1, 999, 1, 5, 0, 0), "no QP 999"),
            (ConnectQp(1, 100, 99, 5, 0, 0), "no NIC 99"),
            (ModifyQp(1, 100, "rtr"), "rts or error"),
            (ModifyQp(1, 100, "rts"), "cannot go"),
            (PostWrite(1, 100, 1, 9, SOURCE_VA, 10, 0, 0), "no memory region 9"),
            (PostWrite(1, 100, 1, 1, SOURCE_VA + 8190, 10, 0, 0), "not inside"),
            (PostWrite(1, 100, 1, 1, SOURCE_VA, 0, 0, 0), "message of 0 bytes"),
            (RegisterMemory(1, 0, 0), "region of 0 bytes"),
            (RegisterMemory(1, 0, 10, 1), "exists already"),
            (SetCarrier(1, 9, False), "no port 9"),
        ],
    )
    def test_a_command_that_cannot_be_done_says_why(self, command: object, words: str) -> None:
        fabric = Fabric(PAIR)
        fabric.permutation(1, 8192)
        fabric.simulator.run(READY_NS)
        fabric.events.clear()
        fabric.simulator.command("h000", READY_NS + 1, command)
        fabric.simulator.run(READY_NS + 1)
        (answer,) = fabric.found(CommandDone)
        assert words in answer.error


def scripted(fabric: Fabric) -> None:
    """A short run with everything in it: two flows, a port that goes and comes, loss."""
    fabric.permutation(1, 1 << 17)
    fabric.write_all(1 << 17, 3)
    fabric.impair("p0-t0-0", 1, Impairment(loss_ppm=30_000), 3_000)
    fabric.carrier("h001", 1, False, 9_000)
    fabric.carrier("h001", 1, True, 25_000)


class TestCuts:
    def test_two_runs_are_the_same(self) -> None:
        digests = []
        for _ in range(2):
            fabric = Fabric(PAIR, keep=0)
            scripted(fabric)
            fabric.simulator.run(400_000)
            digests.append({name: fabric.simulator.traces(name)[-1].digest() for name in PAIR.node_names()})
        assert digests[0] == digests[1]

    @settings(max_examples=12, deadline=None)
    @given(st.lists(st.integers(1, 60_000), max_size=40))
    def test_results_do_not_depend_on_how_time_is_cut(self, cuts: list[int]) -> None:
        """Replay everything one NIC received, cut at random instants: same packets, same events, same counters."""
        whole, inputs, until = _recorded()
        core = _replayed(inputs, [until])
        cut = _replayed(inputs, sorted({*cuts, until}))
        assert core == cut
        assert core[0] == whole

    def test_advancing_to_every_timeout_changes_nothing(self) -> None:
        _, inputs, until = _recorded()
        core = Nic(_CONFIG)
        packets = []
        position = 0
        while True:
            due = core.next_timeout()
            due = until if due is None else min(due, until)
            if position < len(inputs) and inputs[position].at_ns <= due:
                due = inputs[position].at_ns
            batch = []
            while position < len(inputs) and inputs[position].at_ns <= due:
                batch.append(_copied(inputs[position]))
                position += 1
            packets += core.advance(batch, due)
            if due >= until:
                break
        assert _by_port(packets) == _replayed(inputs, [until])[0]


class _Recorder(Nic):
    """A NIC that remembers its inputs and transmits."""

    def advance(self, inputs: list[Input], until: int) -> list:  # type: ignore[type-arg]
        _SEEN.extend(_copied(entry) for entry in inputs)
        out = super().advance(inputs, until)
        _SENT.extend((entry[0], entry[1], bytes(entry[2])) for entry in out)
        return out


_SEEN: list[Input] = []
_SENT: list[tuple[int, int, bytes]] = []
_CONFIG = Fabric(PAIR).core("h000").config


def _copied(entry: Input) -> Input:
    at_ns, rank, port, sequence, body = entry
    return Input(at_ns, rank, port, sequence, bytearray(body) if rank == Rank.FRAME else body)


def _by_port(packets: list) -> dict[int, list[tuple[int, bytes]]]:  # type: ignore[type-arg]
    ports: dict[int, list[tuple[int, bytes]]] = {}
    for port, arrival_ns, packet in packets:
        ports.setdefault(port, []).append((arrival_ns, bytes(packet)))
    return ports


def _recorded() -> tuple[dict[int, list[tuple[int, bytes]]], list[Input], int]:
    """What h000 sent and received in the scripted run, up to 60 microseconds."""
    if not _SEEN:
        fabric = Fabric(PAIR)
        nodes = {name: fabric.simulator.node(name) for name in PAIR.node_names()}
        nodes["h000"] = _Recorder(_CONFIG)
        links = {(name, end.port): (end.peer, end.peer_port) for name in nodes for end in PAIR.ports(name)}
        fabric.simulator = Simulator(nodes, links, window_ns=PAIR.link_delay_ns)
        scripted(fabric)
        fabric.simulator.run(60_000)
    return _by_port(_SENT), _SEEN, 60_000


def _replayed(inputs: list[Input], cuts: list[int]) -> tuple[dict, list, dict]:  # type: ignore[type-arg]
    core = Nic(_CONFIG)
    packets, events = [], []
    position = 0
    for cut in cuts:
        batch = []
        while position < len(inputs) and inputs[position].at_ns <= cut:
            batch.append(_copied(inputs[position]))
            position += 1
        packets += core.advance(batch, cut)
        events += [event.record() for event in core.drain_events()]
    return _by_port(packets), events, core.counters()


class TestBytesFromOutside:
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_no_frame_raises(self, data: st.DataObject) -> None:
        _, inputs, _ = _recorded()
        frames = [entry for entry in inputs if entry.rank == Rank.FRAME]
        commands = [entry for entry in inputs if entry.rank == Rank.COMMAND and entry.at_ns < READY_NS]
        core = Nic(_CONFIG)
        core.advance(commands, READY_NS)
        packet = bytearray(data.draw(st.sampled_from(frames[:200])).body)
        for _ in range(data.draw(st.integers(0, 4))):
            packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
        packet = packet[: data.draw(st.integers(0, len(packet)))]
        core.advance([Input(READY_NS + 1, Rank.FRAME, 0, 1, packet)], READY_NS + 1)
        assert sum(core.counters()["drops"].values()) <= 1


def test_counters_and_glances_cost_the_same_however_many_evs_there_are() -> None:
    """Nobody walks over EVs while a data path waits."""
    steps = {}
    for evs in (16, 128):
        nic = Nic(nic_config(replace(SMALL, evs_per_qp=evs), "h000"))
        commands = (CreateQp(0, 5), ConnectQp(0, 5, 1, 5, 0, 0))
        nic.advance([Input(1, Rank.COMMAND, 0, number, command) for number, command in enumerate(commands)], 9)
        steps[evs] = [lines_of(nic.counters), lines_of(lambda nic=nic: nic.glance([]))]
    assert steps[16] == steps[128]
