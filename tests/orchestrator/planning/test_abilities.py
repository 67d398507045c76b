"""What only MRC NICs can do is refused in one line elsewhere."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.planning.abilities import has_evs, need_mrc, transport_of

DEMO = Topology.demo()


@pytest.mark.parametrize("topology", [DEMO, replace(DEMO, nic={"transport": "mrc"})])
def test_mrc_can(topology: Topology) -> None:
    assert transport_of(topology) == "mrc"
    assert has_evs(topology)
    need_mrc(topology, "h000", "only MRC has EVs", "nothing")


def test_rc_cannot() -> None:
    topology = replace(DEMO, nic={"transport": "rc"})
    assert transport_of(topology) == "rc"
    assert not has_evs(topology)
    with pytest.raises(ConfigError) as caught:
        need_mrc(topology, "h000", "only MRC has EVs", "look elsewhere")
    assert str(caught.value) == (
        "h000: only MRC has EVs, and the NICs of this fabric run nic.transport rc (look elsewhere)"
    )
