"""The shape of a switch's counters."""

from mrcfabric.egress import Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.rng import Rng
from switchd.core.settings import SwitchConfig
from switchd.core.stats import DROP_REASONS, switch_counters


def test_ports_directions_sums_and_peaks():
    egress = tuple(Egress(EgressConfig(), port, Rng("test", port)) for port in range(2))
    for port, count in zip(egress, (1, 2), strict=True):
        for _ in range(count):
            port.offer(5, bytearray(100), False, [])
    egress[1].run(5, [])
    egress[0].drops["loss"] = egress[1].drops["loss"] = 4
    usids = {7: {"packets": 3, "bytes": 300}}
    config = SwitchConfig(
        "s", 1, 2, {}, (EgressConfig(), EgressConfig()), towards=("nic", "t1"), peers=("h000", "p0-t1-0")
    )
    counters = switch_counters(12, dict.fromkeys(DROP_REASONS, 1), egress, config, usids)
    assert counters["usids"] == usids
    assert counters["received"] == 12
    assert [port["towards"] for port in counters["ports"].values()] == ["nic", "t1"]
    assert [port["peer"] for port in counters["ports"].values()] == ["h000", "p0-t1-0"]
    assert [port["up"] for port in counters["ports"].values()] == [1, 1]
    assert [port["packets"] for port in counters["ports"].values()] == [0, 1]
    assert (counters["packets"], counters["bytes"]) == (1, 100)
    assert (counters["data_bytes"], counters["data_bytes_peak"]) == (200, 200)
    assert (counters["drops"]["loss"], counters["drops"]["short"], counters["drops"]["trim_full"]) == (8, 1, 0)
