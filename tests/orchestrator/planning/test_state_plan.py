"""The plan of a NIC's state: sums of what `nicd.core.mrc.footprint` gives."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from nicd.compose import nic_settings
from nicd.core.mrc.footprint import slot_bytes
from orchestrator.planning.plan import render
from orchestrator.planning.state_plan import EVS, MPR_UNITS, PSNS, SRAM_MIB, state_table

DEMO = Topology.demo()
MIB = 1 << 20


def test_totals_are_sums() -> None:
    table = state_table(DEMO, 100, 5)
    chip = table["qp_on_chip_bytes"]
    assert chip + table["qp_on_host_bytes"] == sum(table["qp_bytes"].values())
    others = 5 * sum(table["peer_bytes"].values()) + sum(table["nic_bytes"].values())
    assert table["total_on_chip_bytes"] == 100 * chip + others
    assert (table["sram"], table["resident_qps"], table["spilled_qps"]) == ("unlimited", 100, 0)


def test_qps_that_a_chip_holds() -> None:
    slot = slot_bytes(nic_settings(DEMO), DEMO.planes)
    small = Topology.from_dict({**DEMO.to_dict(), "nic": {"sram_bytes": 10 * slot}})
    table = state_table(small, 64)
    assert (table["slot_bytes"], table["resident_qps"], table["spilled_qps"]) == (slot, 10, 54)
    rows = state_table(DEMO, 10_000)["resident_by_sram"]
    assert [row["sram_mib"] for row in rows] == list(SRAM_MIB)
    for row in rows:
        assert row["resident"] == row["sram_mib"] * MIB // slot
        assert row["resident"] + row["spilled"] == 10_000


def test_evs_cost_little_and_the_window_much() -> None:
    rows = state_table(DEMO, 1)["qp_bytes_by_evs_and_mpr"]
    assert [row["evs"] for row in rows] == list(EVS)
    columns = [f"mpr_{units * 128}" for units in MPR_UNITS]
    for row in rows:
        sizes = [row[column] for column in columns]
        assert sizes == sorted(sizes)
    # One more EV is 32 bits of value and 3 of state, 4 bytes for its probation and 5 for when its SKIP ends.
    assert 64 * 13 <= rows[2][columns[0]] - rows[1][columns[0]] <= 64 * 14
    # One more PSN is a bit, a record in flight and, if it is a message of its own, another one.
    assert rows[0][columns[2]] - rows[0][columns[1]] >= 24 * 128 * 43


@pytest.mark.parametrize(("recovery", "grows"), [("go_back_n", False), ("selective", True)])
def test_an_rc_context_is_small_and_grows_with_what_selective_recovery_tracks(recovery: str, grows: bool) -> None:
    topology = Topology.from_dict({**DEMO.to_dict(), "nic": {"transport": "rc", "rc_recovery": recovery}})
    table = state_table(topology, 100)
    assert "peer_bytes" not in table
    own = sum(table["nic_bytes"].values())
    assert table["total_on_chip_bytes"] == 100 * table["qp_on_chip_bytes"] + own
    rows = {row["recovery"]: [row[f"psns_{psns}"] for psns in PSNS] for row in table["qp_bytes_by_psns"]}
    assert len(set(rows["go_back_n"])) == 1
    assert rows["selective"] == sorted(set(rows["selective"]))
    assert (table["qp_on_chip_bytes"] > 512) == grows
    slots = [row["sram_mib"] * MIB // row["resident"] for row in table["resident_by_sram"] if row["spilled"]]
    assert all(slot >= 512 for slot in slots)
    assert "recovery" in render({"name": "demo", "digest": "0", "state": table})


@pytest.mark.parametrize(("qps", "peers"), [(0, None), (1 << 21, None), (4, 5), (4, 0)])
def test_numbers_that_make_no_nic_are_refused(qps: int, peers: int | None) -> None:
    with pytest.raises(ConfigError, match=r"--qps|--peers"):
        state_table(DEMO, qps, peers)


def test_it_can_be_read() -> None:
    text = render({"name": "demo", "digest": "0", "state": state_table(DEMO, 64)})
    assert "sram_mib" in text
    assert "qp_on_chip_bytes" in text
