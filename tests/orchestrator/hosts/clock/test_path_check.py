"""What measured ways mean for a start: nothing, a warning, or a refusal with both hosts and both figures."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.clock.host_pairs import HostPairs
from orchestrator.hosts.clock.path_check import PAIRS_SHOWN, judge
from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import Site, Sites
from tests.orchestrator.running import SMALL

SITES = (Site("vm1", "10.0.0.1"), Site("vm2", "10.0.0.2"), Site("vm3", "10.0.0.3"))
FRAME_BYTES = 4096 + 132 + 24 + 28


def measured(mtu: int | None, *, cut: bool = True, sites: tuple[Site, ...] = SITES) -> tuple[Layout, HostPairs]:
    """All ways are alike; NICs on the first host, plane 0 on the second, plane 1 on the last."""
    others = {node: 1 + (node[1] == "1") * (len(sites) - 2) for node in SMALL.node_names() if node[0] == "p"}
    layout = Layout(replace(SMALL, mtu_bytes=4096), "none", Sites(sites, others), port_base=10_000)
    between = HostPairs([site.name for site in sites])
    for here, there in layout.host_pairs():
        report = {"peer": there, "life": "", "clock": None, "path": {"mtu": mtu, "cut": cut}}
        between.take(here, report | {"waited_ns": 0, "ran_ns": 0})
    return layout, between


def judged(layout: Layout, between: HostPairs) -> tuple[dict[tuple[int, int], int], list[str]]:
    warnings: list[str] = []
    return judge(layout, between, warnings.append), warnings


def test_frames_that_fit_need_nothing() -> None:
    layout, between = measured(9000)
    assert layout.frame_bytes == FRAME_BYTES
    assert judged(layout, between) == ({}, [])
    assert {link["path_mtu"] for link in layout.links_of("h000")} == {None}


def test_longer_ones_go_in_fragments_and_a_warning_names_what_would_fit() -> None:
    layout, between = measured(1500)
    layout.cut, [warning] = judged(layout, between)
    assert layout.cut == {(0, 1): 1500, (1, 0): 1500, (0, 2): 1500, (2, 0): 1500}
    assert warning == (
        f"frames of {FRAME_BYTES:,} bytes go in fragments, which costs pace, between vm1 and vm2, vm1 and vm3, where "
        "1,500 bytes pass in one piece: mtu_bytes: 1024 fits"
    )
    assert {link["path_mtu"] for link in layout.links_of("h000")} == {1500}
    assert PAIRS_SHOWN > 2


def test_a_way_that_loses_fragments_is_refused() -> None:
    what = f"hosts vm1 and vm2: from vm1 to vm2 pass 1,500 bytes, frames take {FRAME_BYTES:,}, and fragments of them"
    with pytest.raises(ConfigError, match=what):
        judged(*measured(1500, cut=False))
    sites = (SITES[0], replace(SITES[1], mtu=FRAME_BYTES), SITES[2])
    assert judged(*measured(FRAME_BYTES, cut=False, sites=sites)) == ({}, [])


def test_an_inventory_that_tells_more_than_passes_is_refused() -> None:
    sites = (SITES[0], replace(SITES[1], mtu=9000), replace(SITES[2], mtu=1500))
    with pytest.raises(ConfigError) as refused:
        judged(*measured(1500, sites=sites))
    assert str(refused.value) == (
        "hosts vm1 and vm2: the inventory tells an mtu of 9,000, from vm1 to vm2 pass 1,500 bytes "
        "(tell mtu: 1500, for which mtu_bytes: 1024 fits)"
    )


def test_a_way_that_nothing_comes_is_refused_with_address_and_port() -> None:
    with pytest.raises(ConfigError, match=r"no datagram from 10.0.0.1 arrives at 10.0.0.2, port 10\d\d\d"):
        judged(*measured(None))
