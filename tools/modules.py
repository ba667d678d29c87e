"""Replaced by ``python -m generate``."""

import sys

from generate.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
