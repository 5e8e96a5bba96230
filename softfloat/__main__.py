"""`python -m softfloat`: the command line."""

import sys

from softfloat.cli import main

if __name__ == "__main__":
    sys.exit(main())
