"""Raw settings become a settings class or one clear complaint."""

from dataclasses import dataclass
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.settings import settings_from


@dataclass(frozen=True, slots=True)
class Knobs:
    rto_ns: int = 100
    share: float = 0.5
    trim: bool = True
    policy: str = "fixed"


def test_raw_over_derived_over_defaults() -> None:
    knobs = settings_from(Knobs, {"rto_ns": 3, "share": 1}, "nic", {"rto_ns": 2, "trim": False})
    assert knobs == Knobs(3, 1.0, False, "fixed")
    assert type(knobs.share) is float


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"rto": 1}, r"nic\.rto: no such setting \(nearest is rto_ns\)"),
        ({"qqqqqq": 1}, r"there are rto_ns, share, trim, policy"),
        ({"rto_ns": 1.5}, r"nic\.rto_ns: 1\.5 will not do"),
        ({"rto_ns": True}, r"nic\.rto_ns: is the truth value true \(wanted: .* as 1us; YAML reads yes and on as true"),
        ({"rto_ns": "1h"}, r"nic\.rto_ns: '1h' will not do \(wanted: a whole number, or a length, as 1us\)"),
        ({"trim": 1}, r"nic\.trim: 1 will not do \(wanted: true or false\)"),
        ({"share": "0.5"}, r"nic\.share: '0.5' will not do \(wanted: a number\)"),
        ({"policy": 3}, r"nic\.policy: 3 will not do \(wanted: a text, as 'fixed'\)"),
        ({"policy": False}, r"nic\.policy: is the truth value false .*no and off"),
    ],
)
def test_complaints(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings_from(Knobs, raw, "nic")
