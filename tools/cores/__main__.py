"""`python -m tools.cores`."""

import sys

from tools.cores.compile import main

if __name__ == "__main__":
    sys.exit(main())
