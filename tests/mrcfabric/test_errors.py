"""What an operator is told stays one line, whatever was typed."""

import pickle

import pytest

from mrcfabric.errors import ConfigError


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("out/Zürich 1", "out/Zürich 1"),
        ("a\nb\r", "a\\nb\\r"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202e\ud800", "\\u202e\\ud800"),
    ],
)
def test_signs_that_move_a_cursor_are_written_out(typed: str, told: str) -> None:
    error = ConfigError(typed, f"{typed} will not do", typed)
    assert str(error) == f"{told}: {told} will not do ({told})"
    assert error.where == typed


def test_a_mistake_comes_back_whole_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(ConfigError("fabric.planes", "9 will not do", "1 to 8")))
    assert (error.where, error.what, error.hint) == ("fabric.planes", "9 will not do", "1 to 8")
    assert str(error) == "fabric.planes: 9 will not do (1 to 8)"
