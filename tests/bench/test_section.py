"""Sections: all of them can be loaded, and ratios find their other half."""

import importlib

import pytest

from bench.__main__ import main
from bench.section import ORDER, SECTIONS, USUAL, requirements


@pytest.mark.parametrize("name", ORDER)
def test_every_section_can_be_run(name: str) -> None:
    assert callable(importlib.import_module(SECTIONS[name].module).run)


def test_sections_bring_what_their_ratios_need() -> None:
    assert requirements(["hop"]) == ["reference", "hop"]
    assert requirements(["sim", "hop"]) == ["reference", "hop", "sim"]
    assert requirements(ORDER) == list(ORDER)


def test_what_takes_hosts_is_measured_only_by_name() -> None:
    assert "hosts" in ORDER
    assert "hosts" not in USUAL


def test_a_crowd_of_daemons_is_measured_only_by_name() -> None:
    assert "crowd" in ORDER
    assert "crowd" not in USUAL


def test_an_unknown_section_is_the_operators_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--only", "hop,hpo"])
    assert stop.value.code == 2
    assert "no such section: hpo" in capsys.readouterr().err
