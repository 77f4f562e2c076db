"""make install: the program where PREFIX and DESTDIR say, from the build that is there."""

import os
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
BUILD = os.path.dirname(os.environ["PAGODA_BINARY"])
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import python_tests  # noqa: E402


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name

    def command(self, *words):
        """What `make install` runs once the program is built."""
        shown = subprocess.run(["make", "-n", "-C", SOURCE, "install", *words], check=True, capture_output=True,
                               text=True).stdout
        return next(line for line in shown.splitlines() if "--install" in line)

    def installed(self, *words):
        line = self.command(*words).replace("--install build ", f"--install '{BUILD}' ")
        subprocess.run(["bash", "-euc", line], check=True, capture_output=True)
        return sorted(os.path.relpath(os.path.join(folder, name), self.path)
                      for folder, _, names in os.walk(self.path) for name in names)

    def test_the_program_and_its_licence_are_below_the_prefix(self):
        files = self.installed(f"PREFIX={self.path}/to")
        # A build with MPI has the program of its ranks, too.
        rank = ["to/bin/pagoda-rank"] if os.path.exists(f"{BUILD}/pagoda-rank") else []
        self.assertEqual(files, ["to/bin/pagoda", *rank, "to/share/doc/pagoda/LICENSE",
                                 "to/share/doc/pagoda/THIRD_PARTY.md"])
        ran = subprocess.run([f"{self.path}/to/bin/pagoda", "--version"], check=True, capture_output=True, text=True)
        self.assertRegex(ran.stdout, r"^pagoda \d")

    def test_a_package_is_made_below_destdir(self):
        files = self.installed("PREFIX=/usr", f"DESTDIR={self.path}/root")
        self.assertIn("root/usr/bin/pagoda", files)

    def test_the_prefix_is_usr_local_unless_it_is_said(self):
        self.assertIn("--prefix '/usr/local'", self.command())


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
