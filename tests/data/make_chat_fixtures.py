#!/usr/bin/env python3
"""Writes chat/prompts.json and chat/expressions.json: what Hugging Face transformers makes of the
templates in chat/templates with random conversations, and of snippets of template code. The ids
are by Hugging Face `tokenizers` with the default model's vocabulary. Also extracts that model's
own template to chat/templates/smollm2.jinja.

  pip install transformers jinja2 tokenizers gguf; python tests/data/make_chat_fixtures.py MODEL.gguf
"""

import copy
import datetime
import glob
import json
import os
import random
import sys

os.environ["TZ"] = "UTC"

import jinja2
import transformers.utils.chat_template_utils as chat
from gguf import GGUFReader
from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from chat_expressions import snippets
from hf_tokenizer import CONTROL, byte_level_tokenizer

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat")
NOW = 1_700_000_000
CASES = 7  # per template
CASES_WITH_IDS = 3

# What a template takes, by what it shows; the rest is rewritten as Pagoda does
# (src/text/chat_messages.h).
NEEDLE, OTHER = "nEEdLe", "oThEr-nEEdLe"
# Jinja2 escapes for HTML what this template adds to a text that is marked |safe; Pagoda does not.
ESCAPES = {"functionary3.1"}

WORDS = ("Hello there, what is the weather in Paris today? I have 1234 apples; it's 3.5 kg. "
         "naïve café 中文字符 日本語 мир 😀 👨‍👩‍👧 \"quoted\" 'single' back\\slash <b>&amp;</b> "
         "def f(x): return {x: [1, 2]} <think> </think> a\tb \n \n\n   end. …").split(" ")

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Which city, e.g. \"Zürich\""},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "days": {"type": "integer"}}, "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "add", "description": "Adds <two> numbers & more.",
        "parameters": {"type": "object", "properties": {
            "a": {"type": "number", "default": 1.5},
            "rest": {"type": "array", "items": {"type": "string"}}}, "required": ["a"]}}},
]
DOCUMENTS = [{"title": "on rivers", "text": "The Nile is long."}, {"text": "Untitled. Ünïcode."}]


class FixedTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2023, 11, 14, 22, 13, 20)


def text(rng):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 9)))


def content(rng):
    if rng.random() < 0.25:
        return [{"type": "text", "text": text(rng)} for _ in range(rng.randint(1, 3))]
    return text(rng)


def tool_turn(rng):
    count = rng.randint(1, 2)
    calls = []
    for i in range(count):
        arguments = {"city": text(rng), "days": rng.randint(0, 9),
                     "more": rng.choice([None, True, 1.5, 1e16, [1, "a"], {"q": "w", "a": []}])}
        calls.append({"id": f"abcdefgh{i}", "type": "function",
                      "function": {"name": "get_weather",
                                   "arguments": json.dumps(arguments, ensure_ascii=False)}})
    yield {"role": "assistant", "content": rng.choice(["", None, text(rng)]), "tool_calls": calls}
    for i in range(count):
        yield {"role": "tool", "tool_call_id": f"abcdefgh{i}", "name": "get_weather",
               "content": rng.choice([text(rng), '{"degrees": 21.5}'])}
    yield {"role": "assistant", "content": text(rng)}


def conversation(rng):
    messages = []
    if rng.random() < 0.5:
        messages.append({"role": "system", "content": content(rng)})
    turns = rng.randint(1, 3)
    for turn in range(turns):
        messages.append({"role": "user", "content": content(rng)})
        if turn == turns - 1 and rng.random() < 0.6:
            break
        kind = rng.random()
        if kind < 0.3:
            messages.extend(tool_turn(rng))
        else:
            messages.append({"role": "assistant", "content": text(rng)})
            if kind < 0.5:
                messages[-1]["reasoning_content"] = text(rng)
    return messages


class Taken:
    """What a template can take, found by rendering small conversations with transformers."""

    def __init__(self, source, named):
        def shown(*messages):
            for tools in (None, []):  # some templates need a list of tools
                try:
                    return chat.render_jinja_template(
                        [list(messages)], tools=tools, chat_template=source, add_generation_prompt=True,
                        bos_token=named["bos"], eos_token=named["eos"])[0][0]
                except (TypeError, ValueError, AttributeError, KeyError, jinja2.TemplateError):
                    continue
            return ""

        user = {"role": "user", "content": NEEDLE}
        parts = shown({"role": "user", "content": [{"type": "text", "text": NEEDLE}]})
        self.parts = NEEDLE in parts and "'type'" not in parts and '"type"' not in parts
        self.text = NEEDLE in shown(user) or not self.parts
        if not self.text:
            user = {"role": "user", "content": [{"type": "text", "text": NEEDLE}]}
        system = {**user, "role": "system"}
        system["content"] = OTHER if self.text else [{"type": "text", "text": OTHER}]
        self.system = OTHER in shown(system, user)
        self.text_arguments = False
        for words in (None, ""):
            def call(arguments):
                return shown(user, {"role": "assistant", "content": words, "tool_calls": [
                    {"id": "call00001", "type": "function", "function": {"name": "probe", "arguments": arguments}}]},
                    {"role": "tool", "content": user["content"], "tool_call_id": "call00001", "name": "probe"})

            as_object = call({OTHER: 1})
            if OTHER in as_object and f"'{OTHER}'" not in as_object:
                break
            if f'{{"{OTHER}' in call(f'{{"{OTHER}": 1}}'):
                self.text_arguments = True
                break


def joined(value):
    return "\n".join(part["text"] for part in value) if isinstance(value, list) else value


def rewritten(taken, messages):
    """The conversation in the form the template takes."""
    messages = copy.deepcopy(messages)
    for message in messages:
        if not taken.parts:
            message["content"] = joined(message["content"])
        elif not taken.text and isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        for call in message.get("tool_calls", []):
            if not taken.text_arguments:
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    if not taken.system and messages[0]["role"] == "system":
        system = messages.pop(0)["content"]
        messages[0]["content"] = joined(system) + "\n\n" + joined(messages[0]["content"])
    return messages


def hf_tokenizer(path):
    backend = byte_level_tokenizer(path)
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    special = [AddedToken(t, special=True, normalized=False)
               for t, kind in zip(tokens, types) if kind == CONTROL]
    # The control tokens come first in this vocabulary, so that they keep their ids.
    ids = {token: i for i, token in enumerate(tokens)}
    data = json.loads(backend.to_str())
    data["added_tokens"] = [
        {"id": ids[t.content], "content": t.content, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False, "special": True} for t in special]
    data["model"]["vocab"].update({t.content: ids[t.content] for t in special})
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=type(backend).from_str(json.dumps(data)))
    named = {kind: tokens[fields[f"tokenizer.ggml.{kind}_token_id"].contents()]
             for kind in ("bos", "eos")}
    return tokenizer, named


def render(taken, source, case, named):
    goes_on = case.get("continue_final_message", False)

    def attempt(messages):
        return chat.render_jinja_template(
            [rewritten(taken, messages)], tools=case.get("tools"), documents=case.get("documents"),
            chat_template=source, continue_final_message=goes_on,
            add_generation_prompt=case.get("add_generation_prompt", True) and not goes_on,
            bos_token=named["bos"], eos_token=named["eos"], **case["kwargs"])[0][0]

    try:
        return attempt(case["messages"])
    except (TypeError, jinja2.TemplateError):
        # It may be that the template cannot take a content of null, which Pagoda makes empty.
        return attempt([{**message, "content": message["content"] or ""}
                        for message in case["messages"]])


def make_case(name, taken, source, rng, named):
    case = {"template": name, "messages": conversation(rng)}
    last = case["messages"][-1]
    if last["role"] == "assistant" and rng.random() < 0.7:
        case["continue_final_message"] = True
    elif rng.random() < 0.2:
        case["add_generation_prompt"] = False
    if rng.random() < 0.4:
        case["tools"] = TOOLS
    if name == "documents" and rng.random() < 0.7:
        case["documents"] = DOCUMENTS
    case["kwargs"] = rng.choice([{}, {}, {"enable_thinking": False}, {"enable_thinking": True},
                                 {"reasoning_effort": "high", "mood": "céleste", "strength": 4}])
    try:
        case["prompt"] = render(taken, source, case, named)
    except jinja2.exceptions.SecurityError:
        # Kimi K2's templates append to lists, which the sandbox of transformers forbids.
        return make_case(name, taken, source, rng, named)
    except jinja2.TemplateError as error:
        case["refused"] = str(error)
    except (TypeError, ValueError):
        # transformers looks for the text to go on from, and gives up where the template changed
        # it; Pagoda knows where each byte is from. A template that fails by itself says nothing.
        return make_case(name, taken, source, rng, named)
    return case


def main():
    chat.datetime = FixedTime
    tokenizer, named = hf_tokenizer(sys.argv[1])
    own = GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
    with open(os.path.join(FOLDER, "templates/smollm2.jinja"), "w", encoding="utf-8") as stream:
        stream.write(own)
    cases = []
    for path in sorted(glob.glob(os.path.join(FOLDER, "templates/*.jinja"))):
        with open(path, encoding="utf-8", newline="") as stream:
            source = stream.read()
        name = os.path.basename(path).removesuffix(".jinja")
        if name in ESCAPES:
            continue
        # A template that is added changes no case of another one.
        rng = random.Random(f"2024 {name}")
        taken = Taken(source, named)
        made = [make_case(name, taken, source, rng, named) for _ in range(CASES)]
        for case in [case for case in made if "prompt" in case][:CASES_WITH_IDS]:
            case["ids"] = tokenizer(case["prompt"], add_special_tokens=False)["input_ids"]
        cases.extend(made)
    fixture = {"now": NOW, **named}
    with open(os.path.join(FOLDER, "prompts.json"), "w", encoding="utf-8") as stream:
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
        stream.write(json.dumps(fixture)[:-1] + ', "cases": [\n' + lines + "\n]}\n")
    expressions = []
    for snippet in snippets(random.Random(2024)):
        rendered = chat._compile_jinja_template(snippet).render()
        expressions.append({"template": snippet, "text": rendered})
    with open(os.path.join(FOLDER, "expressions.json"), "w", encoding="ascii") as stream:
        stream.write("[\n" + ",\n".join(json.dumps(entry) for entry in expressions) + "\n]\n")


if __name__ == "__main__":
    main()
