"""`nicd --config FILE`: one emulated NIC, started by hand."""

import sys

from mrcfabric.daemon_process import main as run_main
from nicd.daemon import build


def main() -> int:
    """Console script; returns the exit code: 0 stopped in good order, 1 a bug, 2 a mistake of the operator."""
    return run_main("nicd", build)


if __name__ == "__main__":
    sys.exit(main())
