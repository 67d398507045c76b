"""`python -m orchestrator.cli`: the same as the command `mrcfabric`."""

import sys

from orchestrator.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
