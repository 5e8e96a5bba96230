"""`python -m softfloat`: the command line."""

import sys

from softfloat.commands import main

if __name__ == "__main__":
    sys.exit(main())
