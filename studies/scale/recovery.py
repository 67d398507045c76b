"""What one failure costs a job on each system, measured: how long its step takes longer, and whether it survives.

A training job crosses T0 0 on the slow fabric (examples/topologies/slow-bed.yaml), where timers run as published.
Half of that T0's up-links go dark, so that flows of every system are hit; or the cable of one of a NIC's two ports.
The stall is the longest step without the median one. A job that loses a QP has failed: it goes back to its
checkpoint."""

import asyncio
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple

from mrcfabric.units import NS_PER_S
from orchestrator.measures.recording import Recording
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.observer import SilentObserver
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import resolve
from orchestrator.sim.backend import SimBackend
from orchestrator.yamlfile.document import parse

_CUT_MS: Final = 1_000
_STEPS: Final = 40
FABRIC, NIC = "p*-t0-0~p*-t1-[01]", "h000~p0-t0-0"
"""The two events: half of a T0's up-links, a NIC's cable."""
SEEDS: Final = {FABRIC: (1, 2, 3), NIC: (1,)}
RTT_NS: Final = 2_220_800
"""Base RTT of the slow fabric."""


@dataclass(frozen=True, slots=True)
class System:
    """A system with what finds its failures."""

    name: str
    bundle: str
    switch: str = ""
    """Settings of switches, as YAML in braces."""
    nic: str = ""
    length_s: int = 60
    source: str = ""
    """Where its timers are published."""
    ports: int = 1
    """Ports of a NIC as deployed: 8 x 100G, or 1 x 800G."""
    by_rtt: bool = False
    """Its recovery takes round trips, not seconds: at a deployed RTT it is as many times shorter."""

    def text(self, links: str, seed: int) -> str:
        """Its scenario. Each seed cuts at another instant of a step and of the timers."""
        at_ms = _CUT_MS + 37 * seed
        nic = "bin_ns: 5_000_000, rc_timeout: 20, rc_retry_cnt: 7, rp_dce_tcp_rtt_ns: 1_000_000, rp_min_rate_mbps: 1, "
        nic += "rp_time_reset_ns: 300_000_000, rp_rate_reduce_monitor_period_ns: 4_000_000, "
        nic += "np_min_time_between_cnps_ns: 4_000_000" + (f", {self.nic}" if self.nic else "")
        return f"""
name: recovery
system: {self.bundle}
fabric:
  {{planes: 2, t0_per_plane: 2, t1_per_plane: 4, nics_per_t0: 2, rate_bps: 100M, link_delay_ns: 100_000, evs_per_qp: 16,
   reserve_evs_per_qp: 8, nic: {{{nic}}}, switch: {{{self.switch}}}}}
nominal_dilation: 1
length: {self.length_s}s
look: 5s
workload:
  - {{name: train, kind: training, ranks: [h000, h002, h001, h003], steps: {_STEPS}, buckets: 1, bucket_bytes: 64KiB,
     compute: 30ms, qps: 2}}
method:
  - {{name: cut, at: {at_ms}ms, for: {self.length_s - 3}s, fault: link_down,
     selector: {{links: "{links}"}}}}
"""


_SILENT: Final = "routing: bgp, bgp_fast_external_failover: false"
SYSTEMS: Final = (
    System("MRC", "mrc", source="MRC 1.0", ports=8, by_rtt=True),
    System("UET, BGP by carrier", "uet", "routing: bgp", source="RFC 7938 7.1"),
    System("UET, BGP by hold timer 9 s", "uet", _SILENT, source="FRR, data centre profile"),
    System("RoCE, BGP by carrier", "roce", "routing: bgp", source="RFC 7938 7.1"),
    System("RoCE, BGP by BFD 3 x 50 ms", "roce",
           f"{_SILENT}, bfd: true, bfd_transmit_interval_ns: 50_000_000, bfd_receive_interval_ns: 50_000_000",
           source="FRR"),
    System("RoCE, BGP by BFD 3 x 300 ms", "roce", f"{_SILENT}, bfd: true", source="FRR, default"),
    System("RoCE, BGP by hold timer 9 s", "roce", _SILENT, source="FRR, data centre profile"),
    System("RoCE, BGP by hold timer 180 s", "roce",
           f"{_SILENT}, bgp_keepalive_ns: 60_000_000_000, bgp_hold_ns: 180_000_000_000",
           source="FRR, traditional profile"),
    System("InfiniBand, subnet manager", "ib", "shield: false, routing: sm", "sm_nics: 1", source="opensm"),
    System("InfiniBand, SHIELD and subnet manager", "ib", "shield: true, routing: sm", "sm_nics: 1",
           source="NVIDIA SHIELD; opensm"),
)  # fmt: skip


class Recovery(NamedTuple):
    """What a failure of up-links cost one job."""

    stall_s: float
    """The longest step without the median one; where it failed, from the failure to the end of its first rank."""
    survived: bool
    reason: str = ""


def measure(system: System, links: str) -> Recovery:
    """What its job loses when these links go dark: mean over the seeds; failed where it failed at any."""
    found = [judged(simulated(resolve(parse("recovery.yaml", system.text(links, seed)), seed=str(seed))))
             for seed in SEEDS[links]]  # fmt: skip
    failed = [one for one in found if not one.survived]
    chosen = failed or found
    return Recovery(sum(one.stall_s for one in chosen) / len(chosen), not failed, failed[0].reason if failed else "")


def simulated(plan: Plan) -> Recording:
    """The recording of a plan in virtual time."""
    backend = SimBackend(plan.topology)
    return asyncio.run(RunLoop(plan, backend, Recorder(plan, backend), SilentObserver()).run())


def judged(recording: Recording) -> Recovery:
    """What came of the job."""
    ranks = recording.programs[0].ranks
    cut_ns = recording.faults[0].fault.start_ns
    lengths = [(step.end_ns - step.begin_ns, step.end_ns) for rank in ranks for step in rank.steps]
    usual_ns = median(length for length, end_ns in lengths if end_ns <= cut_ns)
    failed: list[Any] = [(rank.end_ns, rank.reason) for rank in ranks if rank.state == "failed"]
    if failed:
        end_ns, reason = min(failed)
        return Recovery((end_ns - cut_ns) / NS_PER_S, False, reason)
    assert all(rank.state == "done" for rank in ranks), "the run was too short to see how it ends"
    return Recovery((max(length for length, _ in lengths) - usual_ns) / NS_PER_S, True)
