"""Workloads of processes: their figures, what is refused, and where they may run."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.programs.catalogue import PROGRAMS
from nicd.programs.program import Program
from orchestrator.scenario.process_kinds import (
    ALL_REDUCE,
    LINGER_RTTS,
    PROCESSES,
    check,
    linger_ns,
    of_processes,
    shape_of,
)


def program(**changed: Any) -> Program:
    fields: dict[str, Any] = {
        "name": "training", "kind": ALL_REDUCE, "number": 0, "ranks": tuple(range(8)), "begin_ns": 0, "seed": "x",
    }  # fmt: skip
    return Program(**fields | changed)


def test_no_nic_runs_what_is_a_process() -> None:
    assert not set(PROCESSES) & set(PROGRAMS)
    with pytest.raises(ConfigError, match="runs as processes, not inside NICs"):
        PROCESSES[ALL_REDUCE].part(program(), {}, 0)


def test_the_tensor_is_rounded_down_to_whole_chunks() -> None:
    assert shape_of(program()).elements == 4 << 20
    assert shape_of(program(figures={"tensor_bytes": 1 << 20, "buckets": 3})).elements == (1 << 18) // 24 * 24


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"figures": {"tensor_bytes": 64}}, "tensor_bytes"),
        ({"figures": {"tensor_bytes": 0}}, "tensor_bytes"),
        ({"figures": {"tensor_bytes": (1 << 30) + 1}}, "tensor_bytes"),
        ({"figures": {"buckets": 0}}, "buckets"),
        ({"figures": {"buckets": 5000}}, "buckets"),
        ({"figures": {"steps": 0}}, "steps"),
        ({"figures": {"colour": 1}}, "colour"),
        ({"ranks": (0,)}, "ranks"),
        ({"qps": 2}, "qps"),
        ({"profile": 1}, "profile"),
    ],
)
def test_what_will_not_do_is_named(changed: dict[str, Any], where: str) -> None:
    with pytest.raises(ConfigError) as told:
        check(program(**changed))
    assert told.value.where == f"program training.{where}"


def test_how_long_they_go_on() -> None:
    topology = Topology.demo()
    assert linger_ns(program(), topology) == LINGER_RTTS * topology.base_rtt_ns()
    assert linger_ns(program(figures={"linger_ns": 7}), topology) == 7


def test_the_first_of_processes_is_found() -> None:
    inside = program(kind="p2p", name="inside")
    assert of_processes((inside, program())) == program()
    assert of_processes((inside,)) is None
