"""A report of the sample recording, with the keys that those who show it read."""

from typing import Any

from tests.support.recordings import BEGIN, END

HELD = {
    "name": "every byte right",
    "measure": "bytes_wrong",
    "of": [],
    "during": "run",
    "bin_ns": None,
    "reduce": "sum",
    "unit": "count",
    "at_least": None,
    "at_most": 0,
    "held": True,
    "observed": 0,
    "observed_of": "",
    "start_ns": BEGIN,
    "end_ns": END,
    "figures": 1,
    "outside": 0,
    "why": "",
    "text": "every byte right: 0 observed, at most 0 expected (count), 20 to 520 us",
}
MISSED = HELD | {
    "name": "goodput <holds> & stays",
    "measure": "goodput",
    "during": "fault flaps",
    "bin_ns": 20_000,
    "unit": "share of line",
    "at_least": 0.85,
    "at_most": None,
    "held": False,
    "observed": 0.45,
    "observed_of": "1",
    "start_ns": 120_000,
    "end_ns": 140_000,
    "figures": 6,
    "outside": 2,
    "text": "goodput <holds> & stays: 0.45 observed, at least 0.85 expected (share of line), 120 to 140 us",
}


def sample_run_report(**changed: Any) -> dict[str, Any]:
    """One expectation held, one did not; `changed` replaces keys."""
    report = {
        "verdict": "not held",
        "reasons": [MISSED["text"]],
        "exit_code": 1,
        "begin_ns": BEGIN,
        "end_ns": END,
        "findings": [HELD, MISSED],
        "trace_digest": "5f0c3ad1c0ffee00",
    }
    return report | changed
