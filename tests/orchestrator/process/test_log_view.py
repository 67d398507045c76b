"""Reading logs: the last lines, what is added later, and a missing one."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process.log_view import LogView


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "h000.log").write_text("h000 ready\nh000 one\nh000 two\n")
    (logs / "p3.log").write_text("p3-t0-0 ready\np3-t1-0 ready\np3-t0-0 one\n")
    return tmp_path


def test_the_last_lines_of_a_nodes_own_file(folder: Path) -> None:
    assert LogView(folder, "h000").tail(2) == ["h000 one", "h000 two"]
    assert LogView(folder, "h000").tail(0) == []


def test_only_whole_lines_are_shown_and_each_once(folder: Path) -> None:
    view = LogView(folder, "h000")
    view.tail(10)
    with (folder / "logs" / "h000.log").open("a") as log:
        log.write("h000 thr")
        log.flush()
        assert view.more() == []
        log.write("ee\nh000 four\n")
    assert view.more() == ["h000 three", "h000 four"]
    assert view.more() == []


@pytest.mark.parametrize("node", ["../../etc/passwd", ""])
def test_a_missing_log_says_which_there_are(folder: Path, node: str) -> None:
    with pytest.raises(ConfigError, match=r"has no log in .*there are logs of h000 to p3"):
        LogView(folder, node)


def test_a_missing_log_says_which_is_nearest(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no log in .*nearest is h000"):
        LogView(folder, "h009")


def test_a_folder_without_logs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing has run there"):
        LogView(tmp_path, "h000")
