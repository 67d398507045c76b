"""Limits below the bandwidth-delay product: which are named, and that a run reaches what is foretold."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from mrcfabric.topology import Topology
from orchestrator.cli.main import build_app
from orchestrator.planning.window_limits import binding, line_bps, rtt_ns, table, warnings, window_limits
from studies.flows import START_NS, Flow
from studies.trial import Trial
from tests.support.corners import corners

SMALL = Topology(
    name="small", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=2
)
LONG_LINKS_NS = 50_000
MESSAGE = 1 << 26


def reached_bps(topology: Topology, qps: int = 1) -> float:
    """Goodput of one flow across T1s in virtual time, after its windows have settled."""
    begin, end = (START_NS + rtts * rtt_ns(topology) for rtts in (5, 11))
    count = 1 + line_bps(topology) * end // (8 * 10**9 * MESSAGE * qps)
    flow = Flow(0, topology.nics_per_t0, MESSAGE, count, qps)
    outcome = Trial(topology, (flow,), deadline_ns=end + 1, window_ns=(begin, end)).run()
    assert outcome.nics["qp_errors"] == 0
    return outcome.flows[0].window_bytes * 8e9 / (end - begin)


def test_the_demonstration_is_bound_by_nothing() -> None:
    assert warnings(Topology.demo()) == []
    assert [limit.setting for limit in window_limits(Topology.demo())] == ["nic.mpr_units"]


def test_long_links_at_400g_are_bound_by_the_tracking_window() -> None:
    topology = replace(Topology.demo(), rate_bps=400_000_000_000, link_delay_ns=LONG_LINKS_NS)
    (line,) = warnings(topology)
    assert line == (
        "nic.mpr_units = 32 lets a QP have 16.8 MB under way, below the bandwidth-delay product of 154 MB "
        "(8 x 400 Gb/s, a round trip of 400.36 us): at most 335.2 Gb/s of 3075 Gb/s of payload; "
        "with 255, the most there is, it takes 2 QPs side by side"
    )


@pytest.mark.parametrize(("units", "bound"), [(1, True), (40, True), (91, True), (92, False), (255, False)])
def test_the_warning_names_the_least_that_would_do(units: int, bound: bool) -> None:
    topology = replace(SMALL, rate_bps=1_000_000_000_000, nic={"mpr_units": units}, link_delay_ns=LONG_LINKS_NS)
    assert bool(binding(topology)) == bound
    if bound:
        assert "nic.mpr_units = 92 would do" in warnings(topology)[0]


@pytest.mark.parametrize(
    ("nic", "setting"),
    [
        ({"max_cwnd_bytes": 300_000}, "nic.max_cwnd_bytes"),
        ({"congestion": "fixed", "cwnd_bytes": 300_000}, "nic.cwnd_bytes"),
        ({"dynamic_mpr": True, "ooo_packets_max": 300}, "nic.ooo_packets_max"),
        ({"dynamic_mpr": True, "bitmap_psns": 200}, "nic.bitmap_psns"),
        ({"mpr_units": 1}, "nic.mpr_units"),
    ],
)
def test_every_limit_is_named_and_a_run_reaches_what_it_comes_to(nic: dict[str, object], setting: str) -> None:
    topology = replace(SMALL, link_delay_ns=20_000, nic=nic)
    (limit,) = binding(topology)
    assert limit.setting == setting
    assert reached_bps(topology) == pytest.approx(limit.goodput_bps, rel=0.05)


@pytest.mark.parametrize("rate_bps", corners([100_000_000_000, 400_000_000_000], 400_000_000_000))
@pytest.mark.parametrize(("delay_ns", "units", "qps"), [(LONG_LINKS_NS, 4, 1), (LONG_LINKS_NS, 2, 2), (20_000, 2, 1)])
def test_a_run_reaches_what_the_tracking_window_comes_to(rate_bps: int, delay_ns: int, units: int, qps: int) -> None:
    topology = replace(SMALL, rate_bps=rate_bps, link_delay_ns=delay_ns, nic={"mpr_units": units})
    (limit,) = binding(topology)
    assert reached_bps(topology, qps) == pytest.approx(min(line_bps(topology), qps * limit.goodput_bps), rel=0.05)


def test_what_binds_nobody_lets_a_run_reach_the_line() -> None:
    topology = replace(SMALL, link_delay_ns=20_000, nic={"mpr_units": 5})
    assert binding(topology) == []
    assert reached_bps(topology) == pytest.approx(line_bps(topology), rel=0.02)


def test_limits_of_messages_are_sizes() -> None:
    rows = table(Topology.demo())
    least = rows["nic.work_requests_max"]["line_rate_from_message_bytes"]
    assert (least - 1) * 4096 < rows["bdp_payload_bytes"] <= least * 4096


def test_commands_say_it_in_a_line_and_go_on() -> None:
    long = ["plan", "--rate", "400G", "--link-delay", "50us"]
    told = CliRunner().invoke(build_app(), long)
    assert told.exit_code == 0
    assert [line for line in told.stderr.splitlines() if line.startswith("warning: nic.mpr_units = 32")]
    assert "warning" not in CliRunner().invoke(build_app(), ["plan"]).output


@pytest.mark.parametrize("window", [1 << 17, 1 << 19])
def test_a_window_of_rc_is_compared_with_the_one_port_of_its_qp(window: int) -> None:
    nic = {"transport": "rc", "rc_window_bytes": window}
    topology = replace(SMALL, link_delay_ns=20_000, nic=nic, switch={"forwarding": "ecmp"})
    (limit,) = binding(topology)
    assert limit.setting == "nic.rc_window_bytes"
    (line,) = warnings(topology)
    assert f"nic.rc_window_bytes = {window} lets a QP have" in line
    assert "(1 x " in line
    assert reached_bps(topology) == pytest.approx(limit.goodput_bps, rel=0.05)


def test_the_defaults_of_rc_bind_nobody() -> None:
    topology = replace(Topology.demo(), nic={"transport": "rc"}, switch={"forwarding": "ecmp"})
    assert [limit.setting for limit in window_limits(topology)] == ["nic.rc_psns_max"]
    assert binding(topology) == []
    rows = table(topology)
    assert rows["line_payload_bps"] == line_bps(topology)
    assert "nic.max_wimm" not in rows
