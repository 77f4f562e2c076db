"""Links of the project's pages lead to files and headings that exist, paths and files in backticks are
there, and flags and metrics that docs/guide/migrate.md calls Pagoda's are Pagoda's."""

import glob
import os
import re
import subprocess
import sys
import unittest

import pages
import served

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"")
PATH = re.compile(r"`((?:src|tests|docs|bench|microbench|tools|cmake)/[\w./*-]+)`")
# Pages that must name only paths that are there; notes tell of what was, too.
EXACT_PAGES = ["README.md", "CONTRIBUTING.md", "docs/benchmarks.md", "docs/glossary.md"]
FILE = re.compile(r"`([\w./-]+\.(?:h|cc|cu|cuh|py|cmake))`")
MIGRATE = "docs/guide/migrate.md"


def anchor(heading):
    """GitHub's name of a heading."""
    words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page):
    names = set()
    for heading in re.findall(r"^#+ +(.*)$", pages.without_blocks(page), re.M):
        name, count = anchor(heading), 0
        while name in names:
            count += 1
            name = f"{anchor(heading)}-{count}"
        names.add(name)
    return names


def rows_below(heading):
    """Cells of the tables below a heading of MIGRATE, up to the next one of its level, row by row."""
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", pages.read(MIGRATE), re.M | re.S).group(1)
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("|---")]
    assert len(rows) > 5, heading
    return [re.split(r"(?<!\\)\|", row.strip().strip("|")) for row in rows]


def pagodas_column(heading):
    return [cells[-1] for cells in rows_below(heading)]


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self):
        count = 0
        for page in pages.all_pages():
            for groups in LINK.findall(pages.without_blocks(page)):
                target = next(filter(None, groups))
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, heading = target.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                self.assertTrue(os.path.exists(os.path.join(pages.SOURCE, there)), f"{page}: {target}")
                if heading and there.endswith(".md"):
                    self.assertIn(heading, anchors(there), f"{page}: {target}")
                count += 1
        self.assertGreater(count, 50)

    def test_paths_in_backticks_are_there(self):
        count = 0
        for page in EXACT_PAGES + pages.guides()[1:]:
            for path in PATH.findall(pages.without_blocks(page)):
                self.assertTrue(glob.glob(os.path.join(pages.SOURCE, path)), f"{page}: {path}")
                count += 1
        self.assertGreater(count, 10)

    def test_files_in_backticks_are_there(self):
        """`core.h` is any file of that name, `engine/core.h` one in such a folder."""
        ends = {path[at:] for path in pages.files() for at in [0, *(i + 1 for i, c in enumerate(path) if c == "/")]}
        count = 0
        for page in pages.all_pages():
            if page.startswith("tests/data/"):
                continue
            for name in FILE.findall(pages.without_blocks(page)):
                self.assertIn(name, ends, page)
                count += 1
        self.assertGreater(count, 100)

    def test_the_index_names_every_guide(self):
        index = pages.read("docs/guide/index.md")
        for guide in pages.guides()[1:]:
            if not guide.endswith("index.md"):
                self.assertIn(f"({os.path.basename(guide)}", index)

    def test_the_readme_is_short(self):
        self.assertLessEqual(pages.read("README.md").count("\n"), 150)


class Migration(unittest.TestCase):
    def test_flags_called_pagodas_exist(self):
        named = {flag for cell in pagodas_column("Flags") for flag in re.findall(r"--[a-z][a-z-]+", cell)}
        commands = (["serve"], ["chat"], ["run"], ["verify"], ["bench", "serve"])
        known = "".join(subprocess.run([served.BINARY, *command, "--help"], check=True, capture_output=True,
                                       text=True).stdout for command in commands)
        self.assertGreater(len(named), 25)
        self.assertEqual({flag for flag in named if not re.search(rf"{flag}\b(?!-)", known)}, set())

    def test_flags_called_anothers_are_answered_by_name(self):
        cells = [cell for row in rows_below("Flags") for cell in row[1:-1]]
        named = {flag for cell in cells for flag in re.findall(r"`(--?[a-z][a-z_-]+)", cell)}
        help_text = subprocess.run([served.BINARY, "serve", "--help"], check=True, capture_output=True,
                                   text=True).stdout
        others = sorted(flag for flag in named
                        if not re.search(rf"(?<![\w-]){flag.replace('_', '-')}\b(?!-)", help_text))
        self.assertGreater(len(others), 60)
        for flag in others:
            words = [served.BINARY, "serve", flag, "1", "--port", "none"]  # no server is started
            done = subprocess.run(words, capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, flag)
            self.assertRegex(done.stderr, rf"unknown option {flag} \(|'s {flag} does nothing here: ")

    def test_metrics_called_pagodas_exist(self):
        cells = pagodas_column("Metrics")
        named = {name for cell in cells for name in re.findall(r"`((?:vllm|pagoda|llamacpp):\w+)", cell)}
        with served.Served(served.STORIES, "--kv-host-size", "1MiB") as server:
            text = server.request("GET", "/metrics")[1]
        families = set(re.findall(r"^# TYPE (\S+) ", text, re.M))
        self.assertGreater(len(named), 15)
        self.assertEqual(named - families, set())


if __name__ == "__main__":
    served.run(sys.modules[__name__])
