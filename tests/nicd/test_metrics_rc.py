"""The metrics of RC come out of a real NIC's counters, and only of a NIC with that transport."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.metrics import families, text
from mrcfabric.topology import Topology
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.metrics import render
from nicd.metrics_rc import RC_DEFINITIONS
from tests.nicd.core.rc.pipe import Pipe, Seen
from tests.support.counters import PROCESS, samples_of

_LABELS = 'fabric="demo",node="h000",plane=""'


def core_of(**nic: Any) -> dict[str, Any]:
    topology = replace(Topology.demo(), nic=nic, switch={"forwarding": "ecmp"})
    return Nic(nic_config(topology, "h000")).counters()


def samples(core: dict[str, Any]) -> dict[str, float]:
    return samples_of(text(families(RC_DEFINITIONS, "demo", "h000", {"core": core})))


def test_a_nic_with_mrc_has_none() -> None:
    core = Nic(nic_config(Topology.demo(), "h000")).counters()
    assert samples(core) == {}
    assert not [name for name in samples_of(render("demo", "h000", PROCESS | {"core": core})) if "_rc_" in name]


def test_a_fresh_nic_with_rc_has_all_of_them() -> None:
    found = samples(core_of(transport="rc"))
    assert set(found.values()) == {0}
    assert {name.partition("{")[0] for name in found} == {one.exposed_name for one in RC_DEFINITIONS}


def test_what_it_shares_with_mrc_keeps_its_names() -> None:
    found = samples_of(render("demo", "h000", PROCESS | {"core": core_of(transport="rc")}))
    for name in ("mrc_nic_data_packets_total", "mrc_nic_cwnd_bytes", "mrc_nic_qp_errors_total"):
        assert found[f"{name}{{{_LABELS}}}"] == 0


def test_no_counter_of_rc_is_left_out() -> None:
    core = core_of(transport="rc")
    read: set[str] = set()

    class Spy(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            read.add(key)
            return super().__getitem__(key)

    core["rc"] = Spy(core["rc"])
    for definition in RC_DEFINITIONS:
        list(definition.read({"core": core}))
    # Bytes sent again are counted for every transport, by `nicd.metrics`.
    assert core["rc"].keys() - read == {"retransmitted_bytes"}


@pytest.mark.parametrize("lost", [3, 17, 40])
def test_a_lost_packet_shows_what_it_costs(lost: int) -> None:
    seen_data: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        seen_data.extend([seen.psn] * seen.is_data)
        return not seen.is_data or len(seen_data) != lost

    pipe = Pipe(fate)
    pipe.write(64 * 4096)
    pipe.run(1_000_000)
    core = pipe.nics[0].counters()
    assert len(pipe.completions()) == 1
    sender, receiver = samples(core), samples(pipe.nics[1].counters())
    again = sum(core["retransmits"].values())
    assert again > 1
    shared = samples_of(render("demo", "h000", PROCESS | {"core": core}))
    assert shared[f"mrc_nic_retransmitted_bytes_total{{{_LABELS}}}"] == again * 4096
    assert sender[f"mrc_nic_rc_passes_total{{{_LABELS}}}"] == 1
    assert sender[f'mrc_nic_rc_naks_total{{direction="in",{_LABELS}}}'] == 1
    assert receiver[f'mrc_nic_rc_naks_total{{direction="out",{_LABELS}}}'] == 1
    assert receiver[f"mrc_nic_rc_out_of_sequence_packets_total{{{_LABELS}}}"] == again - 1
    assert sender[f"mrc_nic_rc_rate_bytes_per_second_mean{{{_LABELS}}}"] == pipe.rate_bps / 8
