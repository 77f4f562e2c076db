"""What wire tests have beside a server of their own (tools/served_process.py)."""

import json
import os
import sys
import tempfile

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.path += [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "tools")]
from python_tests import run  # noqa: E402,F401  (what each test program ends with)
from served_process import BINARY, DEFAULT_MODEL, STORIES, Served, wait_until  # noqa: E402,F401

BUILT_WITH_REDIS = os.environ.get("PAGODA_BUILT_WITH_REDIS") != "0"
STORY_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def on_build_machine():
    return os.environ.get("CI") == "true"


def require_default_model(test):
    if os.path.exists(DEFAULT_MODEL):
        return
    if on_build_machine():
        test.fail(f"the default model is missing: {DEFAULT_MODEL}")
    test.skipTest(f"the default model is not here: {DEFAULT_MODEL}")


def stream_events(text):
    """The data of server-sent events, [DONE] left out; comments are skipped."""
    events = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    assert events and events[-1] == "[DONE]", text
    return [json.loads(event) for event in events[:-1]]


class ChatServed(Served):
    """The story model behind STORY_TEMPLATE: its file has no chat template."""

    def __init__(self, *flags, **options):
        self.template = tempfile.NamedTemporaryFile("w", suffix=".jinja")
        self.template.write(STORY_TEMPLATE)
        self.template.flush()
        super().__init__(STORIES, "--chat-template", self.template.name, *flags, **options)
