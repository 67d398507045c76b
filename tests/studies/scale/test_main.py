"""The command measures, writes and compares."""

from pathlib import Path

import pytest

from studies.scale import __main__ as command
from studies.scale.page import Measured
from studies.scale.recovery import SYSTEMS, Recovery
from studies.scale.validation import Checked


def test_check_finds_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {system.name: (Recovery(0.5, True), Recovery(9.0, False, "why")) for system in SYSTEMS}
    made = Measured(rows, [Checked(4, 25.0, 0.5, 0.51, 9)])
    monkeypatch.setattr(command, "measured", lambda: made)
    monkeypatch.setattr(command, "DOCUMENT", tmp_path / "SCALE.md")
    monkeypatch.setattr(command, "STORE", tmp_path / "measured.json")
    assert command.main(["--write"]) == 0
    assert command.main(["--check"]) == 0
    (tmp_path / "SCALE.md").write_text("other")
    assert command.main(["--check"]) == 1
