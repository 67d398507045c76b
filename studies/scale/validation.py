"""Jobs under random failures in the simulator, beside the formula.

A small job on a fast fabric with times in milliseconds: a NIC's cable goes dark at Poisson instants, a collective
times out, the job goes back to its checkpoint. The formula gets the same interval, restart and time-out, and the
failures per running time that the seeds happened to have. Only the simulation has whole steps, failures close
together, and real bytes."""

from math import log
from typing import Final, NamedTuple

from mrcfabric.rng import Rng
from mrcfabric.units import NS_PER_S
from orchestrator.measures.job import bill
from orchestrator.scenario.resolve import resolve
from orchestrator.yamlfile.document import parse
from studies.scale.model import HOUR, Cost, Terms, useful
from studies.scale.recovery import simulated

EVERY, CHECKPOINT_MS, TIMEOUT_MS, RESTART_MS = 6, 0.2, 2.0, 5.0
"""As the text has them: steps between checkpoints, and times."""
MEANS_MS: Final = (80.0, 25.0)
SEEDS: Final = 3
_DARK_MS: Final = 3.0
_TEXT: Final = """
name: validation
system: {system}
fabric: {{planes: 1, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 8, reserve_evs_per_qp: 4,
  rate_bps: 25G, nic: {{bin_ns: 100_000}}}}
nominal_dilation: 1
length: 1500ms
look: 5ms
workload:
  - {{name: train, kind: training, ranks: all, steps: 150, buckets: 1, bucket_bytes: 16KiB, compute: 1ms,
     checkpoint_every: 6, checkpoint: 200us, collective_timeout: 2ms, restarts: 500, detect: 1ms, reschedule: 2ms,
     load: 2ms}}
method: [{method}]
"""


class Checked(NamedTuple):
    """One size, simulated and by the formula."""

    gpus: int
    mean_ms: float
    """Between two failures of the job."""
    simulated: float
    formula: float
    restarts: int


def check(mean_ms: float, seeds: int, system: str = "roce") -> Checked:
    """The useful share over some seeds, and that of the formula."""
    useful_ns = total_ns = down_ns = restarts = 0
    step_ms = 0.0
    for seed in range(seeds):
        recording = simulated(resolve(parse("validation.yaml", _scenario(system, mean_ms, seed)), seed=str(seed)))
        paid = bill(recording.programs[0], recording.end_ns)
        assert paid is not None
        useful_ns, total_ns = useful_ns + paid.useful_ns, total_ns + paid.total_ns
        down_ns, restarts = down_ns + paid.down_ns, restarts + paid.restarts
        lengths = [step.end_ns - step.begin_ns for step in recording.programs[0].ranks[0].steps]
        step_ms += sorted(lengths)[len(lengths) // 2] / 1e6 / seeds
    nics = 4
    per_hour = restarts / ((total_ns - down_ns) / NS_PER_S) * HOUR
    terms = Terms(per_hour / nics, EVERY * step_ms / 1000, CHECKPOINT_MS / 1000, RESTART_MS / 1000, 0, step_ms / 1000)
    # The step goes on to its collective (half a step, which the formula has), and that to its time-out.
    nic = Cost(1, TIMEOUT_MS / 1000, True)
    return Checked(nics, mean_ms, useful_ns / total_ns, useful(nics, Cost(0, 0, False), nic, 1, terms), restarts)


def _scenario(system: str, mean_ms: float, seed: int) -> str:
    rng = Rng("scale", "validation", seed)
    at_ms, entries = 0.0, list[str]()
    while at_ms < 1400:
        at_ms += -log((rng.below(1 << 30) + 1) / (1 << 30)) * mean_ms
        # The cable is back before the job is: a failure hits a job that runs.
        name, nic = f"dark{len(entries)}", rng.below(4)
        times = f"at: {round(at_ms * 1000)}us, for: {round(_DARK_MS * 1000)}us"
        selector = f'{{links: "h00{nic}~p0-t0-{nic // 2}"}}'
        entries.append(f"{{name: {name}, {times}, fault: link_down, selector: {selector}}}")
    return _TEXT.format(system=system, method=", ".join(entries))
