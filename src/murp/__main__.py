"""``python -m murp``: the same as the command ``murp``."""

import sys

from murp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
