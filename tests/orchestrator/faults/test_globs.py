"""Globs: what they match, and what is none."""

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.faults.globs import STARS_MAX, matcher

NAMES = ("h000", "h001", "h010", "p0-t0-1", "vm1.rack")


def meant(*patterns: str) -> list[str]:
    return list(filter(matcher(patterns, lambda _name: None), NAMES))


def test_names_and_globs_mean_whole_names() -> None:
    assert meant("h00?", "p0-t0-1") == ["h000", "h001", "p0-t0-1"]
    assert meant("h0[!0]*") == ["h010"]
    assert meant("vm1.*") == ["vm1.rack"]
    assert meant("h0") == []


def test_a_plain_name_must_exist_and_a_glob_need_not() -> None:
    asked: list[str] = []
    matcher(("h001", "h*", "a"), asked.append)
    assert asked == ["a", "h001"]


@pytest.mark.parametrize("glob", ["p[0", "p[]x", "p[z-a]*", "p[ ]", "*" * (STARS_MAX + 1)])
def test_what_is_no_glob(glob: str) -> None:
    with pytest.raises(ConfigError, match="is no glob"):
        meant(glob)
