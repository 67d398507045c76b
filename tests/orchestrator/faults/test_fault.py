"""The record of a fault: its windows and what is in force when."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window, once

FLAP = Fault("f1", "flap", ("p0-t0-0~p0-t1-1",), (Window(100, 200, {}), Window(300, 400, {"share_ppm": 5})))


def test_a_fault_bites_in_its_windows_and_nowhere_else() -> None:
    assert [FLAP.at(at_ns) for at_ns in (99, 100, 199, 200, 300, 399, 400)] == [
        None, {}, {}, None, {"share_ppm": 5}, {"share_ppm": 5}, None,
    ]  # fmt: skip
    assert (FLAP.start_ns, FLAP.end_ns) == (100, 400)


def test_a_record_is_plain_data_and_open_ends_are_null() -> None:
    assert FLAP.record()["windows"] == [[100, 200, {}], [300, 400, {"share_ppm": 5}]]
    lasting = Fault("f2", "link_down", ("p0-t0-0~p0-t1-1",), (Window(100, NEVER, {}),))
    assert lasting.record()["windows"] == [[100, None, {}]]


@pytest.mark.parametrize("target", [None, 3, b"h000", ["h000"], ("h000",)])
def test_a_target_that_is_no_text_is_named(target: Any) -> None:
    with pytest.raises(ConfigError, match=r"^targets: .* is no text"):
        once("link_down", target, at_ns=1)
