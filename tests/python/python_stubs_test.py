"""_pagoda.pyi, which type checkers read, beside the compiled module: names, arguments, defaults, types."""

import ast
import inspect
import os
import re
import sys
import unittest

from python_case import SOURCE

import python_tests
from pagoda import _pagoda


def canonical(annotation):
    """One spelling of a type, without modules: "Optional[int]" is "int | None"."""
    text = re.sub(r"\b(?:[\w]+\.)+(?=\w)", "", annotation).replace(" ", "").replace("List[", "Sequence[")
    tree = ast.parse(text, mode="eval").body

    def written(node):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Optional", "Union"):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            names = [written(part) for part in parts]
            return "|".join(sorted(names + ["None"] * (ast.unparse(node.value) == "Optional")))
        if isinstance(node, ast.BinOp):
            return "|".join(sorted([*written(node.left).split("|"), *written(node.right).split("|")]))
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            return f"{written(node.value)}[{','.join(written(part) for part in parts)}]"
        return ast.unparse(node)

    return written(tree)


def described(text, defaults=()):
    """(positional-only?, name, type, default) of each argument, and the type of the result. Names of arguments
    that are given by their place alone do not matter."""
    text = re.sub(r"\\(\d+)", lambda index: repr(defaults[int(index[1])]), text)
    text = text.replace("def (", "def get(", 1)
    function = ast.parse(text.rstrip(": .") + ": ...").body[0]
    arguments, found = function.args, []
    every = [*arguments.posonlyargs, *arguments.args]
    values = [None] * (len(every) - len(arguments.defaults)) + arguments.defaults
    for place, (argument, value) in enumerate(zip(every, values)):
        if argument.arg == "self":
            continue
        by_place = place < len(arguments.posonlyargs)
        found.append((by_place, "" if by_place else argument.arg, canonical(ast.unparse(argument.annotation)),
                      None if value is None else ast.literal_eval(value)))
    assert not arguments.kwonlyargs and not arguments.vararg and not arguments.kwarg
    return found, canonical(ast.unparse(function.returns))


def loaded_text(function):
    signatures = function.__nb_signature__
    assert len(signatures) == 1, signatures
    text, _, defaults = signatures[0]
    return text, defaults or ()


def public(thing):
    return {name for name in vars(thing) if not name.startswith("_")}


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(SOURCE, "python/pagoda/_pagoda.pyi")) as file:
            cls.tree = ast.parse(file.read())

    def compare(self, body, loaded, where):
        written = {}
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                written[node.name] = node
            elif isinstance(node, ast.AnnAssign):
                written[node.target.id] = node
        self.assertEqual({name for name in written if not name.startswith("_")}, public(loaded), where)
        for name, node in written.items():
            if name.startswith("_") and name != "__init__":
                continue
            with self.subTest(f"{where}.{name}"):
                self.compare_one(node, loaded, f"{where}.{name}")

    def compare_one(self, node, loaded, where):
        thing = inspect.getattr_static(loaded, node.target.id if isinstance(node, ast.AnnAssign) else node.name)
        if isinstance(node, ast.ClassDef):
            self.compare(node.body, thing, where)
        elif isinstance(node, ast.AnnAssign) and isinstance(thing, str):
            self.assertEqual(ast.unparse(node.annotation), "str")
        elif isinstance(node, ast.AnnAssign):
            self.assertIsNotNone(thing.fset, "it can be set")
            returned = described(*loaded_text(thing.fget))[1]
            self.assertEqual(canonical(ast.unparse(node.annotation)), returned)
        elif any(ast.unparse(each) == "property" for each in node.decorator_list):
            self.assertIsNone(thing.fset, "it cannot be set")
            returned = described(*loaded_text(thing.fget))[1]
            written = canonical(ast.unparse(node.returns))
            # The module does not say what is in a dict of Python.
            self.assertEqual("dict" if returned == "dict" and written.startswith("dict[") else written, returned)
        else:
            node = ast.FunctionDef(node.name, node.args, [ast.Expr(ast.Constant(...))], [], node.returns,
                                   lineno=0, type_params=[])
            text = ast.unparse(node).split("\n")[0]
            self.assertEqual(described(text), described(*loaded_text(getattr(loaded, node.name))))

    def test_they_are_what_the_module_has(self):
        self.compare(self.tree.body, _pagoda, "_pagoda")


if __name__ == "__main__":
    python_tests.run(sys.modules[__name__])
