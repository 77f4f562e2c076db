"""tools/test_emulated_x86 in a folder of its own, with programs that only say how they were called: which
packages it takes on each release, and that one failing call of ctest hides no other."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import python_tests  # noqa: E402

# As apt-cache of these releases says: package, then what it depends on.
RELEASES = {
    "12": {"libfmt-dev": ["libfmt9"], "libgtest-dev": ["googletest"], "libgmock-dev": ["libgtest-dev"],
           "libssl-dev": ["libssl3"], "libssl3": ["libc6", "debconf"], "zlib1g-dev": ["zlib1g", "|libc6-dev", "<libc-dev>"],
           "libfmt9": ["libc6", "libgcc-s1", "libstdc++6"], "zlib1g": ["libc6"]},
    "13": {"libfmt-dev": ["libfmt10"], "libssl-dev": ["libssl3t64"], "libssl3t64": ["libc6", "libzstd1", "zlib1g"],
           "zlib1g-dev": ["zlib1g", "libc6-dev"], "libfmt10": ["libc6", "libstdc++6"]},
}
LIBRARIES = {"12": {"libfmt9", "libssl3", "zlib1g"}, "13": {"libfmt10", "libssl3t64", "libzstd1", "zlib1g"}}


class EmulatedX86(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.log = os.path.join(self.path, "log")
        self.programs = os.path.join(self.path, "bin")
        os.makedirs(os.path.join(self.path, "tools"))
        os.mkdir(self.programs)
        for name in ("tools/test_emulated_x86", "tools/setup.sh"):
            shutil.copy(os.path.join(SOURCE, name), os.path.join(self.path, name))
        with open(os.path.join(self.path, "packages.txt"), "w"):
            pass  # nothing is missing
        for name in ("apt-get", "cmake", "dpkg"):
            self.program(name, "")

    def program(self, name, body):
        path = os.path.join(self.programs, name)
        with open(path, "w") as file:
            file.write(f'#!/bin/bash\necho "{name} $*" >>"{self.log}"\n{body}\n')
        os.chmod(path, 0o755)

    def run_tool(self, release, ctest="exit 0"):
        """Status, what it said, and the calls by program."""
        lines = [f'{package}) printf "  %s\\n" "{package}"' + "".join(
            f'; echo "{" |" if on.startswith("|") else "  "}Depends: {on.lstrip("|")}"' for on in needs) + " ;;"
            for package, needs in RELEASES[release].items()]
        self.program("apt-cache", 'for word; do case $word in\n' + "\n".join(lines) + "\nesac; done")
        self.program("ctest", ctest)
        with open(os.path.join(self.path, "os-release"), "w") as file:
            file.write(f'ID=debian\nVERSION_ID="{release}"\n')
        if os.path.exists(self.log):
            os.remove(self.log)
        done = subprocess.run(["bash", os.path.join(self.path, "tools/test_emulated_x86")], capture_output=True, text=True,
                              env={"PATH": f"{self.programs}:{os.environ['PATH']}", "HOME": self.path,
                                   "PAGODA_OS_RELEASE": os.path.join(self.path, "os-release")})
        calls = {}
        with open(self.log) as file:
            for line in file.read().splitlines():
                calls.setdefault(line.split(" ")[0], []).append(line)
        return done.returncode, done.stdout + done.stderr, calls

    def downloaded(self, calls):
        line = next(line for line in calls["apt-get"] if " download " in line)
        return line.split(" download ")[1].split()

    def test_the_names_of_libraries_are_those_of_the_release(self):
        for release, libraries in LIBRARIES.items():
            status, said, calls = self.run_tool(release)
            self.assertEqual(status, 0, said)
            packages = self.downloaded(calls)
            self.assertEqual({name for name in packages if not name.endswith("-dev")}, libraries, release)
            self.assertEqual(len(set(packages)), len(packages))
            self.assertLessEqual({"libfmt-dev", "libpcre2-dev", "libutf8proc-dev", "libxxhash-dev"}, set(packages))

    def test_what_was_unpacked_is_kept_until_the_release_changes(self):
        self.run_tool("12")
        self.assertNotIn("apt-get", self.run_tool("12")[2])
        self.assertIn("apt-get", self.run_tool("13")[2])

    def test_nothing_is_built_that_needs_what_is_not_unpacked(self):
        configure = self.run_tool("12")[2]["cmake"][0]
        for name in ("ZMQ", "REDIS", "MPI", "URING"):
            self.assertIn(f"-DPAGODA_{name}=OFF", configure)

    def test_both_calls_of_ctest_run_and_each_failure_is_told(self):
        answers = 'case "$*" in *invariance*) exit 8 ;; esac'
        quick = 'case "$*" in *invariance*) ;; *) exit 8 ;; esac'
        for ctest, failed in (("exit 0", []), (quick, ["the quick tests"]), (answers, ["invariance and the oracle"]),
                              ("exit 8", ["the quick tests", "invariance and the oracle"])):
            status, said, calls = self.run_tool("13", ctest)
            self.assertEqual(status != 0, bool(failed), said)
            self.assertEqual(len(calls["ctest"]), 2)
            self.assertEqual(re.findall("failed under emulation: (.*)", said), failed)

    def test_the_programs_named_exist(self):
        quick, answers = self.run_tool("12")[2]["ctest"]
        named = re.search(r"--exclude-regex \^\((.*?)\)\$", quick)[1] + "|" + re.search(r"--tests-regex \^\((.*?)\)\$", answers)[1]
        lists = ""
        for folder, _, names in os.walk(os.path.join(SOURCE, "tests")):
            if "CMakeLists.txt" in names:
                with open(os.path.join(folder, "CMakeLists.txt")) as file:
                    lists += file.read()
        for name in named.split("|"):
            self.assertIn(f"pagoda_test({name}", lists)
        for name in ("invariance_test", "ranks_invariance_test", "page_selection_model_test", "oracle_test"):
            self.assertIn(name, answers)


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
