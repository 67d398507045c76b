"""What boards share is one thing: alerts and boards agree on what too many is."""

from orchestrator.prometheus.alerts import EVS_RETIRED_SHARE
from tests.support.boards import expressions
from tools.grafana import common
from tools.grafana.catalogue import BOARDS


def test_the_line_is_drawn_where_the_alert_fires() -> None:
    steps = common.evs_out_by_plane().defaults["thresholds"]["steps"]
    assert [step["value"] for step in steps] == [None, EVS_RETIRED_SHARE]


def test_goodput_is_the_same_everywhere() -> None:
    showing = [board.uid for board in BOARDS if common.GOODPUT in expressions(board)]
    assert len(showing) >= 3


def test_retired_means_assumed_bad_or_denied() -> None:
    assert 'state=~"assumed_bad|denied"' in common.evs_out("plane")
