"""A NIC that starts again while a peer's QP to its earlier life lives on: the peer believes the new life's word."""

import pytest

from mrcfabric.topology import Topology
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp
from tests.nicd.core.fabric import READY_NS, Fabric

SIZE = 1 << 18
A, B = "h000", "h001"
SHAPE = Topology(
    name="again", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=8
)


class Again(Fabric):
    """A writes to b, whose port 0 has gone down; then b dies in the middle of a message and starts again."""

    def __init__(self) -> None:
        super().__init__(SHAPE)
        self.rtt_ns = self.core(A).config.settings.base_rtt_ns
        self.memory(A, SIZE)
        self.memory(B, SIZE)
        self.connect(A, B, 100, 200)
        self.carrier(B, 0, False, READY_NS)
        self.run_for(60)
        self.write(A, 100, 0, 0, SIZE, self.simulator.now_ns + 1)
        self.simulator.crash(B, self.simulator.now_ns + 2_000)
        self.simulator.restart(B, self.simulator.now_ns + 4_000, lambda start_ns: self.nic(B, start_ns))
        self.run_for(1)

    def run_for(self, rtts: int) -> None:
        self.simulator.run(self.simulator.now_ns + rtts * self.rtt_ns)

    def connect_again(self) -> None:
        """A second pair of QPs, beside the one that a has not given up yet."""
        at_ns = self.simulator.now_ns + 1
        for name, qpn, peer, peer_qpn in ((A, 101, 1, 201), (B, 201, 0, 101)):
            self.simulator.command(name, at_ns, CreateQp(0, qpn))
            self.simulator.command(name, at_ns + 1, ConnectQp(0, qpn, peer, peer_qpn, 5, 5))
            self.simulator.command(name, at_ns + 2, ModifyQp(0, qpn, "rts"))

    def believed(self) -> set[int]:
        """Planes that a believes to be up at b."""
        return {int(row["plane"]) for row in self.core(A).reverse_paths() if row["usable"]}


@pytest.mark.spec("MRC 1.0", "2.6")
def test_ports_that_were_down_in_an_earlier_life_are_used_again() -> None:
    fabric = Again()
    assert not fabric.errors(), "a's first QP lives on"
    assert fabric.believed() == {1}
    fabric.connect_again()
    fabric.run_for(20)
    assert fabric.believed() == {0, 1}


@pytest.mark.spec("MRC 1.0", "2.6")
def test_the_numbers_of_updates_begin_anew() -> None:
    fabric = Again()
    fabric.connect_again()
    fabric.run_for(20)
    fabric.carrier(B, 1, False, fabric.simulator.now_ns + 1)
    fabric.run_for(5)
    assert fabric.believed() == {0}
    fabric.carrier(B, 1, True, fabric.simulator.now_ns + 1)
    fabric.run_for(5)
    assert fabric.believed() == {0, 1}
