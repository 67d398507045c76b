"""Snapshots as data."""

import json

from orchestrator.live.pause_tree import PauseView
from orchestrator.live.snapshot import DirectionView, LinkView, NicView, PlaneView, Snapshot


def _snapshot() -> Snapshot:
    quiet = DirectionView(0.25, 4096, 1, 0, 2)
    good = {"good": 8, "skip": 0, "assumed_bad": 0, "denied": 0}
    return Snapshot(
        number=1,
        at_ns=5_000,
        span_ns=1_000,
        wall_s=12.5,
        dilation=10_000.0,
        running=True,
        valid=True,
        reasons=(),
        planes=(PlaneView(1e9, good, 0), PlaneView(2e9, good, 1)),
        nics={"h000": NicView("up", 3e9, (True, False), (good, good), 1, 0, 0, (0.0, 0.5), None, None, ())},
        switches={},
        links={"h000~p0-t0-0": LinkView("impaired", quiet, quiet, ("f1",))},
        faults=(),
        programs=(),
        late=(),
        pauses=(PauseView("h000>p0-t0-0", 3, 0.5, 4, True, "queue", ("p0-t0-0>h001",)),),
        pause_trees=(),
    )


def test_a_snapshot_is_json_by_field_names() -> None:
    record = _snapshot().record()
    assert json.loads(json.dumps(record)) == record
    assert record["links"]["h000~p0-t0-0"]["up"] == {
        "utilisation": 0.25, "queue_bytes": 4096, "marks": 1, "trims": 0, "drops": 2
    }  # fmt: skip
    assert record["nics"]["h000"]["ports_up"] == [True, False]


def test_goodput_is_that_of_all_planes() -> None:
    assert _snapshot().goodput_bps == 3e9
