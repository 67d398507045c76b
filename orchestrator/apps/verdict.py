"""Whether a measurement passed: pure functions from what was counted to pass, fail or invalid, with the reasons.

Owns the criteria; what was counted comes from `accounting` and the workers, the fidelity rule is `sums`'. A measurement
is judged on the fabric's behaviour only if the emulation was faithful: otherwise it is invalid, not failed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Outcome: TypeAlias = Literal["pass", "fail", "invalid"]

EXIT_CODES: dict[Outcome, int] = {"pass": 0, "fail": 1, "invalid": 3}


@dataclass(slots=True)
class Verdict:
    """The judgement, growing reason by reason."""

    fidelity: Mapping[str, Any]
    """As `sums.fidelity` gives it."""
    reasons: list[str] = field(default_factory=list)
    """What failed, one line each."""
    checks: list[dict[str, Any]] = field(default_factory=list)
    """Every criterion: name, whether it holds, what was found."""

    def check(self, name: str, holds: bool, found: str) -> None:
        """Judge one criterion."""
        self.checks.append({"name": name, "holds": holds, "found": found})
        if not holds:
            self.reasons.append(f"{name}: {found}")

    @property
    def outcome(self) -> Outcome:
        if not self.fidelity["valid"]:
            return "invalid"
        return "fail" if self.reasons else "pass"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]

    def record(self) -> dict[str, Any]:
        """As it stands in reports."""
        reasons = list(self.reasons)
        if not self.fidelity["valid"]:
            lost = f"{self.fidelity['host_drops']} host drops, {self.fidelity['late_share']:.3%} of frames late"
            if self.fidelity.get("refused_frames"):
                lost += f", {self.fidelity['refused_frames']} frames of no life that the clock page knows"
            if self.fidelity.get("unknown_flags"):
                lost += f", {self.fidelity['unknown_flags']} frames with a flag that nobody knows"
            reasons.insert(0, f"not a faithful run: {lost}")
        return {"verdict": self.outcome, "reasons": reasons, "checks": list(self.checks)}


def in_short(deaths: Sequence[str]) -> list[str]:
    """Deaths, each as `node: how`, those that ended alike in one: `p1-t0-0 and 4 more: SIGKILL: host vm2 is lost`."""
    alike: dict[str, list[str]] = {}
    for death in deaths:
        node, _, how = death.partition(": ")
        alike.setdefault(how, []).append(node)
    return [f"{nodes[0]}{f' and {len(nodes) - 1} more' * (len(nodes) > 1)}: {how}" for how, nodes in alike.items()]


def judge_clean(verdict: Verdict, rounds: list[dict[str, Any]]) -> None:
    """A fault-free measurement: every round clean and every byte right."""
    for name in ("retransmits", "ev_transitions", "drops", "qp_errors", "wrong_bytes"):
        dirty = [(turn["round"], turn[name]) for turn in rounds if turn[name]]
        found = ", ".join(f"{count} in round {number}" for number, count in dirty[:5]) or "none"
        verdict.check(f"no {name.replace('_', ' ')} in any round", not dirty, found)
