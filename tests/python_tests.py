"""Runs the tests of a module as tests/reported_skips.cc runs those of a C++ program: each skipped
one is a line of the file that PAGODA_SKIPS_FILE names, and a program that skips all is skipped."""

import os
import sys
import unittest

SKIPPED = 77  # what ctest takes for a skipped test


class _Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def program_name():
    """What ctest calls this program: PAGODA_TEST_NAME, or the file."""
    return os.environ.get("PAGODA_TEST_NAME") or os.path.splitext(os.path.basename(sys.argv[0]))[0]


def report_skip(test, reason):
    path = os.environ.get("PAGODA_SKIPS_FILE")
    if path:
        line = "\t".join(" ".join(part.split()) for part in (program_name(), test, reason))
        with open(path, "a") as file:
            file.write(line + "\n")


def run(module):
    """As unittest.main, and ends the program."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=2, resultclass=_Result).run(suite)
    for test, reason in result.skipped:
        report_skip(test.id().removeprefix("__main__."), reason)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped and result.passed == 0 else 0)
