"""Every combination that is allowed also works: each runs for some fifty round trips under the swarm's watch.

Transport, path, forwarding, pauses, recovery and congestion control in every mixture; `check_combination` says which
are allowed. Three NICs write bursts to a fourth, which writes back, through queues and buffers that hold few packets.
Every byte is checked where it is placed, every message completes, and at the end nothing waits anywhere.
"""

from itertools import product
from typing import NamedTuple

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.core.events import STATUS_OK
from orchestrator.planning.plan import check
from swarm.case import SYSTEMS, Case, Fault, Flow, Write
from swarm.run import play_system
from swarm.systems.world import SystemWorld

ROUND_TRIPS = 50
BURSTS = 6
MESSAGE_BYTES = 5 * 1_024 + 100


class Mixture(NamedTuple):
    """One combination."""

    transport: str
    path: str
    forwarding: str
    lossless: str
    recovery: str
    cc: str

    def topology(self) -> Topology:
        """A small fabric with these settings. Raises ConfigError for a mixture that is not allowed."""
        rc = self.transport == "rc"
        nic = {"transport": "rc", "rc_path": self.path, "rc_recovery": self.recovery, "cc": self.cc, "rc_timeout": 5}
        switch = {"forwarding": self.forwarding, "lossless": self.lossless, "trim": False, "trim_last_hop": False,
                  "pfc_classes": "3" if rc else "0,1", "data": 0.2, "data_last_hop": 0.2, "pfc_threshold": "static",
                  "pfc_xoff_bytes": 1_500, "pfc_reserved_bytes": 300,
                  "buffer_bytes": 400_000, "ecn_min_bytes": 2_000, "ecn_max_bytes": 8_000,
                  "ecn_max_ppm": 100_000}  # fmt: skip
        found = Topology(
            name="mixtures", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, mtu_bytes=1_024, evs_per_qp=8,
            reserve_evs_per_qp=2, seed="mixtures", nic=nic if rc else {}, switch=switch,
            dscp={"control": 48} if rc else {},
        )  # fmt: skip
        check(found)
        return found


def _is_allowed(mixture: Mixture) -> bool:
    try:
        mixture.topology()
    except ConfigError:
        return False
    return True


RC = [Mixture("rc", *rest) for rest in product(("ecmp", "pinned"), ("ecmp", "usid"), ("off", "pfc"),
                                               ("go_back_n", "go_back_0", "selective"), ("none", "dcqcn"))]  # fmt: skip
MRC = [
    Mixture("mrc", "", forwarding, lossless, "", "") for forwarding in ("ecmp", "usid") for lossless in ("off", "pfc")
]
ALLOWED = [mixture for mixture in (*MRC, *RC) if _is_allowed(mixture)]
ONCE = [mixture for mixture in ALLOWED if mixture.cc != "dcqcn"]
"""Without congestion control queues fill and pauses last longest."""


def _flow(number: int, rtt_ns: int) -> Flow:
    """Bursts from NIC `number` to the last one, and one message back, spread over the time."""
    at_ns = [12_000 + burst * ROUND_TRIPS * rtt_ns // BURSTS for burst in range(BURSTS)]
    forth = [Write(at, MESSAGE_BYTES + number, 7 * one if one % 2 else None, 3) for at in at_ns for one in range(2)]
    flow = Flow(f"h00{number}", "h003", 16 + 2 * number, 17 + 2 * number, (1 << 24) - 9, 77, 10_000, forth=forth)
    flow.back = [Write(at_ns[1], MESSAGE_BYTES)]
    return flow


def _run(mixture: Mixture, *faults: Fault) -> None:
    topology = mixture.topology()
    rtt_ns = topology.base_rtt_ns()
    flows = [_flow(number, rtt_ns) for number in range(3)]
    world = SystemWorld(Case("mixture", topology, flows, list(faults), series=SYSTEMS))
    play_system(world)
    messages = [message for way in world.messages.directions for message in way.messages]
    assert len(messages) == 3 * (2 * BURSTS + 1)
    assert {message.status for message in messages} == {STATUS_OK}
    assert all(way.target == way.shadow and all(message.whole for message in way.messages)
               for way in world.messages.directions)  # fmt: skip
    assert world.drained()
    if mixture.lossless == "pfc":
        pauses = [of_class["xoff_sent"] for name in topology.switch_names()
                  for of_port in world.counters(name)["pfc"].values() for of_class in of_port.values()]  # fmt: skip
        assert sum(pauses), "somebody was paused"
    assert world.now_ns > ROUND_TRIPS * rtt_ns * (BURSTS - 1) // BURSTS


def _name(mixture: Mixture) -> str:
    return "-".join(filter(None, mixture))


def test_what_is_allowed() -> None:
    assert {mixture[:3] for mixture in ALLOWED} == {
        ("mrc", "", "usid"), ("rc", "ecmp", "ecmp"), ("rc", "pinned", "usid"),
    }  # fmt: skip
    assert len(ALLOWED) == 2 + 2 * 2 * 3 * 2


@pytest.mark.parametrize("mixture", ONCE, ids=_name)
def test_every_combination_works(mixture: Mixture) -> None:
    _run(mixture)


@pytest.mark.long
@pytest.mark.parametrize("mixture", ALLOWED, ids=_name)
def test_every_combination_makes_losses_good(mixture: Mixture) -> None:
    """Also with congestion control, and while a link loses one packet in fifty."""
    _run(mixture)
    _run(mixture, Fault("link_loss", "h003~p0-t0-1", 11_000, 400_000, 20_000))
