"""Answers and the packets they mean, as tshark links them: both ways, through retransmissions, hops and a bound."""

from pathlib import Path

import pytest

from mrcfabric.wire.templates import ControlTemplate, DataTemplate
from tests.deploy.wireshark.test_mrc import write
from tests.support.packets import DSCP, control_template
from tests.support.tshark import fields
from tests.vectors import wire as golden

pytestmark = pytest.mark.integration

LINKS = ("mrc.response_to", "mrc.response_in")
EVS = (0x1111_0001, 0x2222_0002)


def data(psn: int, ev: int = EVS[0], qp: int = golden.QP) -> bytearray:
    """From A to B."""
    template = DataTemplate(golden.SOURCE, golden.DESTINATION, qp, dscp=DSCP)
    return template.build(0xCA, psn, 0, 0, 0x1000, 7, 4, ev, golden.CONTAINER, b"four")


def answers() -> ControlTemplate:
    """What B tells A."""
    return ControlTemplate(golden.DESTINATION, golden.SOURCE, golden.SOURCE_QP, golden.QP, dscp=DSCP)


def sack(cack: int, psn: int, ev: int = EVS[0], probe_id: int | None = None) -> bytearray:
    """From B to A: `psn` is the packet that caused it."""
    return sacked(answers(), cack, psn, ev, probe_id)


def sacked(control: ControlTemplate, cack: int, psn: int, ev: int, probe_id: int | None = None) -> bytearray:
    return control.sack(9, golden.CONTAINER, ev, 0, psn - cack, cack, 1, 0, 0, 0, 0, probe_id=probe_id)


def linked(tmp_path: Path, packets: list[bytearray], *arguments: str) -> list[tuple[list[str], list[str]]]:
    rows = fields(write(tmp_path / "x.pcapng", packets), LINKS, "-2", *arguments)
    return [(row["mrc.response_to"], row["mrc.response_in"]) for row in rows]


def test_a_sack_and_the_packet_that_caused_it_name_each_other(tmp_path: Path) -> None:
    assert linked(tmp_path, [data(5), data(6), sack(5, 6), sack(5, 5)]) == [
        ([], ["4"]), ([], ["3"]), (["2"], []), (["1"], []),
    ]  # fmt: skip


def test_a_sack_behind_its_cumulative_psn_goes_back_over_zero(tmp_path: Path) -> None:
    assert linked(tmp_path, [data(0xFFFFFF), sack(2, -1)]) == [([], ["2"]), (["1"], [])]


def test_of_a_packet_that_was_sent_again_the_ev_says_which_is_meant(tmp_path: Path) -> None:
    packets = [data(5), data(5, EVS[1]), sack(5, 5, EVS[0]), sack(5, 5, EVS[1])]
    assert [row[0] for row in linked(tmp_path, packets)[2:]] == [["1"], ["2"]]


def test_of_several_hops_the_last_is_linked_and_all_know_their_answer(tmp_path: Path) -> None:
    packets = [data(5), data(5), data(5), sack(5, 5), sack(5, 5)]
    assert linked(tmp_path, packets) == [([], ["4"])] * 3 + [(["3"], [])] * 2


def test_a_nack_and_its_packet(tmp_path: Path) -> None:
    nack = answers().nack(9, golden.CONTAINER, 1, EVS[0], 5, 0)
    assert linked(tmp_path, [data(5), nack]) == [([], ["2"]), (["1"], [])]


def test_probes_and_endpoint_requests_know_their_answers(tmp_path: Path) -> None:
    control = control_template()
    probe = control.probe(EVS[0], golden.CONTAINER, 77, 4)
    request = control.endpoint_request(EVS[0], golden.CONTAINER, 9, 1, 0, 4)
    response = answers().endpoint_response(EVS[1], golden.CONTAINER, 9, 1, 4)
    packets = [probe, request, response, sack(5, 5, EVS[0], probe_id=77)]
    assert linked(tmp_path, packets) == [([], ["4"]), ([], ["3"]), (["2"], []), (["1"], [])]


def test_what_is_of_others_is_not_linked(tmp_path: Path) -> None:
    same_way = sacked(control_template(), 5, 5, EVS[0])
    other = data(5, EVS[1], qp=golden.QP + 1)
    assert linked(tmp_path, [other, sack(5, 5), same_way, sack(5, 9), sack(5, 5, probe_id=5)]) == [([], [])] * 5


def test_what_is_remembered_is_bounded_and_can_be_none(tmp_path: Path) -> None:
    packets = [data(psn) for psn in range(1, 9)] + [sack(8, psn) for psn in range(1, 9)]
    few = linked(tmp_path, packets, "-o", "mrc.links:4")
    assert [row[0] for row in few[8:]] == [[], [], [], [], ["5"], ["6"], ["7"], ["8"]]
    assert linked(tmp_path, packets, "-o", "mrc.links:0") == [([], [])] * 16


def test_one_pass_links_answers_already(tmp_path: Path) -> None:
    rows = fields(write(tmp_path / "x.pcapng", [data(5), sack(5, 5)]), LINKS)
    assert [row["mrc.response_to"] for row in rows] == [[], ["1"]]
