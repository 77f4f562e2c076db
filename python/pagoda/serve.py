"""`python -m pagoda.serve` is `pagoda serve`, with the same flags."""

import sys

from ._program import execute

if __name__ == "__main__":
    execute(["serve", *sys.argv[1:]])
