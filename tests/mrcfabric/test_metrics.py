"""Definitions, families, text and the reference document."""

from prometheus_client.parser import text_string_to_metric_families

from mrcfabric.metrics import Definition, by_key, each, families, markdown, text, value

DEFINITIONS = (
    Definition("sent_packets", "counter", "Packets sent.", value("core", "sent")),
    Definition("lag_seconds", "gauge", "How far behind.", value("core", "lag_ns", scale=1e-9)),
    Definition("drops", "counter", "Drops, by reason.", by_key("core", "drops"), ("reason",)),
    Definition("frames", "counter", "By direction.", each(a=("core", "sent"), b=("core", "lag_ns")), ("way",)),
    Definition("up", "gauge", "Per plane.", lambda _counters: [("3", (), 1)], per_plane=True),
)
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
    assert family.samples[0].labels == {"fabric": "demo", "plane": "", "node": "h000"}


def test_the_reference_has_a_row_per_metric() -> None:
    document = markdown({"All": DEFINITIONS})
    assert "| `mrc_drops_total` | counter | reason | Drops, by reason. |" in document
    assert "| `mrc_up` | gauge | plane | Per plane. |" in document
    assert document.count("\n| `mrc_") == len(DEFINITIONS)
