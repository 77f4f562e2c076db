"""Every block of README.md and the guides that is marked `sh` runs as it is printed.

A block runs by `bash -eu` in a folder of its own page, in order. There
- build/pagoda and pagoda are the program; `serve` is stopped once it has printed its address,
- the default model is the one of this machine, or the bundled one where there is none,
- http://127.0.0.1:8000 is a server of that model, and curl fails where a reply has an error status,
- the files that Folder makes are there.
What needs a GPU, a network, a peer or minutes is marked `shell`, and is not run.
"""

import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import pages
import served

ADDRESS = "http://127.0.0.1:8000"
BLOCK_SECONDS = 100
PAGES_SECONDS = 240  # of processor time, of all blocks together: two minutes on two cores
# Languages that blocks may be marked with; of them `sh` is run.
LANGUAGES = {"sh", "shell", "console", "text", "json", "yaml", "cmake", "jinja", "mermaid", "ini",
             "python"}

# The program, which the blocks call build/pagoda. A server would never end: it is started on a free
# port, and stopped when it is ready.
PROGRAM = """#!/usr/bin/env python3
import os, subprocess, sys
words = sys.argv[1:]
if "TEMPLATE" in os.environ and (words[:1] in (["serve"], ["chat"], ["template"]) or "--chat" in words):
    os.environ["PAGODA_CHAT_TEMPLATE"] = os.environ["TEMPLATE"]  # the bundled model has none
if words[:1] != ["serve"] or "--help" in words:
    os.execv(os.environ["PAGODA_BINARY"], [os.environ["PAGODA_BINARY"]] + words)
if "--port" in words:
    words[words.index("--port") + 1] = "0"
else:
    words += ["--port", "0"]
server = subprocess.Popen([os.environ["PAGODA_BINARY"]] + words, stdout=subprocess.PIPE, text=True)
ready = any("try: curl" in line for line in server.stdout)
server.terminate()
sys.exit(server.wait() if ready else 1)
"""
CURL = """#!/bin/sh
exec {curl} -sS --fail-with-body "$@"
"""
PROMPT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]}
TRACE = os.path.join(served.SOURCE, "tests/data/traces/conversation_1000.jsonl.gz")


class Folder:
    """Where the blocks of one page run."""

    def __init__(self, model):
        self.folder = tempfile.TemporaryDirectory(prefix="pagoda-docs-")
        self.path = self.folder.name
        self.write("build/pagoda", PROGRAM, 0o755)
        self.write("bin/curl", CURL.format(curl=shutil.which("curl")), 0o755)
        os.symlink("../build/pagoda", self.inside("bin/pagoda"))
        for name in ("docs", "tests", "bench"):
            os.symlink(os.path.join(served.SOURCE, name), self.inside(name))
        cache = self.inside("cache/pagoda/models")
        os.makedirs(cache)
        os.symlink(model, os.path.join(cache, os.path.basename(served.DEFAULT_MODEL)))
        os.symlink(model, self.inside("model.gguf"))
        self.write("prompt.json", json.dumps(PROMPT))
        shutil.copy(TRACE, self.inside("trace.jsonl.gz"))
        with gzip.open(TRACE, "rt") as trace:
            self.write("trace.jsonl", trace.read())
        self.environment = {
            **os.environ,
            "HOME": self.inside("home"),
            "XDG_CACHE_HOME": self.inside("cache"),
            "PATH": self.inside("bin") + ":" + os.environ["PATH"],
            "PAGODA_KV_CACHE_MEMORY_BYTES": "64MiB",
        }
        del self.environment["PAGODA_KV_DISK"]  # the folders are nobody else's
        os.makedirs(self.environment["HOME"])
        if model == served.STORIES:
            self.write("template.jinja", served.STORY_TEMPLATE)
            self.environment["TEMPLATE"] = self.inside("template.jinja")

    def inside(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text, mode=0o644):
        path = self.inside(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def run(self, text):
        """(status, output) of a block; everything it started is ended."""
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", text], cwd=self.path, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, start_new_session=True,
        )
        try:
            output, _ = shell.communicate(timeout=BLOCK_SECONDS)
            return shell.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            return "none: it took too long", shell.communicate()[0]


class Blocks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = served.DEFAULT_MODEL if os.path.exists(served.DEFAULT_MODEL) else served.STORIES
        if cls.model == served.STORIES:
            assert not served.on_build_machine(), f"the default model is missing: {served.DEFAULT_MODEL}"
            cls.server = served.ChatServed()
        else:
            cls.server = served.Served(cls.model, "-c", "2048")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = spent.ru_utime + spent.ru_stime
        assert seconds < PAGES_SECONDS, f"blocks and their server took {seconds:.0f} s of processor time"

    def run_page(self, page):
        found = [block for block in pages.blocks(page) if block.language == "sh"]
        folder = Folder(self.model)
        with folder.folder:
            for block in found:
                begin = time.monotonic()
                status, output = folder.run(block.text.replace(ADDRESS, self.server.url))
                seconds = time.monotonic() - begin
                self.assertEqual(status, 0, f"{block.page}:{block.line}\n{block.text}\n{output}")
                print(f"    {block.page}:{block.line} {seconds:.1f} s", file=sys.stderr)

    def test_every_block_says_whether_it_is_run(self):
        for page in pages.guides():
            for block in pages.blocks(page):
                self.assertIn(block.language, LANGUAGES, f"{block.page}:{block.line}")

    def test_what_is_run_is_found(self):
        """A reader that finds nothing would pass."""
        run = [block for page in pages.guides() for block in pages.blocks(page) if block.language == "sh"]
        self.assertGreater(len(run), 15)
        self.assertGreater(sum(block.text.count("curl ") for block in run), 8)
        self.assertTrue(any(block.page == "README.md" for block in run))

    def test_a_block_that_fails_is_seen(self):
        folder = Folder(self.model)
        with folder.folder:
            for text in ("false\ntrue\n", "build/pagoda run --no-such-flag | cat\n",
                         f"curl {self.server.url}/no/such/path\n", "build/pagoda serve --max-num-seqs none\n"):
                self.assertNotEqual(folder.run(text)[0], 0, text)
            self.assertEqual(folder.run("build/pagoda --version\n")[0], 0)

    def test_the_line_that_a_server_prints_works(self):
        printed = re.search(r"^try: (curl .*)$", self.server.greeting, re.M).group(1)
        folder = Folder(self.model)
        with folder.folder:
            shorter = printed.replace('{"messages"', '{"max_tokens": 8, "messages"')
            status, output = folder.run(shorter)
        self.assertEqual(status, 0, output)
        self.assertEqual(json.loads(output)["choices"][0]["message"]["role"], "assistant")


class CurlWithTheBundledModel(unittest.TestCase):
    def test_every_curl_line_of_the_guide_to_the_server(self):
        folder = Folder(served.STORIES)
        with served.ChatServed() as server, folder.folder:
            blocks = [b.text for b in pages.blocks("docs/guide/serve.md") if b.text.startswith("curl ")]
            commands = [c for text in blocks for c in re.split(r"\n(?=curl )", text.strip())]
            self.assertGreaterEqual(len(commands), 8)
            for command in commands:
                status, output = folder.run(command.replace(ADDRESS, server.url))
                self.assertEqual(status, 0, output)
                if '"stream": true' in command:
                    self.assertGreater(len(served.stream_events(output)), 2)
                else:
                    self.assertNotIn("error", json.loads(output), command)


def page_test(page):
    return lambda self: self.run_page(page)


for _page in pages.guides():
    _name = re.sub(r"\W", "_", _page.removesuffix(".md"))
    setattr(Blocks, f"test_blocks_of_{_name}", page_test(_page))

if __name__ == "__main__":
    served.run(sys.modules[__name__])
