"""The help of every command of the program, and the names that docs/guide/migrate.md gives to its flags."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.environ["PAGODA_SOURCE_DIR"]
sys.path[:0] = [os.path.join(SOURCE, "tests"), os.path.join(SOURCE, "tests/server/wire")]
import served  # noqa: E402

USED_MOST = "Used most"
FLAGS_MAX = 25  # a longer list has headings, and begins with what is used most
FOREIGN = re.compile(r"^(OLLAMA|VLLM|LLAMA_ARG)_")


def run(*words, **variables):
    environment = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return subprocess.run([served.BINARY, *words], capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**environment, **variables})


def help_of(command):
    done = run(*command, "--help")
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def parts(text):
    """Heading -> first lines of its rows."""
    found, heading = {}, None
    for line in text.decode().splitlines():
        if re.fullmatch(r"[A-Za-z][A-Za-z ]*:", line):
            heading = line[:-1]
            found[heading] = []
        elif heading and re.match(r"  \S", line):
            found[heading].append(line)
        elif not line:
            heading = None
    return found


def commands(above=()):
    for row in parts(help_of(above)).get("Subcommands", parts(help_of(above)).get("SUBCOMMANDS", [])):
        command = (*above, row.split()[0])
        yield command
        yield from commands(command)


COMMANDS = [(), *commands()]


def flags_of(text):
    """Heading -> flags, each with all its names."""
    def names(row):
        return re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", re.split(r"\s{2,}", row.strip())[0])

    listed = {heading: [names(row) for row in rows if row.startswith("  -")] for heading, rows in parts(text).items()}
    return {heading: flags for heading, flags in listed.items() if flags}


def section(heading):
    with open(os.path.join(SOURCE, "docs/guide/migrate.md")) as file:
        return re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", file.read(), re.M | re.S).group(1)


def rows(heading):
    lines = [line for line in section(heading).splitlines() if line.startswith("| `")]
    assert lines, heading
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]


class Help(unittest.TestCase):
    def test_every_command_is_found(self):
        """A walk that finds nothing would pass."""
        self.assertGreater(len(COMMANDS), 30)
        self.assertIn(("bench", "cache"), COMMANDS)

    def test_it_is_text(self):
        for command in COMMANDS:
            text = help_of(command)
            self.assertEqual([byte for byte in text if byte < 32 and byte != 10], [], command)
            text.decode()

    def test_values_of_a_choice_are_named(self):
        text = help_of(("serve",)).decode()
        for part in ("--device auto|cpu|cuda", "--kv-write use|through|off", "--log-format text|json|none"):
            self.assertIn(part, text)
        for command in COMMANDS:
            self.assertNotRegex(help_of(command).decode(), r"\bENUM\b|:\{|->")

    def test_the_ten_that_are_used_most_come_first_and_the_others_by_subject(self):
        seen = 0
        for command in COMMANDS:
            flags = flags_of(help_of(command))
            if sum(len(group) for group in flags.values()) <= FLAGS_MAX:
                continue
            seen += 1
            self.assertEqual(next(iter(flags)), USED_MOST, command)
            self.assertEqual(len(flags[USED_MOST]), 10, command)
            self.assertGreaterEqual(len(flags), 4, command)
            for heading in ("Options", "OPTIONS"):
                self.assertLessEqual(len(flags.get(heading, [])), 1, f"{command}: --help alone has no subject")
        self.assertGreaterEqual(seen, 3)
        most = [name for names in flags_of(help_of(("serve",)))[USED_MOST] for name in names]
        for flag in ("--model", "--host", "--port", "--api-key", "--device", "--max-model-len", "--threads",
                     "--kv-cache-memory-bytes", "--kv-cache-dtype", "--max-num-seqs"):
            self.assertIn(flag, most)

    def test_sizes_of_steps_say_what_devices_choose(self):
        text = " ".join(help_of(("serve",)).decode().split())
        for words in ("sequences that run at once (default: chosen by device: 64; 256 on a GPU of 64 GiB or more",
                      "(default: chosen by device: 512; 8192 on a GPU of 64 GiB or more", "(default: 50 on a GPU, 0 on a CPU)",
                      "(default: 32; on a GPU an eighth of the tokens of a step)", "beside a GPU a quarter of the cores"):
            self.assertIn(words, text)

    def test_no_flag_stands_twice(self):
        for command in COMMANDS:
            names = [name for group in flags_of(help_of(command)).values() for flag in group for name in flag]
            self.assertEqual(sorted(names), sorted(set(names)), command)


class Brought(unittest.TestCase):
    def test_names_of_the_guide_are_accepted_and_in_the_help(self):
        for names, here, where in rows("Names that are taken"):
            ours = re.findall(r"`(--[\w-]+)`", here)
            for command in re.findall(r"`([a-z ]+)`", where):
                text = help_of(command.split()).decode()
                for name in re.findall(r"`(--?[\w-]+)`", names):
                    shown = name.replace("_", "-")
                    self.assertRegex(text, rf"(?<![\w-]){shown}(?![\w-])", (command, name))
                    self.assertIn(ours[0] if ours else name, text)
                    done = run(*command.split(), name, "none such", "--no-such-flag")
                    self.assertEqual(done.returncode, 2)
                    self.assertNotIn(f"unknown option {name}", done.stderr.decode())

    def test_variables_of_the_guide_are_read(self):
        values = {"OLLAMA_CONTEXT_LENGTH": "64", "OLLAMA_NUM_PARALLEL": "2", "OLLAMA_KV_CACHE_TYPE": "q8_0",
                  "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_API_KEY": "sk-b33f"}
        named = {re.findall(r"`(\w+)`", name)[0]: re.findall(r"`(--[\w-]+)`", here)[0]
                 for name, here, *_ in rows("Environment variables")}
        self.assertEqual(set(named), set(values), "the list is fixed")
        for name, flag in named.items():
            said = run("serve", "--port", "none", **{name: values[name]}).stderr.decode()
            self.assertIn(name, said)
            self.assertIn(f"is read as {flag}", said)
            self.assertNotIn("b33f", said)
        self.assertNotIn("read as", run("serve", "--port", "none").stderr.decode())

    def test_a_server_starts_by_variables(self):
        os.environ.update({"OLLAMA_CONTEXT_LENGTH": "100", "VLLM_API_KEY": "sk-b33f", "OLLAMA_HOST": "0.0.0.0:1"})
        for name in ("OLLAMA_CONTEXT_LENGTH", "VLLM_API_KEY", "OLLAMA_HOST"):
            self.addCleanup(os.environ.pop, name)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        with served.Served(served.STORIES, "-t", "1", "--num-gpu-blocks-override", "40", "--device", "cpu",
                           "--secret-file", os.path.join(folder.name, "secret")) as server:
            self.assertEqual(server.get("/v1/models")[0], 401)
            bearer = {"Authorization": "Bearer sk-b33f"}
            models = server.get("/v1/models", bearer)[1]
            self.assertEqual(models["data"][0]["max_model_len"], 100)
            metrics = server.request("GET", "/metrics")[1]
            self.assertIn('num_gpu_blocks="40"', metrics)
            self.assertTrue(server.url.startswith("http://127.0.0.1:"), server.url)
            said = server.stderr()
        self.assertIn("OLLAMA_CONTEXT_LENGTH=100 is read as --max-model-len 100", said)
        self.assertIn("OLLAMA_HOST changes nothing here: --host and --port", said)
        self.assertNotIn("sk-b33f", said)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
