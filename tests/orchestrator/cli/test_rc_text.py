"""The sums of RC NICs in words."""

import pytest

from nicd.core.settings_rc import CHOICES
from orchestrator.cli.rc_text import rc_text
from orchestrator.live.rc_view import rc_sums
from tests.support.snapshots import ROCE, quiet


def test_a_fabric_without_qps_has_none() -> None:
    sums = rc_sums(quiet(ROCE).nics.values())
    assert sums is not None
    first, second = rc_text({**sums, "path": "pinned"})
    assert first.startswith("QPs none; paths pinned, by plane 0;")
    assert "paused at most 0%" in second


@pytest.mark.parametrize("path", CHOICES["rc_path"])
def test_every_kind_of_path_has_words(path: str) -> None:
    sums = rc_sums(quiet(ROCE).nics.values())
    assert sums is not None
    assert "; paths " in rc_text({**sums, "path": path})[0]
