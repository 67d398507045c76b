"""`python -m fuzz`: all targets one after the other in a box of time, or one input again.

Owns arguments, what is printed, and what stays under the output folder: per target `corpus/` (inputs that reached new
code, kept from run to run) and `findings/` (inputs that broke a property). The fuzzing itself is done by a child
process per target (`fuzz.search`), because a fuzzer ends with the first finding and takes its process with it.
"""

import argparse
import re
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fuzz.targets import TARGETS

STARTUP_WALL_S = 60
"""How much longer than its time a child may take before it is stopped: it imports everything with counters built in."""
_RATE = re.compile(r"stat::average_exec_per_sec:\s*(\d+)")
_UNITS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERAGE = re.compile(r"cov: (\d+)")


class Result(NamedTuple):
    """What became of one target."""

    target: str
    runs: int
    per_s: int
    coverage: int
    """Branches that some input has reached."""
    findings: list[Path]
    error: str
    """Why it ran badly, other than by a finding; empty when it did not."""


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0: nothing found; 1: findings, or a target that did not run; 2: wrong arguments."""
    arguments = _arguments(argv)
    if arguments.replay is not None:
        return replay(arguments.target[0], arguments.replay)
    if not _available():
        print("atheris is not installed: pip install 'mrcfabric[fuzz]', or make fuzz", file=sys.stderr)
        return 2
    share_s = max(1, arguments.seconds // len(arguments.target))
    print(f"{len(arguments.target)} targets, {share_s} s each, under {arguments.out}", flush=True)
    results = []
    for name in arguments.target:
        results.append(run(name, share_s, arguments.out))
        print(line_of(results[-1]), flush=True)
    bad = [result for result in results if result.findings or result.error]
    print(f"{sum(result.runs for result in results)} runs, {sum(len(result.findings) for result in bad)} findings")
    return 1 if bad else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Feed every decoder and both cores with bytes made to break them."
    )
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together (default: 60)")
    parser.add_argument("--target", default="", help=f"one of {', '.join(TARGETS)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="where inputs are kept (default: out/fuzz)")
    parser.add_argument("--replay", type=Path, help="run the target once on this file, without atheris")
    arguments = parser.parse_args(argv)
    if arguments.seconds < 1:
        parser.error("--seconds must be at least 1")
    if arguments.target and arguments.target not in TARGETS:
        parser.error(f"no target is called {arguments.target}; there are {', '.join(TARGETS)}")
    if arguments.replay is not None and not arguments.target:
        parser.error("--replay needs --target")
    arguments.target = [arguments.target] if arguments.target else list(TARGETS)
    return arguments


def _available() -> bool:
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def replay(name: str, path: Path) -> int:
    """One input again; the exception, if there is one, is printed as it is."""
    try:
        TARGETS[name].run(path.read_bytes())
    except OSError as error:
        print(f"{path}: {error.strerror}", file=sys.stderr)
        return 2
    except Exception:
        traceback.print_exc()
        return 1
    print(f"{name}: {path} breaks nothing")
    return 0


def run(name: str, seconds: int, out: Path) -> Result:
    """Fuzz one target in a process of its own for so many seconds of wall time."""
    corpus, findings = out / name / "corpus", out / name / "findings"
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number:03d}").write_bytes(seed)
    known = set(findings.iterdir())
    command = [sys.executable, "-m", "fuzz.search", name, str(corpus), str(findings), str(seconds)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds + STARTUP_WALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Result(name, 0, 0, 0, [], f"did not end within {seconds + STARTUP_WALL_S} s")
    new = sorted(set(findings.iterdir()) - known)
    said = done.stderr + done.stdout
    error = ""
    if done.returncode and not new:
        error = (said.strip().splitlines() or ["no word"])[-1]
    for path in new:
        path.with_name(path.name + ".txt").write_text(said, encoding="utf-8")
    return Result(name, _last(_UNITS, said), _last(_RATE, said), _last(_COVERAGE, said), new, error)


def line_of(result: Result) -> str:
    """One target's result, and how to see each finding again."""
    text = f"{result.target:<10}{result.runs:>10} runs{result.per_s:>8}/s{result.coverage:>7} branches"
    if result.error:
        text += f"\n    failed: {result.error}"
    for path in result.findings:
        text += f"\n    found {path}: python -m fuzz --target {result.target} --replay {path}"
    return text


def _last(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.findall(text)
    return int(found[-1]) if found else 0


if __name__ == "__main__":
    sys.exit(main())
