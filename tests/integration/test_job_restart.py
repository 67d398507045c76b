"""A job that restarts on real daemons does what it does in virtual time: same instants, same bytes, same bill."""

from pathlib import Path

import pytest

from orchestrator.measures.job import bill
from orchestrator.scenario.resolve import load
from tests.support.corners import corners
from tests.support.runs import conducted

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SCENARIO = """
name: restart
system: {system}
fabric:
  {{planes: 1, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2, evs_per_qp: 8, reserve_evs_per_qp: 4, rate_bps: 25G}}
nominal_dilation: 1
length: 100ms
workload:
  - {{name: train, kind: training, ranks: all, steps: 9, buckets: 2, bucket_bytes: 16KiB, compute: 40us,
     checkpoint_every: 3, checkpoint: 50us, collective_timeout: 250us, restarts: 3, detect: 600us, reschedule: 800us,
     load: 700us, tries: 9, retry: 900us, gpu_hour_cents: 300}}
method:
  - {{name: dead, at: 350us, for: 2600us, fault: nic_crash, selector: {{nodes: h001}}}}
  - {{name: cut, at: 5300us, for: 900us, fault: link_down, selector: {{links: "h002~p0-t0-1"}}}}
"""


@pytest.mark.parametrize("system", corners(["mrc", "roce", "uet"], "roce"))
@pytest.mark.timeout(240)
async def test_a_job_restarts_alike_on_both_backends(system: str, tmp_path: Path) -> None:
    file = tmp_path / "restart.yaml"
    file.write_text(SCENARIO.format(system=system))
    plan = load(str(file))
    expected = await conducted(plan, "sim", tmp_path)
    seen = await conducted(plan, "udp", tmp_path / "run")
    assert (seen.ended, seen.lost) == ("complete", "")
    assert seen.trace_digest == expected.trace_digest != ""
    assert seen.events == expected.events
    assert any(event["kind"] == "rank_change" for event in seen.events)
    assert bill(seen.programs[0], seen.end_ns) == bill(expected.programs[0], expected.end_ns)
    job = seen.programs[0].job
    assert job is not None
    assert job.attempts[0].reason == "its NIC died"
    assert len(job.attempts) >= 2
    assert seen.programs[0].done
    assert sum(rank.bytes_wrong for rank in seen.programs[0].ranks) == 0
