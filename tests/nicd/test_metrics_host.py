"""The metrics of programs come out of what a real host counts."""

import pytest

from mrcfabric.metrics import families, text
from nicd.metrics_host import HOST_DEFINITIONS
from nicd.programs.record import RankRecord
from tests.support.counters import samples_of


def row(name: str, state: str, *steps_ns: int) -> dict[str, object]:
    record = RankRecord(0)
    record.state = state
    for length_ns in steps_ns:
        record.steps.append((0, 0, length_ns))
        record.step_times.add(length_ns)
    record.bytes_sent, record.bytes_verified, record.bytes_wrong = 100, 50, 1
    return {"name": name, "kind": "ring", **record.counters()}


def samples(*rows: dict[str, object]) -> dict[str, float]:
    return samples_of(text(families(HOST_DEFINITIONS, "demo", "h000", {"programs": list(rows)})))


def test_programs_by_name_and_state() -> None:
    found = samples(row("a", "done", 5_000, 2_000_000_000), row("b", "running"))
    node = 'fabric="demo",kind="ring"'
    own = f'{{{node},node="h000",plane="",program="a"}}'
    assert found[f"mrc_nic_program_steps_total{own}"] == 2
    assert found[f"mrc_nic_program_step_seconds_sum{own}"] == pytest.approx(2.000005)
    assert found[f"mrc_nic_program_step_seconds_count{own}"] == 2
    buckets = [number for name, number in found.items() if "step_seconds_bucket" in name and 'program="a"' in name]
    assert (buckets[0], buckets[1], buckets[-2], buckets[-1]) == (0, 1, 1, 2)
    assert found[f"mrc_nic_program_wrong_bytes_total{own}"] == 1
    assert found['mrc_nic_programs{fabric="demo",node="h000",plane="",state="running"}'] == 1
    assert found['mrc_nic_programs{fabric="demo",node="h000",plane="",state="failed"}'] == 0


def test_a_core_alone_has_none() -> None:
    assert text(families(HOST_DEFINITIONS, "demo", "h000", {})) == b""
