"""The command line of the fuzzer: arguments, replay, and what is said of a finding."""

from pathlib import Path

import pytest

from fuzz.__main__ import Result, line_of, main
from fuzz.targets import TARGETS


def test_an_input_is_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "input"
    path.write_bytes(TARGETS["packet"].seeds()[0])
    assert main(["--target", "packet", "--replay", str(path)]) == 0
    assert capsys.readouterr().out == f"packet: {path} breaks nothing\n"
    assert main(["--target", "packet", "--replay", str(tmp_path / "absent")]) == 2


def test_a_finding_comes_with_the_command_that_shows_it() -> None:
    result = Result("nic", 12, 3, 450, [Path("out/fuzz/nic/findings/crash-1")], "")
    assert "python -m fuzz --target nic --replay out/fuzz/nic/findings/crash-1" in line_of(result)
    assert "failed: no memory" in line_of(result._replace(error="no memory", findings=[]))


@pytest.mark.parametrize("wrong", [["--target", "nick"], ["--seconds", "0"], ["--replay", "file"]])
def test_wrong_arguments_are_refused(wrong: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(wrong)
