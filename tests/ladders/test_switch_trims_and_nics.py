"""Switches that trim and NICs that answer, together: what an operator's setting at one port means for the senders."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from nicd.core.events import Completion
from orchestrator.sim.fabric import SimulatedFabric

pytestmark = pytest.mark.spec("MRC 1.0", "1.8")

TOPOLOGY = Topology(
    name="trims", planes=1, t0_per_plane=2, t1_per_plane=4, nics_per_t0=4, evs_per_qp=16, reserve_evs_per_qp=4,
    # The last hop is tight and the rest is not: whoever trims is the receiver's T0.
    switch={"data_last_hop": 0.2, "data": 3.0},
)  # fmt: skip
SINK, SENDERS, T0, PORT = "h000", ("h004", "h005", "h006"), "p0-t0-0", 0
SIZE = 1 << 17
SOURCE_VA, TARGET_VA, R_KEY = 0x1000, 1 << 32, 0xBEEF


class Incast:
    """Three NICs write to one, all at once."""

    def __init__(self, **set_trim: Any) -> None:
        """`set_trim`: what is set at the port to the receiver before anything is sent."""
        self.done: list[str] = []
        self.fabric = SimulatedFabric(TOPOLOGY, on_events=self._note)
        if set_trim:
            self.fabric.command(T0, "set_trim", {"port": PORT, **set_trim}, 1)
        region = {"va": TARGET_VA, "length": SIZE * len(SENDERS), "region_id": 2, "r_key": R_KEY}
        self.fabric.command(SINK, "register_memory", region, 1)
        for number, sender in enumerate(SENDERS):
            self._connect(number, sender)
        self.fabric.run(3_000_000)

    def _note(self, node: str, events: list[Any]) -> None:
        self.done += [node for event in events if isinstance(event, Completion)]

    def _connect(self, number: int, sender: str) -> None:
        region = {"va": SOURCE_VA, "length": SIZE, "region_id": 1, "r_key": 1}
        self.fabric.command(sender, "register_memory", region, 1)
        for node, peer, qpn, peer_qpn in ((sender, SINK, 100, 200 + number), (SINK, sender, 200 + number, 100)):
            index = TOPOLOGY.nic_index(peer)
            ends = {"qpn": qpn, "peer_index": index, "peer_qpn": peer_qpn, "psn_send": 10, "psn_receive": 10}
            self.fabric.command(node, "create_qp", {"qpn": qpn}, 2)
            self.fabric.command(node, "connect_qp", ends, 3)
            self.fabric.command(node, "modify_qp", {"qpn": qpn, "state": "rts"}, 4)
        write = {"qpn": 100, "wr_id": 1, "local_region": 1, "local_va": SOURCE_VA, "length": SIZE, "r_key": R_KEY}
        self.fabric.command(sender, "post_write", {**write, "remote_va": TARGET_VA + number * SIZE}, 1_000)

    @property
    def port(self) -> dict[str, Any]:
        """The counters of the port to the receiver."""
        found: dict[str, Any] = self.fabric.counters(T0)["ports"][PORT]
        return found

    def sum(self, counter: str) -> int:
        """A counter of the senders."""
        return sum(self.fabric.counters(sender)[counter] for sender in SENDERS)

    def resent(self) -> dict[str, int]:
        """The senders' retransmissions by cause, causes without any left out."""
        found: dict[str, int] = {}
        for sender in SENDERS:
            for cause, count in self.fabric.counters(sender)["retransmits"].items():
                found[cause] = found.get(cause, 0) + count
        return {cause: count for cause, count in found.items() if count}


def test_every_packet_trimmed_at_the_last_hop_is_sent_again_and_no_path_is_blamed():
    incast = Incast()
    assert sorted(incast.done) == sorted(SENDERS)
    assert incast.port["trim_admitted"] > 0
    assert incast.resent() == {"trim": incast.port["trim_admitted"]}
    assert (incast.sum("timeouts"), incast.sum("ev_skips")) == (0, 0)


def test_a_last_hop_that_does_not_say_so_makes_senders_skip_innocent_paths():
    incast = Incast(on=True, dscp=12)
    assert sorted(incast.done) == sorted(SENDERS)
    assert incast.resent() == {"trim": incast.port["trim_admitted"]}
    assert incast.sum("ev_skips") > 0


def test_without_trimming_senders_find_out_by_themselves():
    incast = Incast(on=False)
    assert sorted(incast.done) == sorted(SENDERS)
    assert incast.port["drops"]["data_full"] > 0
    assert (incast.port["trimmed"], "trim" in incast.resent()) == (0, False)
    assert sum(incast.resent().values()) >= incast.port["drops"]["data_full"]
