"""The golden table: planes down x loss x incast degree, and what each costs.

It guards against changes that nobody meant: every figure grows from the seed and must come out the same on every
machine. What the figures should be is not said here.
"""

from itertools import product

from mrcfabric.naming import t0_name
from mrcfabric.topology import Topology
from studies import columns
from studies.faults import NodeFault, RandomLoss
from studies.flows import START_NS, incast
from studies.outcome import Outcome
from studies.study import Column, Study
from studies.trial import Fault, Trial

PLANES_DOWN = (0, 1, 2, 4)
LOSS_PPM = (0, 1_000, 10_000)
DEGREES = (1, 2, 4, 8)
MESSAGE_BYTES = 1 << 20
DOWN_NS = 5_000
"""After the start: in the middle of the first flights."""
_DEADLINE_NS = 5_000_000


def name_of(down: int, loss_ppm: int, degree: int) -> str:
    """The name of a cell."""
    return f"{down} of 8 planes down, loss {loss_ppm / 10_000:g} %, {degree} to 1"


def _trial(seed: str, down: int, loss_ppm: int, degree: int) -> Trial:
    topology = Topology(name="golden", planes=8, t0_per_plane=2, t1_per_plane=4, nics_per_t0=8, seed=seed)
    faults: list[Fault] = [NodeFault(t0_name(plane, 0), START_NS + DOWN_NS) for plane in range(down)]
    if loss_ppm:
        faults.append(RandomLoss(loss_ppm))
    flows = incast(topology, degree, MESSAGE_BYTES, stagger=False)
    return Trial(topology, flows, tuple(faults), _DEADLINE_NS)


def _trials(seed: str) -> dict[str, Trial]:
    cells = product(PLANES_DOWN, LOSS_PPM, DEGREES)
    return {name_of(*cell): _trial(seed, *cell) for cell in cells}


def _share_of_what_is_left(trial: Trial, outcome: Outcome) -> float:
    left = trial.topology.planes - sum(isinstance(fault, NodeFault) for fault in trial.faults)
    return columns.goodput_share(trial, outcome) * trial.topology.planes / left


GOLDEN = Study(
    name="golden",
    title="Golden table",
    published="",
    setup="8 planes of 100 Gb/s, 2 T0s of 8 NICs and 4 T1s each. 1 MiB from each sender to one NIC below the other T0; "
    f"T0s of the receiver die {DOWN_NS / 1000:g} us after the start; loss is random, at the T1s.",
    trials=_trials,
    columns=(
        columns.DONE_US,
        columns.DONE_RTTS,
        *(columns.resent(cause) for cause in ("gap", "timeout", "trim", "nack", "port_down")),
        columns.NEEDLESS,
        columns.RETIRED,
        columns.TRIMS,
        Column("goodput share", _share_of_what_is_left, 3),
    ),
    seeds=1,
)
