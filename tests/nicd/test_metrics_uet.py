"""The metrics of UET come out of a real NIC's counters, and only of a NIC with that transport."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.metrics import families, text
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.trim import trim
from nicd.compose import nic_config
from nicd.core.nic import Nic
from nicd.core.uet.uet_stats import NACK_LABELS
from nicd.metrics import render
from nicd.metrics_uet import UET_DEFINITIONS
from tests.nicd.core.uet.pipe import Pipe, Seen
from tests.support.counters import PROCESS, samples_of

_LABELS = 'fabric="demo",node="h000",plane=""'


def core_of(**nic: Any) -> dict[str, Any]:
    topology = replace(Topology.demo(), nic=nic, switch={"forwarding": "ecmp"})
    return Nic(nic_config(topology, "h000")).counters()


def samples(core: dict[str, Any]) -> dict[str, float]:
    return samples_of(text(families(UET_DEFINITIONS, "demo", "h000", {"core": core})))


def test_nics_with_other_transports_have_none() -> None:
    for nic in ({}, {"transport": "rc"}):
        core = core_of(**nic)
        assert samples(core) == {}
        assert not [name for name in samples_of(render("demo", "h000", PROCESS | {"core": core})) if "_uet_" in name]


@pytest.mark.parametrize("control", ["nscc", "rccc", "both"])
def test_a_fresh_nic_has_all_of_them(control: str) -> None:
    found = samples(core_of(transport="uet", uet_cc=control))
    assert set(found.values()) == {0}
    assert {name.partition("{")[0] for name in found} == {one.exposed_name for one in UET_DEFINITIONS}


def test_what_it_shares_with_mrc_keeps_its_names() -> None:
    found = samples_of(render("demo", "h000", PROCESS | {"core": core_of(transport="uet")}))
    for name in ("mrc_nic_data_packets_total", "mrc_nic_cwnd_bytes", "mrc_nic_qp_errors_total"):
        assert found[f"{name}{{{_LABELS}}}"] == 0


def test_no_counter_of_uet_is_left_out() -> None:
    core = core_of(transport="uet")
    read: set[str] = set()

    class Spy(dict[str, int]):
        def __getitem__(self, key: str) -> int:
            read.add(key)
            return super().__getitem__(key)

    core["uet"] = Spy(core["uet"])
    for definition in UET_DEFINITIONS:
        list(definition.read({"core": core}))
    assert core["uet"].keys() == read


@pytest.mark.parametrize("share", [3, 7, 20])
def test_trimmed_packets_show_as_nacks_and_as_resting_entropies(share: int) -> None:
    def fate(at_ns: int, side: int, seen: Seen) -> bool | bytearray:
        first = seen.is_data and not seen.flags & 0x10
        return trim(seen.packet, 256, Dscp().trimmed) if first and seen.psn % share == 1 else True

    pipe = Pipe(fate, evs=64, uet_path="bitmap")
    pipe.write(64 * 4096)
    pipe.run(60_000)
    core = pipe.nics[0].counters()
    sender, receiver = samples(core), samples(pipe.nics[1].counters())
    trims = len([one for one in pipe.data() if not one.flags & 0x10 and one.psn % share == 1])
    assert trims > 1
    label = NACK_LABELS[1]
    assert receiver[f'mrc_nic_uet_nacks_total{{code="{label}",direction="out",{_LABELS}}}'] == trims
    assert sender[f'mrc_nic_uet_nacks_total{{code="{label}",direction="in",{_LABELS}}}'] == trims
    assert sender[f'mrc_nic_uet_entropies{{{_LABELS},state="drawn"}}'] == 64
    assert 0 < sender[f'mrc_nic_uet_entropies{{{_LABELS},state="resting"}}'] <= trims
    shared = samples_of(render("demo", "h000", PROCESS | {"core": core}))
    assert shared[f"mrc_nic_retransmitted_bytes_total{{{_LABELS}}}"] == trims * 4096
