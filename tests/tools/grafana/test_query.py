"""Expressions: of one fabric, per second of fabric time, summed as asked."""

import promql_parser

from tools.grafana import query

PACED = f" / on (fabric, node) group_left () {query.PACE}"


def test_series_are_of_the_chosen_fabric() -> None:
    assert query.series("x") == 'x{fabric="$fabric"}'
    assert query.series("x", query.PLANE, query.NODE) == 'x{fabric="$fabric",plane=~"$plane",node=~"$node"}'


def test_flow_is_of_fabric_time() -> None:
    counted = 'rate(x_total{fabric="$fabric"}[$__rate_interval])'
    assert query.flow("x_total", "plane") == f"sum by (fabric, plane) ({counted}{PACED})"
    assert query.bits("x_total", "") == f"8 * sum by (fabric) ({counted}{PACED})"


def test_utilisation_counts_framing() -> None:
    made = query.utilisation("mrc_nic_port", "plane")
    assert " + 38 * rate(mrc_nic_port_sent_packets_total{" in made
    assert made.endswith(
        ' / on (fabric, plane) sum by (fabric, plane) (mrc_nic_port_rate_bytes_per_second{fabric="$fabric"})'
    )


def test_pace_has_no_series_while_the_fabric_sleeps() -> None:
    assert query.PACE.endswith(" > 0)")


def test_a_share_of_nothing_is_nothing() -> None:
    assert query.share("a", "b", "plane") == "a / on (fabric, plane) (b > 0)"


def test_everything_parses() -> None:
    for made in (
        query.utilisation("a", "plane, node"),
        query.quantile(0.99, "h", "fabric", query.NODE),
        query.spread("h"),
        query.top(3, query.level("g", "node")),
        query.bottom(3, query.level("g", "node")),
        query.share(query.flow("a_total", "x"), query.flow("b_total", "x"), "x"),
        query.highest("g", ""),
    ):
        promql_parser.parse(made.replace("$__rate_interval", "20s"))
