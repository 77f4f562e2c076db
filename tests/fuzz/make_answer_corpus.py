#!/usr/bin/env python3
"""Writes corpus/answer: answers in the formats of model families behind two bytes that choose a
form and the cuts.

    tests/fuzz/make_answer_corpus.py
"""
import pathlib

FOLDER = pathlib.Path(__file__).parent / "corpus" / "answer"
JSON = '{"name": "f", "arguments": {"s": "a\\n", "n": 1}}'
TEXTS = [
    f"<think>\nt\n</think>\n\nc<tool_call>\n{JSON}\n</tool_call>\n<tool_call>{JSON[:-3]}",
    "<tool_call>\n<function=f>\n<parameter=s>\nx\n</parameter>\n<parameter=n>\n2\n</parameter>\n"
    "</function>\n</tool_call>",
    "<tool_call>f\n<arg_key>s</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
    f"[TOOL_CALLS][{JSON}, {JSON}]",
    '[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{"n": [1, {"a": null}]}',
    "[f(s='x', n=1), f(n={'a': [True, None]})]",
    '<|tool_call>call:f{s:<|"|>x<|"|>,n:{a:[1]}}<tool_call|>',
    "<|channel|>analysis<|message|>t<|end|><|start|>assistant<|channel|>commentary "
    'to=functions.f <|constrain|>json<|message|>{"n": 1}',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"n": 1}'
    "<|tool_call_end|><|tool_calls_section_end|>",
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="s" string="true">x'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    f"<|python_tag|>{JSON}; {JSON}",
    f"<think>\nPerhaps <tool_call>{JSON}</tool_call>?\n</think>\n\nc <tool_call>{JSON}</tool_call>\nd",
    f"<think>\nt <tool_call>{JSON}</tool_call>\n<tool_call>{JSON}</tool_call>\n",
    "<function=f>\n<parameter=s>\n</parameter>\nx\n</parameter>\n</function>\n</tool_call>",
    f'<|tools_prefix|>[{{"f": {{"n": 1}}}}]<|tools_suffix|>',
]

FOLDER.mkdir(parents=True, exist_ok=True)
for number, text in enumerate(TEXTS):
    for form in range(0, 34):
        if (number + form) % 4 == 0:
            data = bytes([form | (form % 2 << 7), (number * 37 + form * 11) % 256]) + text.encode()
            (FOLDER / f"answer_{number:02}_{form:02}").write_bytes(data)
