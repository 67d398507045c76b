"""`--jobs` and `--dask` of the `python -m` commands."""

import argparse

import pytest

from orchestrator.process.job_arguments import add_job_options, asked_pool


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m studies")
    add_job_options(made)
    return made


def test_the_pool_that_was_asked_for() -> None:
    options = parser()
    with asked_pool(options, options.parse_args(["--jobs", "1"])) as pool:
        assert pool.jobs == 1


@pytest.mark.parametrize("words", [["--jobs", "0"], ["--jobs", "x"], ["--dask", "nowhere"]])
def test_a_pool_that_cannot_be_had_is_one_line_and_exit_code_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = parser()
    with pytest.raises(SystemExit) as stop, asked_pool(options, options.parse_args(words)):
        pass
    assert stop.value.code == 2
    assert "python -m studies: error: " in capsys.readouterr().err
