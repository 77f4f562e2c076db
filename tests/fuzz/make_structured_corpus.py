#!/usr/bin/env python3
"""Writes corpus/schema (every 40th schema of tests/data/structured, and some that are refused) and
corpus/gbnf (grammars and regular expressions, right and wrong).

    tests/fuzz/make_structured_corpus.py
"""
import json
import pathlib

HERE = pathlib.Path(__file__).parent
VERDICTS = HERE.parent / "data" / "structured" / "schema_verdicts.jsonl"
SCHEMAS = [
    '{"not": {}}',
    '{"$ref": "#"}',
    '{"anyOf": [{"$ref": "#"}, {"type": "null"}]}',
    '{"type": "array", "items": {"$ref": "#"}}',
    '{"oneOf": [{"type": "integer"}, {"type": "number"}]}',
    '{"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5000}',
    '{"type": "string", "format": "date-time"}',
    '{"type": "number", "minimum": -1.5, "exclusiveMaximum": 1e3}',
    '{"type": "integer", "multipleOf": 7}',
    '{"type": "number", "multipleOf": 0.01, "minimum": 0}',
    '{"enum": ["a", 1, null, {"b": [2]}], "minLength": 1}',
    '{"properties": {"a": {}}, "required": ["b"], "additionalProperties": {"type": "string"}}',
    '{"prefixItems": [{}, true], "items": false, "minItems": 1, "maxItems": 4}',
    '{"allOf": [{"anyOf": [{"minimum": 1}, {"maximum": 5}]}, {"anyOf": [{}, {}]}]}',
    'false',
]
GRAMMARS = [
    'root ::= "yes" | "no"',
    'root ::= "(" root ")" | [a-z]+ # a comment\n',
    'root ::= root "a" | "b"',
    'root ::= a{2,5} b?\na ::= [^\\n"]\nb ::= "\\x41\\u00e9\\U0001F600"',
    'root ::= (\n "a" |\n . )*',
    'root ::= "a"{,3} missing',
    "(a|b)*abb",
    "^[a-z]{2,40}(?:-\\d+)?$",
    "(?<y>\\d{4})[^\\w\\s]\\u00e9",
    "((a?){3}){4}",
    "(?=a)",
    "[z-a",
]


def write(folder, entries):
    (HERE / "corpus" / folder).mkdir(parents=True, exist_ok=True)
    for number, entry in enumerate(entries):
        (HERE / "corpus" / folder / f"{number:02}").write_text(entry, encoding="utf-8")


lines = VERDICTS.read_text(encoding="utf-8").splitlines()[1:]
drawn = [json.dumps(json.loads(line)["s"], ensure_ascii=False) for line in lines[::40]]
write("schema", SCHEMAS + drawn)
write("gbnf", GRAMMARS)
