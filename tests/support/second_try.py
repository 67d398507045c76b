"""A second try, alone, of the few tests that failed beside others: `python -m tests.support.second_try`.

A test that fails and then passes without a change is a defect, of the test or of the code, and is named at the end, for
somebody to find its cause. It says nothing against the change that is being checked, so it does not refuse that
change. A test that fails twice does, and so do more failures than a few: those have a common cause.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
"""Where pytest keeps the tests that failed when they last ran."""
FEW = 3
NOTHING_CHOSEN = 5
"""What pytest returns when the marks leave no test of those that it was given."""


def failed() -> list[str]:
    """The node ids of the tests that failed, in order; none when pytest has not run."""
    try:
        return sorted(json.loads(FAILED.read_text()))
    except FileNotFoundError:
        return []


def passes(tests: Sequence[str], mark: str, cores: str) -> bool:
    """Whether those of `tests` that have the mark pass, one after the other, on the cores they are meant for."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-m", mark, *tests]
    return subprocess.run(command, env=os.environ | {"MRCFABRIC_CORES": cores}).returncode in {0, NOTHING_CHOSEN}


def main() -> int:
    tests = failed()
    if not tests:
        print("no test failed: what failed was something else")
        return 1
    if len(tests) > FEW:
        print(f"{len(tests)} tests failed; a second try is for {FEW} at most")
        return 1
    if not (passes(tests, "not pure", os.environ.get("MRCFABRIC_CORES", "")) and passes(tests, "pure", "python")):
        return 1
    for test in tests:
        print(f"UNSTABLE: {test} failed beside others and passed alone; find out why")
    return 0


if __name__ == "__main__":
    sys.exit(main())
