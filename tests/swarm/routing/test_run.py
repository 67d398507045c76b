"""Random fabrics that route hold their rules, are the same for the same seed, and are told of when one fails."""

import pytest

from swarm.invariant import InvariantError
from swarm.routing import __main__ as command
from swarm.routing.draw import draw
from swarm.routing.run import run, run_static
from tests.support.corners import corners


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(1_000, 1_024), 1_001))
def test_a_seed_holds(seed: int) -> None:
    run(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners([150, 2_000, 2_004], 150))
def test_events_do_not_depend_on_how_time_is_cut(seed: int) -> None:
    assert run(seed) == run(seed, stepwise=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", corners(range(2_000, 2_008), 2_000))
def test_tables_that_stand_are_touched_by_nobody(seed: int) -> None:
    run_static(seed)


def test_a_seed_is_one_fabric() -> None:
    drawn = [draw(seed) for seed in range(60)]
    assert drawn == [draw(seed) for seed in range(60)]
    assert any(one.switches for one in drawn)
    assert any(one.links for one in drawn)
    assert any(not one.dead for one in drawn)
    kinds = {fault.kind for one in drawn for fault in one.troubles}
    assert len(kinds) >= 15


def test_the_command_line_says_which_seed_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def one(seed: int) -> None:
        if seed == 5:
            raise InvariantError("table", "p0-t0-0", 7, "something")

    monkeypatch.setattr(command, "one", one)
    assert command.main(["--seeds", "3", "--first", "4"]) == 1
    assert "FAILED seed 5" in capsys.readouterr().out
    assert command.main(["--seeds", "1"]) == 0
