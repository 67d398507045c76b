"""Workloads as typed on a command line: the words of a scenario, and complaints that name the flag."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.programs.catalogue import PROGRAMS
from orchestrator.scenario.typed import workload

FABRIC = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)


def test_words_become_figures() -> None:
    program = workload(FABRIC, "p2p", ["h003", "h001"], ["message_bytes=64KiB", "gap=2us", "both_ways=true"])
    assert (program.kind, program.ranks) == ("p2p", (3, 1))
    assert program.figures == {"message_bytes": 65536, "gap_ns": 2000, "both_ways": True}
    assert workload(FABRIC, "incast", ["3"], []).ranks == (0, 1, 2)
    assert workload(FABRIC, "incast", ["h00[13]"], []).ranks == (1, 3)
    assert workload(FABRIC, "training", [], ["compute=1ms"]).figures == {"compute_ns": 1_000_000}
    trace = workload(FABRIC, "trace", [], ["messages=[{from: h001, to: 2, bytes: 1KiB}]"])
    assert trace.figures == {"messages": [[1, 2, 1024, 0]]}


@pytest.mark.parametrize("kind", sorted(set(PROGRAMS) - {"trace"}))
def test_every_kind_needs_no_more_than_its_name(kind: str) -> None:
    assert workload(FABRIC, kind, [], []).ranks == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("kind", "ranks", "settings", "complaint"),
    [
        ("incats", [], [], "incats: no such kind of work (nearest is incast)"),
        ("p2p", ["h000"], [], "NICs: ranks: 1 will not do (2 to 4096)"),
        ("p2p", ["h000", "h009"], [], "no such node"),
        ("p2p", ["9"], [], "9 ranks (the fabric has 4 NICs)"),
        ("p2p", ["x*"], [], "x* is the name of no NIC"),
        ("p2p", ["3"], [], "3 ranks cannot be put into pairs"),
        ("training", [], ["steps"], "--set steps: is no setting"),
        ("training", [], ["colour=red"], "--set colour=red: no figure of a training (there are steps, "),
        ("training", [], ["for=2us"], "--set for=2us: is said otherwise (--for)"),
        ("training", [], ["buckets=0"], "--set buckets=0: buckets: 0 will not do (wanted: a whole number (1 to 256))"),
        ("training", [], ["bucket_bytes=65"], "--set bucket_bytes=65: bucket_bytes: 65 is not a multiple of 4"),
        ("training", [], ["compute=20"], "--set compute=20: compute: 20 will not do (wanted: a length"),
        ("trace", [], [], "messages is missing"),
        ("trace", [], ["messages=nowhere.csv"], "nowhere.csv"),
    ],
)
def test_mistakes_name_the_flag(kind: str, ranks: list[str], settings: list[str], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        workload(FABRIC, kind, ranks, settings)
    assert complaint in str(refused.value)
