"""`python -m tools.prometheus --write`: the files of deploy/prometheus and the tables of docs/MONITORING.md.

Without --write it says which of them are not as the rules are, and exits with 1.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.prometheus import shipped


def main(argv: Sequence[str] | None = None) -> int:
    """Write or compare, in the repository that is the current folder; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.prometheus", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files that have changed")
    options = parser.parse_args(argv)
    stale = [
        (path, text)
        for path, text in shipped.files(Path()).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        print(f"{'written' if options.write else 'stale'} {path}")
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if stale and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
