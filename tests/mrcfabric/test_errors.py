"""What an operator is told stays one line, whatever was typed."""

import pickle

import pytest

from mrcfabric.errors import TEXT_SIGNS_MAX, WORD_SIGNS_MAX, ConfigError, bounds, brief, out_of_order


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


def test_of_a_long_word_and_of_a_long_text_begin_and_end_are_told() -> None:
    error = ConfigError("out/" + "x" * 5000 + "/a.yaml", f"{'y' * 5000!r} will not do", "1 to 8")
    assert len(str(error)) < 2 * WORD_SIGNS_MAX + 40
    assert str(error).startswith("out/xxx")
    assert "xxx/a.yaml: 'yyy" in str(error).replace("...", "")
    assert str(error).endswith("yyy' will not do (1 to 8)")
    assert len(brief("many words " * 1000)) <= TEXT_SIGNS_MAX
    whole = "w" * WORD_SIGNS_MAX
    assert brief(whole) == whole


def test_a_mistake_comes_back_whole_from_another_process() -> None:
    error = pickle.loads(pickle.dumps(ConfigError("fabric.planes", "9 will not do", "1 to 8", ("t0_per_plane",))))
    assert (error.where, error.what, error.hint) == ("fabric.planes", "9 will not do", "1 to 8")
    assert error.also == ("t0_per_plane",)
    assert str(error) == "fabric.planes: 9 will not do (1 to 8)"


def test_two_settings_out_of_order_are_named_with_their_values_and_the_way_out() -> None:
    error = out_of_order("nic.tail_probe_ns", 300, "nic.rto_ns", 200)
    assert str(error) == (
        "nic.tail_probe_ns: 300 is not below nic.rto_ns, which is 200 (lower nic.tail_probe_ns, or raise nic.rto_ns)"
    )
    assert error.also == ("nic.rto_ns",)
    assert "0.9 is above b, which is 0.8" in str(out_of_order("a", 0.9, "b", 0.8, equal=True))


def test_bounds_name_those_that_are_there() -> None:
    assert [bounds(1, None), bounds(None, 9), bounds(1, 9)] == ["at least 1", "at most 9", "1 to 9"]
