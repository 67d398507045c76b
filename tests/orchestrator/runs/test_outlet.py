"""Lines of a run whose reader goes away, or whose disk is full."""

import os

import pytest

from orchestrator.runs.outlet import Outlet


@pytest.mark.parametrize("full", [False, True])
def test_who_takes_no_more_lines_ends_the_lines_alone(full: bool) -> None:
    if full:
        out = open("/dev/full", "w")  # noqa: SIM115
    else:
        read_end, write_end = os.pipe()
        os.close(read_end)
        out = os.fdopen(write_end, "w")
    with out:
        outlet = Outlet(out)
        for number in range(3):
            outlet.say(f"line {number}")
        out.write("the rest goes nowhere")
