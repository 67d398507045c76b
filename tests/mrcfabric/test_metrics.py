"""Definitions, families, text and the reference document."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.utils import floatToGoString

from mrcfabric import metrics
from mrcfabric.metrics import (
    Definition,
    Spread,
    by_key,
    each,
    families,
    families_of_host,
    markdown,
    merged,
    text,
    value,
)

DEFINITIONS = (
    Definition("sent_packets", "counter", "packets", "Packets sent.", "How many?", value("core", "sent")),
    Definition("lag_seconds", "gauge", "seconds", "How far behind.", "Late?", value("core", "lag_ns", scale=1e-9)),
    Definition("drops", "counter", "packets", "Drops, by reason.", "Why?", by_key("core", "drops"), ("reason",)),
    Definition("frames", "counter", "frames", "Both.", "?", each(a=("core", "sent"), b=("core", "lag_ns")), ("way",)),
    Definition("up", "gauge", "0 or 1", "Per plane.", "Up?", lambda _counters: [("3", (), 1)], per_plane=True),
)
WAITS = Definition(
    "wait_seconds", "histogram", "seconds", "Waits.", "How long?",
    lambda _counters: [(None, ("x",), Spread((1, 2), 7, 9.5))], ("what",), bounds=(0.5, 1.0),
)  # fmt: skip
COUNTERS = {"core": {"sent": 7, "lag_ns": 1500, "drops": {"loss": 2, "link_down": 0}}}


def test_families_of_a_switch() -> None:
    found = text_string_to_metric_families(text(families(DEFINITIONS, "demo", "p2-t0-1", COUNTERS)).decode())
    samples = {
        (sample.name, *(item for item in sorted(sample.labels.items()) if item[0] not in ("fabric", "node"))):
        sample.value
        for family in found for sample in family.samples
    }  # fmt: skip
    assert samples == {
        ("mrc_sent_packets_total", ("plane", "2")): 7,
        ("mrc_lag_seconds", ("plane", "2")): 1.5e-6,
        ("mrc_drops_total", ("plane", "2"), ("reason", "loss")): 2,
        ("mrc_drops_total", ("plane", "2"), ("reason", "link_down")): 0,
        ("mrc_frames_total", ("plane", "2"), ("way", "a")): 7,
        ("mrc_frames_total", ("plane", "2"), ("way", "b")): 1500,
        ("mrc_up", ("plane", "3")): 1,
    }


def test_a_nic_is_in_every_plane() -> None:
    (family, *_) = families(DEFINITIONS, "demo", "h000", COUNTERS)
    assert family.lines == ['mrc_sent_packets_total{fabric="demo",node="h000",plane=""} 7.0']


def test_a_histogram_adds_up_to_each_bound() -> None:
    lines = text(families([WAITS], "demo", "p2-t0-1", COUNTERS)).decode().splitlines()
    labels = 'fabric="demo",node="p2-t0-1",plane="2",what="x"'
    for bound, number in (("0.5", 1.0), ("1.0", 3.0), ("+Inf", 7.0)):
        name = f'mrc_wait_seconds_bucket{{fabric="demo",le="{bound}",node="p2-t0-1",plane="2",what="x"}}'
        assert f"{name} {number}" in lines
    assert f"mrc_wait_seconds_sum{{{labels}}} 9.5" in lines
    assert f"mrc_wait_seconds_count{{{labels}}} 7.0" in lines
    assert WAITS.series == ("mrc_wait_seconds_bucket", "mrc_wait_seconds_sum", "mrc_wait_seconds_count")


def test_what_is_no_nodes_has_the_fabric_alone() -> None:
    (family, *_) = families_of_host(DEFINITIONS, "demo", COUNTERS)
    assert family.lines == ['mrc_sent_packets_total{fabric="demo"} 7.0']


def test_a_family_without_a_series_is_not_shown() -> None:
    nothing = Definition("nothing", "gauge", "things", "Nothing.", "Is there anything?", lambda _counters: [])
    assert text(families([nothing], "demo", "h000", COUNTERS)) == b""


def test_the_reference_has_a_row_per_metric() -> None:
    document = markdown({"All": DEFINITIONS})
    assert "| `mrc_drops_total` | counter | packets | reason | Drops, by reason. | Why? |" in document
    assert "| `mrc_up` | gauge | 0 or 1 | plane | Per plane. | Up? |" in document
    assert document.count("\n| `mrc_") == len(DEFINITIONS)


class _Fixed(Collector):
    def __init__(self, found: list[Metric]) -> None:
        self.found = found

    def collect(self) -> Iterable[Metric]:
        return self.found


def _of_library(definition: Definition, fabric: str, counters: dict[str, Any]) -> Metric:
    """The family of h000 as the library is told of it, label by label."""
    names = ["fabric", "plane", "node", *definition.labels]
    kinds: dict[str, Any] = {
        "counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily
    }  # fmt: skip
    family = kinds[definition.kind](f"mrc_{definition.name}", definition.help, labels=names)
    for plane, labels, number in definition.read(counters):
        values = [fabric, plane or "", "h000", *labels]
        if isinstance(number, Spread):
            bounds = [floatToGoString(bound) for bound in definition.bounds]
            told = [*zip(bounds, accumulate(number.counts), strict=True), ("+Inf", number.number)]
            family.add_metric(values, told, number.total)
        else:
            family.add_metric(values, number)
    return family


ODD = ('a "quoted" \\ one\nof two lines', "with a 100 % sign", "%s", "", '"', "\\", "\n", "grün", "loss")
NUMBERS = (0, 1, -7, 999_999, 1_000_000, -1_000_000, 12_345_678, 10**18, True, 0.1, 1e-9, 2.5e7, float("inf"))


@given(st.floats() | st.integers(-(10**24), 10**24))
def test_a_number_is_spelled_as_by_the_library(number: float) -> None:
    assert metrics._shown(number) == floatToGoString(number)


def test_the_text_says_what_it_is_as_the_library_does() -> None:
    assert metrics.CONTENT_TYPE == CONTENT_TYPE_LATEST


@pytest.mark.parametrize("fabric", ["demo", 'de"mo', "100 %", "%s"])
def test_the_text_is_that_of_the_library_byte_for_byte(fabric: str) -> None:
    for number in NUMBERS:
        odd = {"core": {"sent": number, "lag_ns": number, "drops": dict.fromkeys(ODD, number)}}
        definitions = (*DEFINITIONS, WAITS)
        registry = CollectorRegistry()
        registry.register(_Fixed([_of_library(one, fabric, odd) for one in definitions]))
        assert text(families(definitions, fabric, "h000", odd)) == generate_latest(registry)


def test_a_page_of_several_nodes_has_every_family_once() -> None:
    nodes = ("h000", "p2-t0-1")
    page = text(merged(families(DEFINITIONS, "demo", node, COUNTERS) for node in nodes)).decode()
    assert page.count("# TYPE mrc_sent_packets_total counter") == 1
    assert all(f'mrc_sent_packets_total{{fabric="demo",node="{node}"' in page for node in nodes)
