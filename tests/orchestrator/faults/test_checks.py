"""Whether a fault makes sense: targets, windows and figures, each mistake by its name."""

import pytest

from mrcfabric.brake import SHARE_PPM_MIN, Brake
from mrcfabric.control_cut import ControlCuts
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.rng import PPM
from mrcfabric.topology import Topology
from orchestrator.faults.checks import PULSES_MAX, WINDOWS_MAX, check, figures_of, percent_least, ways
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.faults.kinds import KINDS

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4)
T0, T1 = "p1-t0-0", "p1-t1-1"
UPLINK = f"{T0}~{T1}"


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (once("link_down", "h000~p1-t0-1", at_ns=1), "no such link"),
        (once("nic_port_down", "h001:2", at_ns=1), r"h001 port 2: no such port \(ports are planes, 0 to 1\)"),
        (once("nic_port_down", f"{T0}:0", at_ns=1), "is a switch where a NIC is wanted"),
        (once("t0_down", T1, at_ns=1), "is no T0"),
        (once("switch_crash", "h000", at_ns=1), "is a NIC where a switch is wanted"),
        (once("plane_down", "7", at_ns=1), "no such plane"),
        (once("loss", UPLINK, at_ns=1, share_ppm=2_000_000), "loss.share_ppm: 2000000 will not do"),
        (once("loss", UPLINK, at_ns=1, delay_ns=5), "loss.delay_ns: no such figure"),
        (once("rate_limit", UPLINK, at_ns=1), "rate_limit.rate_bps: is missing"),
        (once("rate_limit", UPLINK, at_ns=1, rate_bps=10**11), "is no limit"),
        (once("black_hole", UPLINK, at_ns=1), "swallows nothing"),
        (once("ecn_misconfigured", T1, at_ns=1), "changes nothing"),
        (
            once("ecn_misconfigured", T1, at_ns=1, min_bytes=9, max_bytes=3),
            "is above ecn_misconfigured.max_bytes, which is 3",
        ),
        (once("switch_reboot", T1, at_ns=1), "ends by itself"),
        (once("switch_crash", T1, at_ns=100, until_ns=200), "frames on their way need that long"),
        (once("link_dwn", UPLINK, at_ns=1), "no such kind of fault"),
        (once("link_down", UPLINK, at_ns=1, title="two\nlines"), "fault.title: .*one line of up to 120 printable"),
        (once("link_down", UPLINK, at_ns=1, title="x" * 121), "fault.title: .*one line of up to 120 printable"),
        (once("link_down", at_ns=1), "is about nothing"),
        (once("link_down", UPLINK, UPLINK, at_ns=1), "names a target twice"),
        (once("link_down", UPLINK, at_ns=9, until_ns=9), "bites from 9 to 9"),
    ],
)
def test_mistakes_are_named(fault: Fault, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        check(TOPOLOGY, fault)


def windows(*edges: tuple[int, int]) -> Fault:
    return Fault("f", "flap", (UPLINK,), tuple(Window(*edge, {}) for edge in edges))


def test_windows_are_in_order_and_not_too_many() -> None:
    check(TOPOLOGY, windows((1, 5), (5, 9)))
    with pytest.raises(ConfigError, match="out of order at 4 ns"):
        check(TOPOLOGY, windows((1, 5), (4, 9)))
    with pytest.raises(ConfigError, match="has 0 windows"):
        check(TOPOLOGY, windows())
    many = [(2 * turn, 2 * turn + 1) for turn in range(WINDOWS_MAX + 1)]
    check(TOPOLOGY, windows(*many[:-1]))
    with pytest.raises(ConfigError, match=f"has {WINDOWS_MAX + 1} windows"):
        check(TOPOLOGY, windows(*many))
    # A daemon takes fewer of what it is told of all at once; nobody is to find that out in the midst of a run.
    for kind, targets, parts, told in (
        ("control_cut", ("h000",), (), ControlCuts().tell),
        ("host_slow", ("vm1",), ("h000",), lambda windows, _now_ns: Brake().tell([[*one, PPM] for one in windows])),
    ):
        fault = Fault("many", kind, targets, windows(*many).windows, parts=parts)
        with pytest.raises(ConfigError, match=f"has {WINDOWS_MAX + 1} windows .1 to ") as refused:
            check(TOPOLOGY, fault)
        most = int(refused.value.hint.removeprefix("1 to "))
        told([one[:2] for one in fault.windows[:most]], 0)
        with pytest.raises(RefusedError, match=f"{most + 1} are too many"):
            told([one[:2] for one in fault.windows[: most + 1]], 0)
    targets = tuple(f"{one}{way}{other}" for one, other in ((T0, T1), ("p0-t0-0", "p0-t1-0")) for way in "~>")
    big = Fault("f", "flap", (*targets, *(f"{T0}~h00{n}" for n in (0, 1))), windows(*many[:-1]).windows)
    assert len(big.targets) * WINDOWS_MAX <= PULSES_MAX
    check(TOPOLOGY, big)


def test_the_least_share_of_a_figure() -> None:
    assert percent_least("share_ppm") == 0.0001
    assert percent_least("cpu_ppm") == SHARE_PPM_MIN * 100 / 1_000_000


def test_every_window_of_a_ramp_is_checked() -> None:
    ramp = Fault("f", "loss", (UPLINK,), (Window(1, 2, {"share_ppm": 5}), Window(2, 3, {"share_ppm": -1})))
    with pytest.raises(ConfigError, match="-1 will not do"):
        check(TOPOLOGY, ramp)


def test_figures_not_given_are_at_their_defaults() -> None:
    assert figures_of(TOPOLOGY, "loss", {"share_ppm": 5}) == {"share_ppm": 5, "burst_packets": 1}
    assert figures_of(TOPOLOGY, "black_hole", {"usid": T1})["usid"] == TOPOLOGY.own_usid(T1)
    for name, kind in KINDS.items():
        if not any(row.required for row in kind.figures.values()) and name not in (
            "black_hole",
            "ecn_misconfigured",
            "nth_packet",
            "wrong_headroom",
        ):
            assert figures_of(TOPOLOGY, name, {}) == {figure: row.default for figure, row in kind.figures.items()}


def test_a_cable_has_two_ways_and_each_can_be_named() -> None:
    both = ways(TOPOLOGY, UPLINK)
    assert both == ((T0, 3), (T1, 0))
    assert ways(TOPOLOGY, f"{T1}~{T0}") == both
    assert (ways(TOPOLOGY, f"{T0}>{T1}"), ways(TOPOLOGY, f"{T1}>{T0}")) == (both[:1], both[1:])
