"""Random fabrics of InfiniBand hold the rules of credits, and a program that breaks one is found."""

from typing import Any

import pytest

from mrcfabric.link_credits import LinkCredits
from mrcfabric.wire.flow_control import MODULUS
from swarm import credits as fabrics
from swarm.invariant import InvariantError
from switchd.core.credited import CreditSwitch
from tests.support.corners import corners


@pytest.mark.slow
@pytest.mark.parametrize("first", corners(range(1_000, 1_060, 6), 1_000))
def test_seeds_hold(first: int) -> None:
    for seed in range(first, first + 6):
        fabrics.run(seed)


def test_every_other_seed_has_no_fault_and_the_same_seed_is_the_same_fabric() -> None:
    for seed in range(20):
        topology, faults = fabrics.draw(seed)
        assert bool(faults) == (seed % 2 == 1)
        assert (topology, faults) == fabrics.draw(seed)


def _keeps_a_block(self: Any, vl: int, blocks: int, _free: Any = LinkCredits.free) -> None:
    _free(self, vl, blocks - 1)


def _sends_without_credit(self: Any, vl: int, blocks: int) -> bool:
    return bool(self.begun[vl])


def _forgets_to_count(self: Any, vl: int, blocks: int) -> None:
    self.sent[vl] = (self.sent[vl] + blocks - 1) % MODULUS


def _grants_too_much(self: Any, vl: int) -> int:
    return int((self.received[vl] + self.blocks[vl]) % MODULUS)


def _never_frees(self: Any, at_ns: int, pair: int, blocks: int, out: Any) -> None:
    return None


def _run_some() -> None:
    for seed in range(0, 12, 2):
        fabrics.run(seed)


@pytest.mark.pure
@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [
        (LinkCredits, "free", _keeps_a_block),
        (LinkCredits, "may_start", _sends_without_credit),
        (LinkCredits, "spend", _forgets_to_count),
        (LinkCredits, "grant", _grants_too_much),
        (CreditSwitch, "_free", _never_frees),
    ],
    ids=["keeps-a-block", "sends-without-credit", "forgets-to-count", "grants-too-much", "never-frees"],
)
def test_a_program_that_breaks_a_rule_is_found(
    monkeypatch: pytest.MonkeyPatch, kind: type, name: str, wrong: Any
) -> None:
    monkeypatch.setattr(kind, name, wrong)
    with pytest.raises(InvariantError) as found:
        _run_some()
    assert found.value.invariant in ("credits", "lossless", "rest", "verdict")


def test_the_command_line_says_which_seed_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(seed: int) -> None:
        if seed == 5:
            raise InvariantError("credits", "h000", 7, "something")

    monkeypatch.setattr(fabrics, "run", run)
    assert fabrics.main(["--seeds", "3", "--first", "4"]) == 1
    assert "FAILED seed 5" in capsys.readouterr().out
    assert fabrics.main(["--seeds", "1"]) == 0
