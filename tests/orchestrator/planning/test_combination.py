"""What goes together, and what is refused with the setting, the reason and a way out."""

import dataclasses
from itertools import product
from typing import Any

import pytest

from mrcfabric import bundles
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from nicd.core.settings import NicSettings
from orchestrator.planning.combination import DEFAULTS, check_combination, departures
from orchestrator.planning.plan import check
from switchd.core.settings import SwitchSettings

RC = {"transport": "rc"}
UET = {"transport": "uet"}
ECMP = {"forwarding": "ecmp"}
LID = {**RC, "rc_path": "lid", "cc": "none"}
LFT = {"forwarding": "lft", "lossless": "credits"}


def topology(nic: dict[str, Any] | None = None, switch: dict[str, Any] | None = None, **dscp: int) -> Topology:
    return Topology(nic=nic or {}, switch=switch or {}, dscp=dscp)


GOOD: tuple[Topology, ...] = (
    topology(),
    topology(switch={"trim": False}),
    topology(switch={"lossless": "pfc", "pfc_classes": "0,1"}),
    topology(switch={"lossless": "pfc"}, trimmable=24, trimmable_retx=25, no_trim=26),
    topology(RC, ECMP),
    topology(RC, {**ECMP, "routing": "bgp"}),
    topology(UET, {**ECMP, "routing": "bgp"}),
    topology({**RC, "rc_path": "pinned"}),
    topology({**RC, "cc": "none"}, {**ECMP, "ecn": False}),
    topology(RC, {**ECMP, "trim": False, "trim_last_hop": False}),
    topology(RC, {**ECMP, "lossless": "pfc"}),
    topology({**RC, "rc_path": "pinned"}, {"lossless": "pfc", "pfc_classes": "3,4"}),
    topology({**RC, "rc_data_dscp": 34}, {**ECMP, "lossless": "pfc", "pfc_classes": " 4 "}),
    topology({**RC, "rc_data_dscp": 8}, {**ECMP, "trim": False, "trim_last_hop": False}),
    topology({"cc": "none"}),
    topology(LID, LFT),
    topology({**LID, "lid_lmc": 2, "apm": True}, {**LFT, "vls": 4, "adaptive": "packet"}),
    topology({**RC, "cc": "none"}, {**ECMP, "lossless": "pfc", "class_strict": "3,6"}),
    topology(RC, {**ECMP, "class_strict": "3,6"}),
    topology(UET, ECMP),
    topology({**UET, "uet_cc": "both", "uet_mode": "rod"}, {**ECMP, "trim": False, "trim_last_hop": False}),
    topology(UET, {**ECMP, "lossless": "pfc", "pfc_classes": "0,1"}),
    topology(RC, {**ECMP, "lossless": "pfc", "class_strict": "none", "class_weights": "1,1,1,9,1,1,3,1"}),
)


@pytest.mark.parametrize("good", GOOD, ids=range(len(GOOD)))
def test_these_go_together(good: Topology) -> None:
    check_combination(good)


BAD: tuple[tuple[Topology, str, str, str], ...] = (
    (topology(switch={"routing": "bgp"}), "switch.routing", "bgp fills the tables of", "switch.forwarding: ecmp"),
    (topology(RC, {**ECMP, "routing": "bgp", "ecmp_failover": True}), "switch.ecmp_failover", "stand", "static"),
    (topology(None, ECMP), "switch.forwarding", "name their path by uSIDs", "nic.transport: rc"),
    (topology(UET), "nic.transport", "knows nothing else", "switch.forwarding: ecmp"),
    (topology(UET, {"forwarding": "usid"}), "switch.forwarding", "knows nothing else", "switch.forwarding: ecmp"),
    (topology({**UET, "cc": "dcqcn"}, ECMP), "nic.cc", "uet has a congestion control of its own", "nic.transport: rc"),
    (topology(UET, {**ECMP, "lossless": "pfc"}), "switch.pfc_classes", "class 0, which is dropped", '"0,1"'),
    (topology(RC), "nic.transport", "knows nothing else", "nic.rc_path: pinned"),
    (topology(RC, {"forwarding": "usid"}), "switch.forwarding", "knows nothing else", "switch.forwarding: ecmp"),
    (topology({**RC, "rc_path": "pinned"}, ECMP), "nic.rc_path", "does not read", "switch.forwarding: usid"),
    (topology(RC, {**ECMP, "trim": True}), "switch.trim", "does not understand trimmed", "switch.trim: false"),
    (topology(RC, {**ECMP, "trim_last_hop": True}), "switch.trim_last_hop", "does not understand", "false"),
    (topology({**RC, "rc_data_dscp": 4}, ECMP), "nic.rc_data_dscp", "4 is dscp.trimmable", "another code point"),
    (topology({**RC, "rc_data_dscp": 46}, ECMP), "nic.rc_data_dscp", "46 is dscp.control", "another code point"),
    (topology(LID), "nic.rc_path", "of which switch.forwarding usid is no part", "switch.forwarding: lft"),
    (topology(LID, {**LFT, "lossless": "pfc"}), "switch.lossless", "is no part", "switch.lossless: credits"),
    (topology({**LID, "rc_path": "ecmp"}, LFT), "nic.rc_path", "is no part", "nic.rc_path: lid"),
    (topology(switch=LFT), "switch.forwarding", "nic.transport mrc is no part", "nic.transport: rc"),
    (topology({**LID, "rc_recovery": "selective"}, LFT), "nic.rc_recovery", "RoCE's", "go_back_n"),
    (
        topology({"transport": "rc", "rc_recovery": "out_of_order"}, {"forwarding": "ecmp"}),
        "nic.rc_recovery",
        "InfiniBand",
        "selective",
    ),
    (topology({**LID, "cc": "dcqcn"}, LFT), "nic.cc", "notifications", "nic.cc: none"),
    (topology({"cc": "dcqcn"}), "nic.cc", "a congestion control of its own", "nic.transport: rc"),
    (topology(RC, {**ECMP, "ecn": False}), "switch.ecn", "by marks alone", "nic.cc: none"),
    (
        topology(RC, {**ECMP, "lossless": "pfc", "class_strict": "3,6"}),
        "switch.class_strict",
        "class 3 of nic.rc_data_dscp is strict",
        "nic.cc: none",
    ),
    (topology(switch={"lossless": "pfc"}), "switch.pfc_classes", "class 0, which is dropped", '"0,1"'),
    (topology(RC, {**ECMP, "lossless": "pfc", "pfc_classes": "4"}), "switch.pfc_classes", "class 3, which", '"3"'),
    (topology(switch={"lossless": "pfc", "pfc_classes": "0"}), "switch.pfc_classes", "dscp.trimmable_retx", '"0,1"'),
)


@pytest.mark.parametrize(("bad", "where", "what", "hint"), BAD, ids=range(len(BAD)))
def test_these_do_not(bad: Topology, where: str, what: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_combination(bad)
    assert caught.value.where == where
    assert what in caught.value.what
    assert hint in caught.value.hint


def test_of_transport_and_path_and_forwarding_four_go_and_what_the_hint_says_would_do() -> None:
    legal = set()
    for transport, path, forwarding in product(("mrc", "rc", "uet"), ("ecmp", "pinned"), ("usid", "ecmp")):
        try:
            check_combination(topology({"transport": transport, "rc_path": path}, {"forwarding": forwarding}))
        except ConfigError:
            continue
        legal.add((transport, path if transport == "rc" else "", forwarding))
    assert legal == {("mrc", "", "usid"), ("rc", "ecmp", "ecmp"), ("rc", "pinned", "usid"), ("uet", "", "ecmp")}


def test_defaults_are_those_of_the_cores() -> None:
    cores = {"nic": NicSettings, "switch": SwitchSettings}
    theirs = {f"{name}.{one.name}": one.default for name, core in cores.items() for one in dataclasses.fields(core)}
    assert {key: theirs[key] for key in DEFAULTS if key in theirs} == {
        key: value for key, value in DEFAULTS.items() if key in theirs
    }


def test_it_is_part_of_checking_a_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Topology] = []
    monkeypatch.setattr("orchestrator.planning.plan.check_combination", asked.append)
    check(Topology.demo())
    assert asked == [Topology.demo()]


def test_a_fabric_that_departs_from_its_system_is_told_setting_by_setting() -> None:
    for name in bundles.names():
        assert departures(with_system(Topology.demo(), name)) == []
    own = topology({"cc": "none", "qps_max": 7}, {"ecn": False})
    assert departures(own) == []
    assert departures(with_system(own, "roce-no-pfc")) == [
        "system roce-no-pfc has nic.cc dcqcn; here it is none",
        "system roce-no-pfc has switch.ecn true; here it is false",
    ]
    assert departures(dataclasses.replace(own, system="mine")) == []
