"""Files and functions stay short enough to be read in one go."""

import statistics

from tests.checks import source
from tests.checks.exceptions import LONG_FILES, LONG_FUNCTIONS
from tests.checks.source import relative

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
MEDIAN_FUNCTION_LINES_MAX = 12


def test_files_are_short() -> None:
    files = [*source.python_files(), *(source.ROOT / "deploy").rglob("*.lua")]
    lengths = {relative(path): source.text(path).count("\n") for path in files}
    long = {name: lines for name, lines in lengths.items() if lines > LONG_FILES.get(name, FILE_LINES_MAX)}
    assert not long, "split them by what they own"
    assert not [name for name in LONG_FILES if lengths.get(name, 0) <= FILE_LINES_MAX], "remove the exception"


def test_functions_are_short() -> None:
    lengths = {function.where: function.lines for function in source.functions()}
    long = {name: lines for name, lines in lengths.items() if lines > LONG_FUNCTIONS.get(name, FUNCTION_LINES_MAX)}
    assert not long
    assert not [name for name in LONG_FUNCTIONS if lengths.get(name, 0) <= FUNCTION_LINES_MAX], "remove the exception"


def test_the_usual_function_is_about_ten_lines() -> None:
    assert statistics.median(function.lines for function in source.functions()) <= MEDIAN_FUNCTION_LINES_MAX
