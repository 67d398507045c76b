"""Whom a NIC cannot reach any more because of its deny list."""

import dataclasses

import pytest

from nicd.core.mrc.deny_list import Entry
from orchestrator.planning.cut_off import cut_off
from tests.support.fabrics import SMALL

TOPOLOGY = dataclasses.replace(SMALL, planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
PLANES: list[Entry] = [(0, None, None), (1, None, None)]
T1S: list[Entry] = [(plane, path, None) for plane in range(2) for path in range(2)]


@pytest.mark.parametrize(
    ("entries", "peers"),
    [
        ([], []),
        (PLANES[:1], []),
        (PLANES, ["h001", "h002", "h003"]),
        (T1S[:3], []),
        (T1S, ["h002", "h003"]),
        ([(0, None, 2), (1, 0, 2)], []),
        ([(0, None, 2), (1, 0, 2), (1, 1, 2)], ["h002"]),
        ([(0, None, None), (1, 0, 1)], ["h001"]),
        ([*PLANES, *PLANES], ["h001", "h002", "h003"]),
    ],
)
def test_a_peer_is_cut_off_when_no_path_in_any_plane_is_left(entries: list[Entry], peers: list[str]) -> None:
    assert cut_off(TOPOLOGY, 0, entries) == peers
