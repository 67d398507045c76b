"""Messages of every length: one byte, around the MTU, no multiple of anything, and the longest there is."""

import contextlib
import mmap
from typing import Any

import pytest

from mrcfabric.sim.simulator import Simulator
from mrcfabric.topology import Topology
from mrcfabric.wire.layout import PSN_MASK
from nicd.compose import nic_config
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from nicd.core.events import Completion
from nicd.core.nic import Nic
from tests.support.ladder import Ladder

LONGEST = (1 << 32) - 1


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 1023, 1024, 1025, 1026, 2047, 2048, 4099])
@pytest.mark.parametrize("imm", [None, 7])
def test_a_message_is_as_long_as_it_is(length: int, imm: int | None) -> None:
    ladder = Ladder()
    ladder.wire.drop(nth=1)
    ladder.write(length=length, imm=imm)
    assert ladder.run()
    ladder.verify()
    # Nothing behind its end is touched, also not by the padding.
    assert not any(ladder.b.target[length:])
    packets = ladder.data(rtx=False)
    assert len(packets) == -(-length // ladder.mtu)
    assert {seen.length for seen in packets} == {length}
    assert sum(seen.size for seen in packets) == length
    assert ladder.b.immediates == ([] if imm is None else [imm])


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("length", [0, LONGEST + 1])
def test_other_lengths_are_refused_with_a_reason(length: int) -> None:
    ladder = Ladder()
    ladder.write(length=length)
    ladder.run_for(1)
    assert ladder.a.refusals == [f"a message of {length} bytes; possible are 1 to 2**32 - 1"]
    assert ladder.wire.seen == []


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.spec("MRC 1.0", "3")
def test_the_longest_message_arrives_whole() -> None:
    """4 GiB less a byte through two real cores, at the end of the address space; what has arrived is given back to the
    system as it goes, so that it takes no memory."""
    topology = Topology(
        name="longest", planes=1, t0_per_plane=2, t1_per_plane=1, nics_per_t0=1, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"timestamps": False},
    )  # fmt: skip
    names = tuple(topology.nic_names())
    nodes = {name: Nic(nic_config(topology, name)) for name in names}
    links = {(names[0], 0): (names[1], 0), (names[1], 0): (names[0], 0)}
    ends: list[Any] = []
    simulator = Simulator(
        nodes,
        links,
        window_ns=topology.link_delay_ns,
        on_events=lambda name, new: ends.extend(event for event in new if isinstance(event, Completion)),
    )
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    source, target = mmap.mmap(-1, LONGEST, flags=flags), mmap.mmap(-1, LONGEST, flags=flags)
    for memory in (source, target):
        with contextlib.suppress(OSError):  # a kernel without large pages: it takes longer
            memory.madvise(mmap.MADV_HUGEPAGE)
    source[:5], source[-3:] = b"start", b"end"
    target_va = (1 << 64) - LONGEST
    command = simulator.command
    command(names[0], 1, RegisterMemory(0, 0x1000, LONGEST, 1, 1, memoryview(source)))
    command(names[1], 1, RegisterMemory(0, target_va, LONGEST, 1, 7, memoryview(target)))
    for index, (send, receive) in enumerate(((PSN_MASK - 9, 5), (5, PSN_MASK - 9))):
        command(names[index], 2, CreateQp(0, 100))
        command(names[index], 3, ConnectQp(0, 100, 1 - index, 100, send, receive))
        command(names[index], 4, ModifyQp(0, 100, "rts"))
    command(names[0], 1_000, PostWrite(0, 100, 1, 1, 0x1000, LONGEST, target_va, 7))
    middle = 4096, LONGEST // 4096 * 4096 - 8192
    while not ends and simulator.now_ns < 1_000_000_000:
        simulator.run(simulator.now_ns + 2_000_000)
        target.madvise(mmap.MADV_DONTNEED, *middle)
    assert [(event.status, event.byte_len) for event in ends] == [("ok", LONGEST)]
    assert (target[:5], target[-3:]) == (b"start", b"end")
    assert nodes[names[1]].counters()["bytes_placed"] == LONGEST
