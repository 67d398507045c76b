"""Lines of `top` for RC NICs; `test_top_view` has the whole screen."""

from dataclasses import replace

from orchestrator.cli.top_rc import is_rc, rc_lines, rc_rows
from tests.support.snapshots import ROCE, SMALL, busy


def test_only_rc_nics_have_such_lines() -> None:
    assert (is_rc(busy(SMALL)), rc_lines(busy(SMALL))) == (False, [])
    assert is_rc(busy(ROCE))
    assert len(rc_lines(busy(ROCE))) == 2


def test_nics_with_qps_in_error_come_first() -> None:
    shot = busy(ROCE)
    shot = replace(shot, nics={**shot.nics, "h003": replace(shot.nics["h003"], qp_errors=2)})
    rows = [row.plain.split() for row in rc_rows(shot, 2)]
    assert (rows[0][0], rows[0][3], len(rows)) == ("h003", "2", 2)
