"""Lines of the event log: node, kind, cause and section of everything that is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mrcfabric.pause_spells import PauseBegun, PauseEnded
from nicd.core.events import Completion, EvTransition, PeerPortChange, PortChange, QpChange, Retransmit
from orchestrator.fabric.journal import Journal
from orchestrator.live.event_lines import KINDS, end_of, forgotten, of_agent, of_nic, sections_of, text, untold
from switchd.core.events import EcmpMember, WatchdogFired, WatchdogRestored
from switchd.core.events_routing import FibRepaired, FibWritten, RouteDamped, SessionChange

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schema/event_log.json").read_text())


@pytest.mark.parametrize(
    ("event", "cause", "section"),
    [
        (EvTransition(5, 7, 9, 1, 2, "good", "assumed_bad", "gap", "MRC 1.0 11.2"), "gap", "MRC 1.0 11.2"),
        (Retransmit(5, 7, "trim", 3), "trim", "MRC 1.0 3"),
        (QpChange(5, 7, "rtr", "rts", "modified"), "modified", "MRC 1.0 3"),
        (Completion(5, 7, 1, "flushed", "write", 10, None), "flushed", "MRC 1.0 3"),
        (PortChange(5, 1, False), "carrier", "arXiv 2605.04333 2"),
        (PeerPortChange(5, 3, 1, False), "port_status_update", "MRC 1.0 2.6"),
    ],
)
def test_every_event_of_a_nic_has_a_cause_and_a_section(event: Any, cause: str, section: str) -> None:
    line = {**of_nic("h001", 2.0, {"n": 12, **event.record()}), "n": 1}
    assert (line["node"], line["kind"], line["cause"], line["section"]) == (
        "h001", event.record()["kind"], cause, section
    )  # fmt: skip
    assert (line["at_ns"], line["wall_s"]) == (5, 2.0)
    Draft202012Validator(SCHEMA).validate(line)


@pytest.mark.parametrize(
    ("event", "section"),
    [
        (Retransmit(5, 7, "trim", 3), "UEC PDS"), (QpChange(5, 7, "rts", "error", "retry_exceeded"), "UEC PDS"),
        (Completion(5, 7, 1, "retry_exceeded", "write", 10, None), "UEC SES"), (PortChange(5, 1, False), ""),
    ],
)  # fmt: skip
def test_events_of_uet_do_not_name_sections_of_mrc(event: Any, section: str) -> None:
    line = {**of_nic("h001", 2.0, {"n": 12, **event.record()}, sections_of("uet")), "n": 1}
    assert line["section"] == section
    Draft202012Validator(SCHEMA).validate(line)
    assert "MRC" not in text(line)


@pytest.mark.parametrize(
    ("event", "section"),
    [
        (Retransmit(5, 7, "timeout", 3), "IBTA 9.7"),
        (QpChange(5, 7, "rts", "error", "retry_exceeded"), "IBTA 10.3.1"),
        (Completion(5, 7, 1, "retry_exceeded", "write", 10, None), "IBTA 9.7"),
        (PortChange(5, 1, False), ""),
    ],
)
def test_events_of_rc_do_not_name_sections_of_mrc(event: Any, section: str) -> None:
    line = {**of_nic("h001", 2.0, {"n": 12, **event.record()}, sections_of("rc")), "n": 1}
    assert line["section"] == section
    Draft202012Validator(SCHEMA).validate(line)
    shown = text(line)
    assert "MRC" not in shown
    if isinstance(event, QpChange):
        assert "qp_change         retry_exceeded  qpn=7 source=rts target=error  [IBTA 10.3.1]" in shown


@pytest.mark.parametrize(
    ("event", "cause", "section"),
    [
        (PauseBegun(5, 1, 3, 2, 4), "paused by p0-t1-0", "IEEE 802.1Q 36"),
        (PauseEnded(5, 1, 3, 2, 4, 2, 9), "no more pauses by p0-t1-0", "IEEE 802.1Q 36"),
        (WatchdogFired(5, 1, 3, 1_000), "paused too long by p0-t1-0", ""),
        (WatchdogRestored(5, 1, 3), "no more pauses by p0-t1-0", ""),
        (EcmpMember(5, 1, False, 3), "carrier", "RFC 2992"),
        (SessionChange(5, 1, "bgp", False, "hold_time"), "hold_time", "RFC 4271 8.2"),
        (SessionChange(5, 1, "bfd", True, ""), "", "RFC 5880 6.8"),
        (FibWritten(5, "fd6d::/64", (4, 5), (4,), 9, 4), "", ""),
        (FibRepaired(5, 1, False, 9, 4), "", ""),
        (RouteDamped(5, 1, "fd6d::/64", True, 3_000), "", "RFC 2439 4.2"),
    ],
)
@pytest.mark.parametrize("transport", ["mrc", "rc"])
def test_events_of_switches_name_who_pauses(event: Any, cause: str, section: str, transport: str) -> None:
    told = {"n": 12, **event.record()}
    line = {**of_nic("p0-t0-0", 2.0, told, sections_of(transport), ("h000", "p0-t1-0")), "n": 1}
    assert (line["kind"], line["cause"], line["section"]) == (event.record()["kind"], cause, section)
    assert line.get("peer", "p0-t1-0") == "p0-t1-0"
    assert line["kind"] in KINDS
    Draft202012Validator(SCHEMA).validate(line)
    assert cause in text(line)


def test_notes_of_the_agent_are_lines() -> None:
    journal = Journal()
    journal.note("fault", 700, id="f1", fault="loss", of="h000~p0-t0-0", until_ns=None)
    journal.note("died", 800, node="p0-t0-0", how="SIGKILL", planned=True)
    journal.note("unstopped", 900, nic="h002", program="loop", why="it is busy")
    fault, died, unstopped = ({**of_agent(note), "n": 1} for note in journal.after(0))
    assert (fault["node"], fault["cause"], fault["id"], fault["section"]) == ("", "loss", "f1", "")
    assert (died["node"], died["cause"], died["planned"]) == ("p0-t0-0", "SIGKILL", True)
    assert (unstopped["node"], unstopped["cause"]) == ("h002", "it is busy")
    for line in (fault, died, unstopped):
        Draft202012Validator(SCHEMA).validate(line)


def test_what_is_over_is_a_line_with_its_cause() -> None:
    journal = Journal()
    journal.note("fault", 700, id="f1", fault="loss", of="h000~p0-t0-0", until_ns=900)
    journal.note("fault", 700, id="f2", fault="loss", of="h000~p0-t0-0", until_ns=None)
    journal.note("healed", 800, id="f2", fault="loss", why="its time to live was over")
    bounded, lasting, healed = journal.after(0)
    ended = end_of(bounded)
    assert ended is not None
    assert (ended["at_ns"], ended["kind"], ended["cause"]) == (900, "ended", "its time was over")
    assert end_of(lasting) is None
    line = of_agent(healed)
    assert (line["cause"], line["fault"]) == ("its time to live was over", "loss")
    silence = untold("h001", 800, 2.0, 500)
    assert (silence["at_ns"], silence["since_ns"], silence["cause"]) == (800, 500, "it died before it was asked")
    for one in (ended, line, silence):
        Draft202012Validator(SCHEMA).validate({**one, "n": 1})


def test_the_schema_knows_the_kinds() -> None:
    assert tuple(SCHEMA["properties"]["kind"]["enum"]) == KINDS


def test_a_line_for_people() -> None:
    event = EvTransition(1_065_485, 7, 9, 1, 2, "good", "assumed_bad", "gap", "MRC 1.0 11.2")
    shown = text(of_nic("h001", 2.0, event.record()))
    assert shown.split() == [
        "1,065.485", "us", "h001", "ev_transition", "gap", "qpn=7", "ev=9", "plane=1", "path=2", "source=good",
        "target=assumed_bad", "[MRC", "1.0", "11.2]",
    ]  # fmt: skip
    assert "count=4" in text(forgotten("h001", 5, 2.0, 4))
