"""The pages that people read, and the fenced blocks in them."""

import collections
import glob
import os
import re
import sys

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests"))
sys.path.insert(0, os.path.join(SOURCE, "tests/server/wire"))

# `language` is the first word behind the fence, "" where there is none.
Block = collections.namedtuple("Block", "page line language text")

FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.S | re.M)


def read(page):
    with open(os.path.join(SOURCE, page)) as file:
        return file.read()


def guides():
    """README.md and the guides, whose shell blocks are run."""
    paths = glob.glob(os.path.join(SOURCE, "docs/guide/*.md"))
    return ["README.md"] + sorted(os.path.relpath(path, SOURCE) for path in paths)


def files():
    """Every file of the project; what a build left lying about is none of it."""
    found = []
    for folder, folders, names in os.walk(SOURCE):
        folders[:] = [f for f in folders if not f.startswith((".", "build")) and f not in ("shared", "carry")]
        found += [os.path.relpath(os.path.join(folder, name), SOURCE) for name in names]
    return sorted(found)


def all_pages():
    return [path for path in files() if path.endswith(".md")]


def blocks(page):
    text = read(page)
    for match in FENCE.finditer(text):
        indent, info = match["indent"], match["info"].strip()
        body = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
        yield Block(page, text.count("\n", 0, match.start()) + 1, info.split(" ")[0], body)


def without_blocks(page):
    """The page with its fenced blocks blanked, line by line."""
    return FENCE.sub(lambda m: "\n" * m[0].count("\n"), read(page))
