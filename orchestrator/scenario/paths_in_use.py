"""Which links the EVs of a flow take when it begins, for faults that are to hit them.

Pure. The EVs of a QP follow from the fabric's seed and the QP's number (MRC 1.0 6), so they are known before anything
starts; later losses may have replaced some. Owns the reading of EVs as links and nothing else.
"""

from mrcfabric.paths import Destination
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.mrc.ev_universe import Universe
from nicd.programs.program import Program

_BUILT_IN = 0
"""The number of the built-in EV profile."""


def links_in_use(topology: Topology, program: Program, sender: int, receiver: int) -> frozenset[str]:
    """Names of the cables between T0s and T1s that active EVs of a flow cross, over all its QPs.

    Sender and receiver are ranks of the program. Empty if both are below one T0.
    """
    nic, peer = program.ranks[sender], program.ranks[receiver]
    destination = Destination(topology, nic, peer)
    if destination.same_t0:
        return frozenset()
    config = nic_config(topology, topology.node_name(nic))
    universe = Universe(config, _BUILT_IN)
    qpns = (program.qpn(receiver, turn) for turn in range(program.qps))
    drawn = (universe.draw(destination, Rng(config.seed, config.name, "qp", qpn, "evs")) for qpn in qpns)
    active = {(one.path.plane, one.path.number) for evs in drawn for one in evs.active}
    t0s = nic // topology.nics_per_t0, peer // topology.nics_per_t0
    return frozenset(f"p{plane}-t0-{t0}~p{plane}-t1-{path}" for plane, path in active for t0 in t0s)
