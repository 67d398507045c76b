"""What faults do to links and nodes, as somebody sees it."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.live.fault_overlay import FaultOverlay, OverlayMaker

SMALL = Topology(name="small", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)
CABLE = "p0-t0-0~p0-t1-1"


def seen(*faults: Fault, at_ns: int = 50) -> FaultOverlay:
    return OverlayMaker(SMALL).overlay(faults, at_ns)


@pytest.mark.parametrize(
    ("kind", "figures", "state"),
    [
        ("link_down", {}, "down"),
        ("loss", {"share_ppm": 10}, "impaired"),
        ("loss", {"share_ppm": 1_000_000}, "down"),
        ("gray", {}, "impaired"),
        ("delay", {"delay_ns": 5}, "impaired"),
        ("rate_limit", {"rate_bps": 1_000_000_000}, "impaired"),
    ],
)
@pytest.mark.parametrize("target", [CABLE, CABLE.replace("~", ">"), "p0-t1-1>p0-t0-0"])
def test_a_link_is_what_its_worse_direction_is(kind: str, figures: dict[str, Any], state: str, target: str) -> None:
    found = seen(once(kind, target, at_ns=10, fault_id="f1", **figures))
    assert found.states == {CABLE: state}
    assert found.links == {CABLE: ("f1",)}
    assert found.nodes == {}


def test_a_fault_that_has_not_begun_or_is_over_does_nothing() -> None:
    early, late = once("link_down", CABLE, at_ns=51), once("link_down", CABLE, at_ns=10, until_ns=50)
    assert seen(early, late) == FaultOverlay({}, {}, {})


def test_a_flap_is_in_force_while_its_link_is_up() -> None:
    flap = Fault("f1", "flap", (CABLE,), (Window(10, 20, {}), Window(30, 40, {}), Window(50, 60, {})))
    overlays = OverlayMaker(SMALL)
    for at_ns, states in ((15, {CABLE: "down"}), (25, {CABLE: "up"}), (35, {CABLE: "down"})):
        found = overlays.overlay([flap], at_ns)
        assert {link: found.states.get(link, "up") for link in found.links} == states
        assert found.links == {CABLE: ("f1",)}


def test_the_worst_of_several_faults_counts_and_all_are_named() -> None:
    found = seen(once("link_down", CABLE, at_ns=1, fault_id="a"), once("loss", CABLE, at_ns=2, fault_id="b"))
    assert found.states == {CABLE: "down"}
    assert found.links == {CABLE: ("a", "b")}


def test_a_fault_of_a_switch_stands_at_it_and_at_its_links() -> None:
    found = seen(once("switch_freeze", "p1-t1-0", at_ns=1, fault_id="f1"))
    assert found.nodes == {"p1-t1-0": ("f1",)}
    assert found.links == {"p1-t0-0~p1-t1-0": ("f1",), "p1-t0-1~p1-t1-0": ("f1",)}
    assert found.states == {}


def test_a_port_of_a_nic_is_the_nics_and_a_cut_cable() -> None:
    found = seen(once("nic_port_down", "h002:1", at_ns=1, fault_id="f1"))
    assert found.nodes == {"h002": ("f1",)}
    assert found.states == {"h002~p1-t0-1": "down"}


def test_a_plane_is_its_cables_to_nics() -> None:
    found = seen(once("plane_down", "1", at_ns=1, fault_id="f1"))
    assert found.nodes == {}
    assert set(found.states) == {f"{nic}~p1-t0-{number // 2}" for number, nic in enumerate(SMALL.nic_names())}


def test_a_fault_that_goes_on_is_worked_out_once() -> None:
    overlays, fault = OverlayMaker(SMALL), once("loss", CABLE, at_ns=1, fault_id="f1")
    first, second = overlays.overlay([fault], 5), overlays.overlay([fault], 6)
    assert first == second
    assert overlays.overlay([], 7) == FaultOverlay({}, {}, {})
    other = once("loss", "h000~p0-t0-0", at_ns=1, fault_id="f1")
    assert overlays.overlay([other], 8).states == {"h000~p0-t0-0": "impaired"}
