"""What the tests of the Python package share."""

import os
import sys
import tempfile

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
BUILD = os.path.dirname(os.environ["PAGODA_BINARY"])
sys.path += [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "tests/server/wire")]
STORIES = os.path.join(SOURCE, "tests/data/models/stories260K.gguf")
STORY_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
SMALL = {"kv_cache_memory_bytes": "64MiB", "threads": 1}


def template_file():
    """A file with a chat template; the story model's own file has none."""
    file = tempfile.NamedTemporaryFile("w", suffix=".jinja")
    file.write(STORY_TEMPLATE)
    file.flush()
    return file
