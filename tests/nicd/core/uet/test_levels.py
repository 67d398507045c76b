"""How things stand: contexts by role, credit that is left, entropies at rest and kept, frozen choices."""

from typing import Any

import pytest

from nicd.core.commands import DestroyQp
from tests.nicd.core.uet.pipe import QPN_A, Pipe, Seen


def levels(pipe: Pipe, side: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = pipe.counter(side, "uet")
    return found


def test_contexts_by_role() -> None:
    pipe = Pipe(lambda at_ns, side, seen: not (seen.is_control and pipe.now > 100_000))
    pipe.write(1 << 16)
    pipe.write(1 << 16, side=1)
    pipe.run(100_000)
    for side in (0, 1):
        assert [levels(pipe, side)[name] for name in ("initiators", "targets", "closing")] == [1, 1, 0]
    pipe.command(0, 100_001, DestroyQp(0, QPN_A))
    pipe.run(101_000)
    assert [levels(pipe)[name] for name in ("initiators", "targets", "closing")] == [0, 0, 1]


@pytest.mark.parametrize("control", ["nscc", "rccc", "both"])
def test_credit_that_is_left(control: str) -> None:
    pipe = Pipe(uet_cc=control)
    pipe.write(1 << 20)
    pipe.run(1_000_000)
    assert (levels(pipe)["credit_bytes"] > 0) == (control != "nscc")
    assert levels(pipe, 1)["senders_waiting"] == 0


def test_senders_wait_in_the_ring_while_they_want_more() -> None:
    pipe = Pipe(uet_cc="rccc")
    pipe.write(1 << 20)
    seen = set()
    for at_ns in range(2_000, 60_000, 1_000):
        pipe.run(at_ns)
        seen.add(levels(pipe, 1)["senders_waiting"])
    assert seen == {1}
    pipe.run(95_000)
    assert (levels(pipe, 1)["senders_waiting"], levels(pipe, 1)["senders_resting"]) == (0, 0)


@pytest.mark.parametrize("evs", [4, 16, 64])
def test_entropies_drawn_kept_and_frozen(evs: int) -> None:
    lost: list[int] = []

    def fate(at_ns: int, side: int, seen: Seen) -> bool:
        if seen.is_data and at_ns > 40_000 and not lost:
            lost.append(seen.psn)
            return False
        return True

    pipe = Pipe(fate, evs=evs, planes=1, uet_path="reps")
    pipe.write(1 << 20)
    pipe.run(30_000)
    assert levels(pipe)["entropies_drawn"] == evs
    assert levels(pipe)["frozen"] == 0
    pipe.run(400_000)
    assert 0 < levels(pipe)["entropies_kept"] <= min(evs, 8), "at the end nothing uses up what acknowledgements bring"
    assert (levels(pipe)["frozen"], levels(pipe)["freezes"]) == (1, 1)
