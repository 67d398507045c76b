"""Nodes written short, and that nothing is lost by it."""

import re
from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.naming import nic_name
from mrcfabric.topology import Topology
from orchestrator.hosts.placement.spans import runs_by_host, shortened, spans

SMALL = Topology(planes=3, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=3, reserve_evs_per_qp=0)


def written_out(words: list[str]) -> list[str]:
    """The nodes that spans mean."""
    found = []
    for word in words:
        first, _, last = word.partition("..")
        last = last or first
        if whole := re.fullmatch(r"p(\d)", first):
            for plane in range(int(whole[1]), int(last.removeprefix("p")) + 1):
                found += [f"p{plane}-t0-{index}" for index in range(2)] + [f"p{plane}-t1-{index}" for index in range(3)]
        elif first.startswith("h"):
            found += [nic_name(number) for number in range(int(first[1:]), int(last[1:]) + 1)]
        else:
            stem, begin = first.rsplit("-", 1)
            end = last.rsplit("-", 1)[-1]
            found += [f"{stem}-{index}" for index in range(int(begin), int(end) + 1)]
    return found


@given(st.lists(st.integers(0, 2), min_size=SMALL.nodes, max_size=SMALL.nodes))
@settings(max_examples=60, deadline=None)
def test_spans_mean_every_node_of_a_host_and_no_other(hosts: list[int]) -> None:
    for host, runs in enumerate(runs_by_host(array("H", hosts), 3)):
        mine = [SMALL.node_name(number) for number, there in enumerate(hosts) if there == host]
        assert written_out(spans(SMALL, runs)) == mine


def test_words() -> None:
    assert spans(SMALL, [(0, SMALL.nodes)]) == ["h000..h003", "p0..p2"]
    assert spans(SMALL, [(1, 2), (4, 9)]) == ["h001", "p0"]
    assert spans(SMALL, [(5, 8)]) == ["p0-t0-1", "p0-t1-0..1"]
    assert spans(SMALL, [(8, 15)]) == ["p0-t1-2", "p1", "p2-t0-0"]


def test_a_long_line_is_cut_and_says_so() -> None:
    assert shortened([], 3) == "nothing"
    assert shortened(["a", "b"], 2) == "a b"
    assert shortened(["a", "b", "c", "d"], 2) == "a b and 2 more"
