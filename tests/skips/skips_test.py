"""What is said of skipped tests: by a GoogleTest program, by a Python program, by tools/run_tests."""

import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
SAMPLE = os.environ["PAGODA_SAMPLE"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import python_tests  # noqa: E402

GPU = "needs a GPU"


class Folder(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.skips = os.path.join(self.path, "skips.txt")

    def run_words(self, *words, **environment):
        kept = {k: v for k, v in os.environ.items() if k not in ("CI", "PAGODA_TEST_NAME")}
        environment.setdefault("PAGODA_SKIPS_FILE", self.skips)
        return subprocess.run(words, env={**kept, **environment}, capture_output=True, text=True)

    def reported(self):
        with open(self.skips) as file:
            return [tuple(line.rstrip("\n").split("\t")) for line in file]


class GoogleTest(Folder):
    def status(self, *tests):
        return self.run_words(SAMPLE, "--gtest_filter=" + ":".join(tests)).returncode

    def test_a_program_that_skips_all_is_skipped(self):
        self.assertEqual(self.status("Sample.NeedsGpu", "Sample.NeedsTea"), 77)
        self.assertEqual(self.status("SkipsInSetUp.*"), 77)

    def test_one_that_does_anything_else_is_not(self):
        self.assertEqual(self.status("Sample.Passes"), 0)
        self.assertEqual(self.status("Sample.Passes", "Sample.NeedsGpu"), 0)
        self.assertEqual(self.status("Sample.Fails", "Sample.NeedsGpu"), 1)
        self.assertEqual(self.status("Sample.FailsAndSkips"), 1)
        self.assertEqual(self.status("None.*"), 0)

    def test_every_skipped_test_is_one_line(self):
        self.status("Sample.*", "Skips*")
        program = os.path.basename(SAMPLE)
        self.assertEqual(
            self.reported(),
            [(program, *line) for line in [
                ("Sample.NeedsGpu", GPU + ": none found"),
                ("Sample.NeedsNoGpu", "needs a machine without a GPU: there is one"),
                ("Sample.NeedsDirectIo", "needs direct I/O: refused"),
                ("Sample.NeedsUring", "needs io_uring: refused"),
                ("Sample.NeedsTea", "no tea: the cup is empty"),
                ("Sample.SaysNothing", ""),
                ("SkipsInSetUp.Test", GPU + ": says SetUp"),
            ]])

    def test_without_a_file_nothing_is_written(self):
        self.assertEqual(self.run_words(SAMPLE, "--gtest_filter=*NeedsGpu", PAGODA_SKIPS_FILE="").returncode, 77)


class Python(Folder):
    def outcome(self, body, **environment):
        script = os.path.join(self.path, "made_test.py")
        with open(script, "w") as file:
            file.write("import sys, unittest\nimport python_tests\n" + textwrap.dedent(body) +
                       "\npython_tests.run(sys.modules[__name__])\n")
        ran = self.run_words(sys.executable, script, PYTHONPATH=os.path.join(SOURCE, "tests"), **environment)
        return ran.returncode

    SKIPS = """
    class A(unittest.TestCase):
        def test_one(self): self.skipTest("needs a GPU: none\\nfound")
        @unittest.skip("no tea")
        def test_two(self): pass
    @unittest.skip("a whole class")
    class B(unittest.TestCase):
        def test_it(self): pass
    class C(unittest.TestCase):
        @classmethod
        def setUpClass(cls): raise unittest.SkipTest("by its class")
        def test_it(self): pass
    """
    PASSES = """
    class D(unittest.TestCase):
        def test_it(self): pass
    """
    FAILS = """
    class E(unittest.TestCase):
        def test_it(self): self.fail()
    """

    def test_a_program_that_skips_all_is_skipped(self):
        self.assertEqual(self.outcome(self.SKIPS), python_tests.SKIPPED)
        self.assertEqual(
            self.reported(),
            [("made_test", *line) for line in [
                ("A.test_one", "needs a GPU: none found"), ("A.test_two", "no tea"),
                ("B.test_it", "a whole class"), ("setUpClass (__main__.C)", "by its class")]])

    def test_one_that_does_anything_else_is_not(self):
        self.assertEqual(self.outcome(self.SKIPS + self.PASSES, PAGODA_TEST_NAME="named"), 0)
        self.assertEqual({line[0] for line in self.reported()}, {"named"})
        self.assertEqual(self.outcome(self.SKIPS + self.FAILS), 1)
        self.assertEqual(self.outcome(self.PASSES), 0)


class RunTests(Folder):
    """tools/run_tests in a folder whose tests are these: a name and its filter, or a command."""

    def outcome(self, tests, ci=True, words=()):
        with open(os.path.join(self.path, "CTestTestfile.cmake"), "w") as file:
            for name, command in tests.items():
                line = f'"{SAMPLE}" "--gtest_filter={command}"' if isinstance(command, str) else \
                    " ".join(f'"{word}"' for word in command)
                file.write(f"add_test({name} {line})\n"
                           f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77 "
                           f"ENVIRONMENT PAGODA_TEST_NAME={name})\n")
        tool = os.path.join(SOURCE, "tools/run_tests")
        ran = self.run_words(sys.executable, tool, self.path, *words, **({"CI": "true"} if ci else {}))
        return ran.returncode, ran.stdout

    def last_line(self, *arguments, **more):
        status, out = self.outcome(*arguments, **more)
        self.assertIn("tests passed", out, "ctest's own summary")
        return status, out.rstrip().splitlines()[-1]

    def test_the_last_line_counts_by_reason(self):
        tests = {"some": "Sample.Passes:*NeedsGpu:*NeedsNoGpu:SkipsInSetUp.*", "none": "Sample.Passes",
                 "all": "*NeedsUring:*NeedsDirectIo"}
        self.assertEqual(
            self.last_line(tests),
            (0, "5 tests were skipped: 2 needs a GPU, 1 needs a machine without a GPU, 1 needs direct I/O, "
                "1 needs io_uring."))

    def test_nothing_skipped_is_said_too(self):
        self.assertEqual(self.last_line({"some": "Sample.Passes"}), (0, "No test was skipped."))

    def test_a_program_that_skips_all_is_shown_as_skipped(self):
        _, out = self.outcome({"some": "Sample.NeedsGpu"})
        self.assertRegex(out, r"some \.+\*\*\*Skipped")

    def test_other_reasons_fail_under_ci_alone(self):
        for tests, last in [
            ({"some": "Sample.Passes:*NeedsTea"}, "1 test was skipped: 1 no tea."),
            ({"some": "Sample.Passes:*NeedsTea:*NeedsGpu"}, "2 tests were skipped: 1 needs a GPU, 1 no tea."),
            ({"some": "*SaysNothing"}, "1 test was skipped: 1 no reason given."),
            ({"some": ["sh", "-c", "exit 77"]}, "1 test was skipped: 1 no reason given."),
        ]:
            with self.subTest(last):
                self.assertEqual(self.last_line(tests), (1, last))
                self.assertEqual(self.last_line(tests, ci=False), (0, last))

    def test_a_reason_that_only_looks_allowed_is_not(self):
        said = "printf 'some\\\\tA.B\\\\tneeds a GPU driver\\\\n' >> $PAGODA_SKIPS_FILE; exit 77"
        with open(os.path.join(self.path, "skip.sh"), "w") as file:
            file.write(said.replace("\\\\", "\\"))
        self.assertEqual(self.last_line({"some": ["sh", os.path.join(self.path, "skip.sh")]}),
                         (1, "1 test was skipped: 1 needs a GPU driver."))

    def test_a_failure_stays_one_and_the_count_is_still_last(self):
        status, last = self.last_line({"some": "Sample.Fails:*NeedsGpu", "other": "Sample.Passes"})
        self.assertEqual((status != 0, last), (True, "1 test was skipped: 1 needs a GPU."))

    def test_words_go_to_ctest_and_an_earlier_run_leaves_nothing(self):
        tests = {"some": "Sample.NeedsTea", "other": "Sample.Passes"}
        self.outcome(tests)
        self.assertEqual(self.last_line(tests, words=["-R", "other"]), (0, "No test was skipped."))


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
