"""What a switch's daemon answers beside what all daemons do."""

import pytest

from switchd.daemon import build, run_switchd
from tests.support.daemons import daemons, tables

NODE = "p0-t0-0"


@pytest.mark.integration
async def test_impairments_are_shown_by_port() -> None:
    async with daemons({NODE: build}) as bench:
        await bench.command(NODE, "set_impairment", port=1, impairment={"loss_ppm": 10})
        assert await bench.call(NODE, "impairments") == {"1": {"up": True, "loss_ppm": 10}}
        await bench.command(NODE, "clear_impairments")
        assert await bench.call(NODE, "impairments") == {}


def test_a_nic_is_no_switch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_switchd([tables()["h000"]]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "h000" in error


def test_nothing_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_switchd([]) == 2
    assert capsys.readouterr().err == "switchd: configuration: names no node\n"


def test_daemons_of_one_process_keep_one_time(capsys: pytest.CaptureFixture[str]) -> None:
    both = [tables()["p0-t0-0"], tables()["p0-t1-0"]]
    both[1]["clock"] = {"dilation": 5}
    assert run_switchd(both, title="p0") == 2
    assert "p0: clock: the daemons of one process must keep the same time" in capsys.readouterr().err
