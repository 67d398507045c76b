"""A port with a witness does what a port does, and says what followed packets find there."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.choice import Choice
from mrcfabric.egress import CONTROL, DATA, Egress
from mrcfabric.egress_config import EgressConfig
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import WRITE_MIDDLE
from mrcfabric.witness import Witness
from tests.support.packets import data_template
from tests.vectors import wire as golden

CONFIG = EgressConfig(
    rate_bps=8_000_000_000, delay_ns=1000, data_bytes_max=2000, control_bytes_max=1000, overhead_bytes=0, ecn=True,
    ecn_min_bytes=400, ecn_max_bytes=401, trim=True, trim_bytes=128,
)  # fmt: skip
"""One byte takes a nanosecond."""


def packet(psn: int, size: int = 400) -> bytearray:
    template = data_template()
    empty = len(template.build(WRITE_MIDDLE, psn, 1, 1, 0, 1, 4, golden.EV, golden.CONTAINER, b""))
    return template.build(WRITE_MIDDLE, psn, 1, 1, 0, 1, 4, golden.EV, golden.CONTAINER, bytes(size - empty))


def watched(config: EgressConfig = CONFIG) -> tuple[Egress, Witness]:
    egress, witness = Egress(config, 3, Rng("port")), Witness(Choice(), Dscp())
    egress.set_witness(witness)
    return egress, witness


def told(witness: Witness, step: str) -> list[dict[str, Any]]:
    return [one for one in witness.after(0, 1000)["statements"] if one["step"] == step]


def test_a_witness_comes_and_goes_while_packets_wait() -> None:
    egress, witness = Egress(CONFIG, 3, Rng("port")), Witness(Choice(), Dscp())
    out: list[Transmit] = []
    for psn, stands in enumerate((None, witness, witness, None)):
        egress.set_witness(stands)
        egress.offer(0, packet(psn), DATA, out)
        egress.offer(0, packet(psn + 10, 200), CONTROL, out)
    egress.run(600, out)
    egress.set_witness(witness)
    egress.run(10_000, out)
    assert len(out) == 8
    offers = told(witness, "offer")
    assert [one["packet"]["psn"] for one in offers] == [1, 11, 2, 12]
    # Four packets of the control class went before anybody looked.
    assert [one["of"] for one in told(witness, "depart")] == [offers[0]["n"], offers[2]["n"]]


def test_what_a_packet_finds_and_when_it_goes() -> None:
    egress, witness = watched()
    out: list[Transmit] = []
    for psn, at_ns in ((1, 0), (2, 0), (3, 100)):
        egress.run(at_ns - 1, out)
        egress.offer(at_ns, packet(psn), DATA, out)
        egress.run(at_ns, out)
    egress.offer(150, packet(4), CONTROL, out)
    egress.run(10_000, out)
    offers = told(witness, "offer")
    assert [(one["at_ns"], one["data_bytes"], one["control_bytes"], one["wire_ns"]) for one in offers] == [
        (0, 0, 0, 0), (0, 0, 0, 400), (100, 400, 0, 300), (150, 800, 0, 250)
    ]  # fmt: skip
    departs = {one["of"]: (one["at_ns"], one["arrival_ns"], one["marked"]) for one in told(witness, "depart")}
    order = [offers[place]["n"] for place in (0, 3, 1, 2)]
    assert [departs[number][:2] for number in order] == [(0, 1400), (400, 1800), (800, 2200), (1200, 2600)]
    assert not any(marked for _, _, marked in departs.values()), "no more than 400 bytes are left behind"


def test_a_mark_is_told_where_it_is_made() -> None:
    egress, witness = watched()
    out: list[Transmit] = []
    for psn in range(4):
        egress.offer(0, packet(psn), DATA, out)
    egress.run(10_000, out)
    assert [one["marked"] for one in told(witness, "depart")] == [True, True, False, False]


def test_trimmed_and_refused() -> None:
    egress, witness = watched()
    out: list[Transmit] = []
    for psn in range(14):
        egress.offer(0, packet(psn), DATA, out)
    # Seven times 128 bytes fit into the control queue.
    verdicts = [one["verdict"] for one in told(witness, "offer")]
    assert verdicts == ["queued"] * 5 + ["trimmed"] * 7 + ["trim_full"] * 2
    egress.run(100_000, out)
    assert len(told(witness, "depart")) == 12


def test_a_fault_of_the_link_is_told() -> None:
    egress, witness = watched()
    out: list[Transmit] = []
    egress.set_impairment(0, Impairment(up=False), out)
    egress.offer(0, packet(1), DATA, out)
    egress.run(500, out)
    egress.set_impairment(501, Impairment(delay_ns=50), out)
    egress.offer(600, packet(2), DATA, out)
    egress.run(10_000, out)
    first, second = told(witness, "carry")
    assert (first["at_ns"], first["lost"]) == (0, "link_down")
    assert (second["at_ns"], second["touched"]) == (600, ["delayed"])


def test_each_packet_has_what_happened_to_it_and_not_to_the_next() -> None:
    egress, witness = watched()
    out: list[Transmit] = []
    egress.set_impairment(0, Impairment(delay_ns=50, duplication_ppm=PPM, corruption_ppm=PPM), out)
    egress.offer(0, packet(1), DATA, out)
    egress.run(10, out)
    egress.set_impairment(500, Impairment(reordering_ppm=PPM, reordering_ns=70), out)
    egress.offer(600, packet(2), DATA, out)
    egress.run(10_000, out)
    assert [one["touched"] for one in told(witness, "carry")] == [["corrupted", "duplicated", "delayed"], ["reordered"]]
    assert egress.touched == {"corrupted": 1, "duplicated": 1, "reordered": 1, "delayed": 1, "retried": 0}


OFFERS = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 1), st.sampled_from([200, 400, 700])), max_size=30)
FAULTS = st.sampled_from([HEALTHY, Impairment(up=False), Impairment(loss_ppm=300_000, duplication_ppm=300_000),
                          Impairment(reordering_ppm=400_000, reordering_ns=3000, jitter_ns=200)])  # fmt: skip


@given(OFFERS, FAULTS, st.integers(0, 5000))
def test_the_port_does_what_it_does_alone(offers: list[tuple[int, int, int]], fault: Impairment, from_ns: int) -> None:
    alone, (seen, witness) = Egress(CONFIG, 3, Rng("port")), watched()
    outs: list[list[Transmit]] = [[], []]
    for egress, out in zip((alone, seen), outs, strict=True):
        now = 0
        for psn, (gap, control, size) in enumerate(offers):
            if now < from_ns <= now + gap:
                egress.set_impairment(from_ns, fault, out)
            now += gap
            egress.offer(now, packet(psn, size), control, out)
        egress.run(now + 100_000, out)
    assert outs[0] == outs[1]
    assert alone.counters() == seen.counters()
    assert len(told(witness, "offer")) == len(offers)
    assert len(told(witness, "depart")) == alone.packets
