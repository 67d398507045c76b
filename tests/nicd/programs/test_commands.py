"""What a host can be asked, as the control channel lets it through."""

import pytest

from mrcfabric.command_table import CommandTable
from mrcfabric.errors import RefusedError
from nicd.programs.commands import RunProgram, StopProgram

TABLE = CommandTable([RunProgram, StopProgram])


def test_a_program_is_a_table() -> None:
    assert TABLE.build("run_program", {"program": {"name": "a"}}, 4) == RunProgram(4, {"name": "a"})


def test_a_program_is_stopped_by_its_name() -> None:
    assert TABLE.build("stop_program", {"name": "a"}, 4) == StopProgram(4, "a")


def test_and_nothing_else() -> None:
    with pytest.raises(RefusedError, match="no table"):
        TABLE.build("run_program", {"program": ["a"]}, 4)
