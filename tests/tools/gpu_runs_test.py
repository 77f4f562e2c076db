"""bench/gpu/run_tests: every program that needs a GPU has its turn, and the last line says which ran."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import python_tests  # noqa: E402


def programs_with_a_gpu():
    names = set()
    for folder, _, files in os.walk(os.path.join(SOURCE, "tests")):
        if "CMakeLists.txt" in files:
            with open(os.path.join(folder, "CMakeLists.txt")) as file:
                names |= set(re.findall(r"pagoda_test\((\w+)[^)]*LABELS gpu\)", file.read()))
    return names


class GpuRuns(unittest.TestCase):
    def test_every_program_has_its_turn(self):
        names = programs_with_a_gpu()
        self.assertGreater(len(names), 8)
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "tests"))
            for name in names:
                path = os.path.join(folder, "tests", name)
                with open(path, "w") as file:
                    file.write(f'#!/bin/sh\necho {name} >>"{folder}/log"\nsleep 0.2\n')
                os.chmod(path, 0o755)
            done = subprocess.run([os.path.join(SOURCE, "bench/gpu/run_tests"), folder, "1", "1"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(os.path.join(folder, "log")) as file:
                self.assertEqual(set(file.read().split()), names)
        for name in names:
            self.assertIn(name, done.stdout)


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
