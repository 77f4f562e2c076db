"""tools/sanitize with a limit: what comes first, what fails, what is left out and said to be."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import sys
import time
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import python_tests  # noqa: E402

_loader = importlib.machinery.SourceFileLoader("sanitize", os.path.join(SOURCE, "tools/sanitize"))
sanitize = importlib.util.module_from_spec(importlib.util.spec_from_loader("sanitize", _loader))
_loader.exec_module(sanitize)


def made_test(name, preset="dev", labels=(), command=None, **properties):
    properties = {"LABELS": list(labels), "WORKING_DIRECTORY": "/", **properties}
    return sanitize.Test(preset, {"name": name, "command": command,
                                  "properties": [{"name": k, "value": v} for k, v in properties.items()]})


def shell(name, script, **properties):
    return made_test(name, command=["sh", "-c", script], **properties)


class Run(sanitize.TimedRun):
    """Building takes no time, or as long as the name says."""

    def build(self, test):
        if test.name == "broken_build":
            self.failed.append(test)
            return False
        return self.seconds_left() > 0 and test.name != "slow_build"

    def find_built(self, test):
        return test


class Sanitize(unittest.TestCase):
    def outcome(self, tests, seconds=30):
        run = Run(seconds)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            run.go(tests)
            status = run.report()
        names = [sorted(test.name for test in group) for group in (run.passed, run.failed, run.left_out)]
        return status, names, out.getvalue()

    def test_a_failure_fails_the_run_and_is_shown(self):
        status, names, out = self.outcome([shell("good", "true"), shell("bad", "echo heap-use-after-free; exit 1")])
        self.assertEqual((status, names), (1, [["good"], ["bad"], []]))
        self.assertIn("heap-use-after-free", out)
        self.assertIn("failed: dev bad", out)

    def test_a_build_that_fails_fails_the_run(self):
        self.assertEqual(self.outcome([shell("broken_build", "true")])[:2], (1, [[], ["broken_build"], []]))

    def test_skips_and_expected_failures_are_fine(self):
        tests = [shell("skips", "exit 77"), shell("fails", "exit 1", WILL_FAIL=True),
                 shell("named", 'test "$A" = b=c', ENVIRONMENT=["A=b=c"])]
        self.assertEqual(self.outcome(tests)[:2], (0, [["fails", "named", "skips"], [], []]))
        self.assertEqual(self.outcome([shell("passes", "true", WILL_FAIL=True)])[0], 1)

    def test_what_does_not_fit_is_left_out_and_named(self):
        begin = time.monotonic()
        tests = [shell("quick", "true"), shell("slow_build", "true"), shell("endless", "sleep 60 & wait"), shell("later", "true")]
        status, names, out = self.outcome(tests, seconds=2)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(status, 0)
        self.assertEqual((names[0][-1:], names[1]), (["quick"], []))
        self.assertLessEqual({"endless", "slow_build"}, set(names[2]))
        self.assertIn("left out: dev endless", out)

    def test_without_time_all_is_left_out(self):
        self.assertEqual(self.outcome([shell("a", "true"), shell("b", "false")], seconds=0)[:2], (0, [[], [], ["a", "b"]]))

    def test_the_riskiest_come_first_then_threads_then_the_rest(self):
        dev = [made_test("base_test", labels=["threads"]), made_test("kv_test"), made_test("server_test", labels=["threads"]),
               made_test("text_test", labels=["threads"]), made_test("host_store_test", labels=["threads"]),
               made_test("invariance_test", labels=["slow", "threads"]), made_test("json_fuzz_corpus"),
               made_test("flat", labels=["long"]), made_test("wire", command=["/usr/bin/python3", "a.py"])]
        tsan = [made_test(test.name, "tsan", test.labels) for test in dev]
        self.assertEqual([str(test) for test in sanitize.order(dev, tsan)],
                         ["dev kv_test", "tsan base_test", "dev host_store_test", "tsan host_store_test", "dev text_test",
                          "dev server_test", "tsan server_test", "tsan text_test", "dev base_test", "dev json_fuzz_corpus"])
        self.assertEqual([test.target for test in dev[:2] + dev[6:7]], ["base_test", "kv_test", "json_fuzz"])

    def test_what_comes_first_exists_and_has_threads_under_tsan(self):
        lists = ""
        for folder, _, names in os.walk(os.path.join(SOURCE, "tests")):
            if "CMakeLists.txt" in names:
                with open(os.path.join(folder, "CMakeLists.txt")) as file:
                    lists += file.read()
        programs = dict(re.findall(r"pagoda_test\((\w+)([^)]*)\)", lists))
        for preset, name in sanitize.FIRST:
            self.assertIn(name, programs)
            if preset == "tsan":
                self.assertRegex(programs[name], r"\bthreads\b", name)
        self.assertEqual(sanitize.FIRST[-1], ("dev", "server_test"))
        self.assertGreater(sum(preset == "tsan" for preset, _ in sanitize.FIRST), 4)
        wire = {f"server_{name}_test" for name in re.findall(r"pagoda_wire_test\((\w+)", lists)}
        self.assertLessEqual(set(sanitize.NEVER), wire)

    def test_programs_that_ran_are_counted_by_sanitizer(self):
        tests = [shell("a", "true"), shell("b", "false"), made_test("a", "tsan", command=["true"]), shell("slow_build", "")]
        self.assertIn("ran: 2 under ASan and UBSan, 1 under TSan\n", self.outcome(tests)[2])

    def test_what_is_never_run_is_named_with_its_reason(self):
        python = ["/usr/bin/python3", "a.py"]
        dev = [made_test("quick", labels=["threads"]), made_test("sums", labels=["slow", "threads"]),
               made_test("oracle", labels=["slow"]), made_test("gemma", labels=["long", "threads"]),
               made_test("server_flat_test", labels=["slow", "wire"], command=python),
               made_test("server_page_test", labels=["slow", "wire"], command=python),
               made_test("server_chat_test", labels=["slow", "wire"], command=python)]
        tsan = [sanitize.Test("tsan", {"name": test.name, "command": test.command,
                                       "properties": [{"name": "LABELS", "value": sorted(test.labels)}]}) for test in dev]
        said = {}
        for limited in (False, True):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                sanitize.print_never_run(dev + tsan, limited)
            said[limited] = [line.strip() for line in out.getvalue().splitlines()]
        self.assertEqual(said[False], [
            f"never run under ASan and UBSan, {sanitize.SLOW}: sums, oracle",
            f"never run under ASan and UBSan, {sanitize.LONG}: gemma",
            f"never run under ASan and UBSan, {sanitize.NEVER['server_flat_test']}: server_flat_test",
            f"never run under ASan and UBSan, {sanitize.BROWSER}: server_page_test",
            f"never run under TSan, {sanitize.LONG}: gemma",
            f"never run under TSan, {sanitize.WIRE_WITHOUT_TSAN}: server_flat_test, server_page_test, server_chat_test"])
        self.assertEqual(set(said[True]) - set(said[False]), {
            f"left to make sanitize under ASan and UBSan, {sanitize.IN_PYTHON}: server_chat_test",
            f"left to make sanitize under TSan, {sanitize.SLOW_THREADS}: sums"})
        self.assertLessEqual(set(said[False]), set(said[True]))


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
