#!/usr/bin/env python3
"""Draws JSON schemas and documents, and asks jsonschema, xgrammar and llguidance about each pair.

    python3 -m venv env && env/bin/pip install -r structured/requirements.txt
    env/bin/python make_schema_verdicts.py > structured/schema_verdicts.jsonl

The first line says what was asked and where the three differ; each other line is a schema with its
documents: {"s": schema, "d": [[text, verdicts], …]}. Verdicts are letters: "j" jsonschema finds the
document valid (it decides), "x" xgrammar takes it, "l" llguidance takes it, "w" the document was
written for the schema, its members in the schema's order: a grammar should take it if it is valid.
X and L in the place of x and l: the program refused the schema.
"""
import json
import random
import sys
from importlib.metadata import version

import jsonschema
import llguidance
import xgrammar
from xgrammar.testing import _is_grammar_accept_string

SCHEMAS = 2000
DOCUMENTS = 5
SEED = 20261116
WORDS = ["a", "b", "id", "name", "size", "größe", "x y", "kind", "tail", "été", "q\"q", "n_1"]
TEXTS = ["", "a", "ab", "abc", "hello", "größer", "日本", "a\"b", "back\\slash", "line\nend", "😀😀",
         "tab\there", "long text " * 3, "null", "{}", "0"]
PATTERNS = [("^[a-z]+$", "abc"), ("^[A-Z]{2,4}$", "ABC"), ("^\\d{3}-\\d{2}$", "123-45"),
            ("^(red|green)$", "red"), ("b+", "abbc"), ("^x", "xyz"), ("[0-9]$", "a7"),
            ("^a.c$", "abc"), ("^[^a-c]*$", "xyz")]
FORMATS = [("date", "2024-02-29"), ("ipv4", "127.0.0.1"), ("uuid",
           "123e4567-e89b-12d3-a456-426614174000"), ("ipv6", "fe80::1")]


class Drawer:
    """Schemas of the supported language, and values for them."""

    def __init__(self, rng):
        self.rng = rng
        self.defs = {}

    def schema(self, depth):
        kinds = [self.null, self.boolean, self.integer, self.number, self.string, self.string,
                 self.integer, self.enum]
        if depth > 0:
            kinds += [self.array, self.object, self.object, self.object, self.any_of, self.one_of,
                      self.all_of, self.tuple, self.tree]
        return self.rng.choice(kinds)(depth)

    def null(self, depth):
        return {"type": "null"}

    def boolean(self, depth):
        return {"type": "boolean"}

    def integer(self, depth):
        schema = {"type": "integer"}
        low = self.rng.randint(-120, 120)
        if self.rng.random() < 0.5:
            schema[self.rng.choice(["minimum", "exclusiveMinimum"])] = low
        if self.rng.random() < 0.5:
            schema[self.rng.choice(["maximum", "exclusiveMaximum"])] = low + self.rng.randint(2, 300)
        if self.rng.random() < 0.15:
            schema = {"type": "integer", "multipleOf": self.rng.choice([2, 3, 5, 10, 25])}
        return schema

    def number(self, depth):
        schema = {"type": "number"}
        low = self.rng.choice([self.rng.randint(-9, 9), round(self.rng.uniform(-5, 5), 2)])
        if self.rng.random() < 0.6:
            schema[self.rng.choice(["minimum", "exclusiveMinimum"])] = low
        if self.rng.random() < 0.6:
            high = round(low + self.rng.uniform(0.5, 20), 1)
            schema[self.rng.choice(["maximum", "exclusiveMaximum"])] = high
        return schema

    def string(self, depth):
        schema = {"type": "string"}
        draw = self.rng.random()
        if draw < 0.15:
            schema["pattern"] = self.rng.choice(PATTERNS)[0]
        elif draw < 0.25:
            schema["format"] = self.rng.choice(FORMATS)[0]
        elif draw < 0.7:
            low = self.rng.randint(0, 4)
            if self.rng.random() < 0.6:
                schema["minLength"] = low
            if self.rng.random() < 0.6:
                schema["maxLength"] = low + self.rng.randint(0, 12)
        return schema

    def enum(self, depth):
        values = self.rng.sample([1, 2.5, None, True, "a", "red", "größe", "a\"b", -7, [1, 2],
                                  {"k": "v"}, "", "red green"], self.rng.randint(1, 4))
        return {"const": values[0]} if len(values) == 1 else {"enum": values}

    def array(self, depth):
        schema = {"type": "array", "items": self.schema(depth - 1)}
        low = self.rng.randint(0, 3)
        if self.rng.random() < 0.4:
            schema["minItems"] = low
        if self.rng.random() < 0.4:
            schema["maxItems"] = low + self.rng.randint(0, 4)
        return schema

    def tuple(self, depth):
        schema = {"type": "array",
                  "prefixItems": [self.schema(depth - 1) for _ in range(self.rng.randint(1, 3))]}
        schema["items"] = self.rng.choice([False, {"type": "integer"}])
        if self.rng.random() < 0.5:
            schema["minItems"] = self.rng.randint(0, len(schema["prefixItems"]))
        return schema

    def members(self, depth, names):
        properties = {name: self.schema(depth - 1) for name in names}
        required = [name for name in names if self.rng.random() < 0.6]
        return properties, required

    def object(self, depth):
        names = self.rng.sample(WORDS, self.rng.randint(0, 4))
        properties, required = self.members(depth, names)
        schema = {"type": "object"}
        if names:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        schema["additionalProperties"] = self.rng.choice([False, False, False, {"type": "integer"},
                                                          True])
        return schema

    def any_of(self, depth):
        return {"anyOf": [self.schema(depth - 1) for _ in range(self.rng.randint(2, 3))]}

    def one_of(self, depth):
        if self.rng.random() < 0.5:
            return {"oneOf": [{"type": "integer", "maximum": 4}, {"type": "string"},
                              {"type": "integer", "minimum": 5}]}
        return {"oneOf": [
            {"type": "object", "properties": {"kind": {"const": kind}, "v": self.schema(depth - 1)},
             "required": ["kind", "v"], "additionalProperties": False} for kind in ("a", "b")]}

    def all_of(self, depth):
        names = self.rng.sample(WORDS, 4)
        first, first_required = self.members(depth, names[:2])
        second, second_required = self.members(depth, names[2:])
        schema = {"type": "object", "properties": first,
                  "allOf": [{"properties": second}]}
        if first_required:
            schema["required"] = first_required
        if second_required:
            schema["allOf"][0]["required"] = second_required
        return schema

    def tree(self, depth):
        self.defs["tree"] = {"type": "object", "properties": {
            "v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
            "required": ["v"], "additionalProperties": False}
        return {"$ref": "#/$defs/tree"}

    # Values.

    def value(self, schema, depth=0):
        if schema is True:
            return self.rng.choice([1, "x", None, [], {}])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(self.rng.choice(schema[key]), depth)
        if "$ref" in schema:
            node = {"v": self.rng.randint(-5, 5)}
            if self.rng.random() < 0.6:
                node["next"] = self.value(schema, depth + 1) if depth < 3 else None
            return node
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.rng.choice(schema["enum"])
        return getattr(self, "value_" + schema["type"])(schema, depth)

    def value_null(self, schema, depth):
        return None

    def value_boolean(self, schema, depth):
        return self.rng.random() < 0.5

    def value_integer(self, schema, depth):
        if "multipleOf" in schema:
            return schema["multipleOf"] * self.rng.randint(-30, 30)
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        low = low if low is not None else (high if high is not None else 0) - 50
        high = high if high is not None else low + 50
        return self.rng.randint(low - 1, high + 1)

    def value_number(self, schema, depth):
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        low = low if low is not None else (high if high is not None else 0) - 5
        high = high if high is not None else low + 5
        draw = self.rng.choice([low, high, self.rng.uniform(low - 1, high + 1),
                                self.rng.uniform(low, high)])
        return round(draw, self.rng.randint(1, 3)) + 0

    def value_string(self, schema, depth):
        if "pattern" in schema:
            return self.rng.choice([dict(PATTERNS)[schema["pattern"]], "abc", "ab", "x1"])
        if "format" in schema:
            return self.rng.choice([dict(FORMATS)[schema["format"]]] * 3 + ["none"])
        if "minLength" in schema or "maxLength" in schema:
            length = self.rng.randint(schema.get("minLength", 0),
                                      schema.get("maxLength", schema.get("minLength", 0) + 5))
            return "".join(self.rng.choice("abé日😀\"\\\n z") for _ in range(length))
        return self.rng.choice(TEXTS)

    def value_array(self, schema, depth):
        if "prefixItems" in schema:
            count = self.rng.randint(schema.get("minItems", 0), len(schema["prefixItems"]))
            values = [self.value(item, depth + 1) for item in schema["prefixItems"][:count]]
            if schema["items"] is not False and count == len(schema["prefixItems"]):
                values += [self.value(schema["items"], depth + 1)] * self.rng.randint(0, 2)
            return values
        low = schema.get("minItems", 0)
        count = self.rng.randint(low, schema.get("maxItems", low + 3))
        return [self.value(schema["items"], depth + 1) for _ in range(count)]

    def value_object(self, schema, depth):
        parts = [schema] + schema.get("allOf", [])
        result = {}
        for part in parts:
            for name, member in part.get("properties", {}).items():
                if name in part.get("required", []) or self.rng.random() < 0.5:
                    result[name] = self.value(member, depth + 1)
        more = schema.get("additionalProperties", False)
        if more is not False and self.rng.random() < 0.5:
            result["other"] = self.value(more, depth + 1)
        return result


def spoil(rng, value):
    """The value with one thing changed."""
    if isinstance(value, dict) and value and rng.random() < 0.7:
        name = rng.choice(list(value))
        changed = dict(value)
        draw = rng.random()
        if draw < 0.3:
            del changed[name]
        elif draw < 0.5:
            changed["unknown"] = 1
        elif draw < 0.6 and len(value) > 1:
            return dict(reversed(list(value.items())))
        else:
            changed[name] = spoil(rng, value[name])
        return changed
    if isinstance(value, list) and value and rng.random() < 0.7:
        index = rng.randrange(len(value))
        return rng.choice([value + [value[-1]], value[:-1],
                           value[:index] + [spoil(rng, value[index])] + value[index + 1:]])
    if isinstance(value, str) and rng.random() < 0.6:
        return rng.choice([value + "x", value[:-1], value * 2])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.6:
        return rng.choice([value + 1, value - 1, value * 10, -value, value + 0.5])
    return rng.choice([None, True, 7, "text", [], {}, 3.25])


def damage(rng, text):
    """The text with a byte or two changed: hardly JSON any more."""
    at = rng.randrange(len(text) + 1)
    return rng.choice([text[:at] + text[at + 1:], text[:at] + rng.choice("{}[],:\"0 ") + text[at:],
                       text + rng.choice(["}", "]", ",", " x"])])


def written(rng, value):
    style = rng.choice([{"separators": (",", ":")}, {}, {"indent": 2}])
    return json.dumps(value, ensure_ascii=False, **style)


class Oracles:
    def __init__(self):
        self.tokenizer = llguidance.LLTokenizer("byte")
        self.checker = jsonschema.FormatChecker(["date", "ipv4", "ipv6", "uuid"])

    def prepare(self, schema):
        self.valid = jsonschema.Draft202012Validator(schema, format_checker=self.checker)
        text = json.dumps(schema, ensure_ascii=False)
        try:
            self.xgrammar = xgrammar.Grammar.from_json_schema(text, strict_mode=False)
        except Exception:  # it refuses with several types
            self.xgrammar = None
        grammar = llguidance.LLMatcher.grammar_from_json_schema(text)
        self.llguidance = grammar
        if llguidance.LLMatcher(self.tokenizer, grammar).is_error():
            self.llguidance = None

    def verdicts(self, text):
        letters = ""
        try:
            value = json.loads(text)
            letters += "j" if self.valid.is_valid(value) else ""
        except ValueError:
            pass
        if self.xgrammar is None:
            letters += "X"
        elif _is_grammar_accept_string(self.xgrammar, text):
            letters += "x"
        if self.llguidance is None:
            return letters + "L"
        matcher = llguidance.LLMatcher(self.tokenizer, self.llguidance)
        tokens = self.tokenizer.tokenize_bytes(text.encode())
        took_all = matcher.try_consume_tokens(tokens) == len(tokens)
        return letters + ("l" if took_all and matcher.is_accepting() else "")


def main():
    rng = random.Random(SEED)
    oracles = Oracles()
    lines = []
    counts = {}
    while len(lines) < SCHEMAS:
        drawer = Drawer(rng)
        schema = drawer.schema(rng.randint(0, 3))
        if drawer.defs:
            schema = {**schema, "$defs": drawer.defs}
        oracles.prepare(schema)
        documents = []
        for i in range(DOCUMENTS):
            value = drawer.value(schema)
            mark = "w"
            if i >= 2:
                value = spoil(rng, value)
                mark = ""
            text = written(rng, value)
            if i == DOCUMENTS - 1 and rng.random() < 0.5:
                text = damage(rng, text)
            verdicts = oracles.verdicts(text)
            documents.append([text, verdicts + mark])
            valid = "j" in verdicts
            for name, letter in (("xgrammar", "x"), ("llguidance", "l")):
                if letter.upper() in verdicts:
                    kind = "refuses the schema"
                elif valid == (letter in verdicts):
                    continue
                elif valid:
                    kind = "refuses a valid document" + (" in order" if mark else "")
                else:
                    kind = "takes an invalid document"
                key = f"{name} {kind}"
                counts[key] = counts.get(key, 0) + 1
        lines.append({"s": schema, "d": documents})
        if len(lines) % 200 == 0:
            print(len(lines), file=sys.stderr)
    head = {"pairs": SCHEMAS * DOCUMENTS, "seed": SEED, "jsonschema": version("jsonschema"),
            "xgrammar": version("xgrammar"), "llguidance": version("llguidance"),
            "differences": dict(sorted(counts.items()))}
    print(json.dumps(head))
    for line in lines:
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))


if __name__ == "__main__":
    main()
