"""A seed of the second series is a case: legal, reproducible, of every system and with every variation."""

import functools
import json

from mrcfabric import bundles
from nicd.core.settings_rc import RcKnobs
from nicd.core.settings_uet import UetKnobs
from orchestrator.planning.plan import check
from swarm.case import SYSTEMS, Case
from swarm.systems.breakage import ALL_KINDS, HASH_KINDS, OF_EVS, PAUSE_KINDS
from swarm.systems.draw import draw
from switchd.core.settings_forwarding import ForwardingKnobs
from switchd.core.settings_lossless import LosslessKnobs

LEFT_ALONE = {"pfc_cable_metres", "transport", "rc_data_dscp", "buffer_bytes"}
"""Knobs that need not be among those drawn: the first two have no effect by themselves here, others are always set."""

OF_THEIR_OWN = {"ib", "ib-adaptive"}
"""`swarm.credits` draws these."""


@functools.cache
def cases() -> list[Case]:
    """Not when the module is imported, which every process of a test run does."""
    return [draw(seed) for seed in range(160)]


def test_the_same_seed_is_the_same_case() -> None:
    assert [draw(seed).to_dict() for seed in range(6)] == [case.to_dict() for case in cases()[:6]]


def test_every_case_is_legal_and_small() -> None:
    for case in cases():
        check(case.topology)
        assert case.series == SYSTEMS
        assert 1 <= len(case.flows) <= 8
        evs = case.topology.nic.get("transport", "mrc") == "mrc"
        paused = case.topology.switch.get("lossless") == "pfc"
        kinds = {fault.kind for fault in case.faults}
        assert kinds <= ALL_KINDS.keys()
        assert evs or not kinds & OF_EVS
        assert paused or not kinds & PAUSE_KINDS.keys()


def test_a_case_survives_being_stored() -> None:
    for case in cases()[:20]:
        assert Case.from_dict(json.loads(json.dumps(case.to_dict()))) == case


def test_every_system_and_every_kind_of_pause_breakage_is_drawn() -> None:
    assert {case.topology.system for case in cases()} == set(bundles.names()) - OF_THEIR_OWN
    assert PAUSE_KINDS.keys() | HASH_KINDS.keys() <= {fault.kind for case in cases() for fault in case.faults}


def test_every_combination_that_matters_is_drawn() -> None:
    drawn = {
        (nic.get("transport", "mrc"), nic.get("rc_recovery", ""), switch.get("forwarding", "usid"),
         switch.get("lossless", "off"))
        for nic, switch in ((case.topology.nic, case.topology.switch) for case in cases())
    }  # fmt: skip
    assert ("mrc", "", "usid", "pfc") in drawn
    for recovery in ("go_back_n", "go_back_0", "selective"):
        assert {(forwarding, lossless) for _, rule, forwarding, lossless in drawn if rule == recovery} >= {
            ("ecmp", "off"), ("ecmp", "pfc"),
        }  # fmt: skip
    assert any(forwarding == "usid" and transport == "rc" for transport, _, forwarding, _ in drawn), "pinned paths"


def test_every_knob_of_these_systems_is_drawn() -> None:
    """Also one that is added tomorrow."""
    nic = {key for case in cases() for key in case.topology.nic}
    switch = {key for case in cases() for key in case.topology.switch}
    wanted = (RcKnobs.__dataclass_fields__.keys() | UetKnobs.__dataclass_fields__.keys()) - nic
    wanted |= (ForwardingKnobs.__dataclass_fields__.keys() | LosslessKnobs.__dataclass_fields__.keys()) - switch
    assert wanted <= LEFT_ALONE
