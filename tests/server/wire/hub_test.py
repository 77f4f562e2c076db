"""pagoda pull with the real huggingface_hub against a stand-in of the hub: what it leaves in the cache folder,
and that the name is then found."""

import hashlib
import json
import os
import sys

import hub
import served
from names_test import COMMIT, NAME, TOKEN, Folders, stories

LATER = "5f1d00000000000000000000000000000000beef"


class Pull(Folders):
    """`hf` is that of this Python."""

    def setUp(self):
        super().setUp()
        program = os.path.join(self.bin, "hf")
        with open(program, "w") as file:
            file.write(f"#!{sys.executable}\nimport sys\nfrom huggingface_hub.cli.hf import main\nsys.exit(main())\n")
        os.chmod(program, 0o755)
        self.files = {"stories-F32.gguf": stories(), "stories-Q8_0.gguf": b"not asked for", "README.md": b"# Tiny",
                      "config.json": b"{}"}
        self.hub = hub.Hub({NAME: {"refs": {"main": COMMIT, "v1": LATER},
                                   "commits": {COMMIT: self.files, LATER: {"old-F32.gguf": stories()}}}})
        self.addCleanup(self.hub.stop)
        self.environment["HF_ENDPOINT"] = self.hub.url

    def test_a_file_is_pulled_as_the_hub_lays_it_out_and_found(self):
        self.environment["HF_TOKEN"] = TOKEN
        done = self.pagoda("pull", NAME + ":F32")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.in_hub(NAME, "refs", "main")) as ref:
            self.assertEqual(ref.read(), COMMIT)
        link = self.in_hub(NAME, "snapshots", COMMIT, "stories-F32.gguf")
        self.assertTrue(os.path.islink(link))
        blob = self.in_hub(NAME, "blobs", hashlib.sha256(stories()).hexdigest())
        self.assertEqual(os.path.realpath(link), os.path.realpath(blob))
        self.assertEqual(os.listdir(self.in_hub(NAME, "snapshots", COMMIT)), ["stories-F32.gguf"])
        self.assertIn(link, done.stdout)
        self.assertNotIn(TOKEN, done.stdout + done.stderr)
        self.assertIn(f"Bearer {TOKEN}", {token for _, _, token in self.hub.requests})

        shown = self.pagoda("inspect", NAME, "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(json.loads(shown.stdout)["path"], link)

        asked = len(self.hub.requests)
        again = self.pagoda("pull", NAME + ":F32")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("is already at", again.stdout)
        self.assertEqual(len(self.hub.requests), asked, "the hub was not asked")
        self.assertEqual(self.pagoda("pull", NAME + ":F32", "--force").returncode, 0)
        self.assertGreater(len(self.hub.requests), asked)

    def test_a_revision_is_pulled_and_found(self):
        done = self.pagoda("pull", NAME + ":old-F32.gguf", "--revision", "v1")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.in_hub(NAME, "refs", "v1")) as ref:
            self.assertEqual(ref.read(), LATER)
        for name in (NAME + "@v1", NAME + "@" + LATER, NAME + "@5f1d0"):
            shown = self.pagoda("inspect", name)
            self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertEqual(self.pagoda("inspect", NAME).returncode, 1, "main was not pulled")

    def test_of_a_folder_what_is_read_is_pulled(self):
        files = {name: name.encode() for name in (
            "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "tokenizer.json",
            "tokenizer.model", "chat_template.jinja", "generation_config.json")}
        files["config.json"] = b"{}"
        files["model.safetensors.index.json"] = json.dumps(
            {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}).encode()
        others = {"pytorch_model.bin": b"x", "README.md": b"x", "model-Q4_0.gguf": b"x"}
        self.hub.repositories["Tiny/Folder"] = {"refs": {"main": COMMIT}, "commits": {COMMIT: {**files, **others}}}
        done = self.pagoda("pull", "Tiny/Folder")
        self.assertEqual(done.returncode, 0, done.stderr)
        snapshot = self.in_hub("Tiny/Folder", "snapshots", COMMIT)
        self.assertEqual(set(os.listdir(snapshot)), set(files))
        self.assertIn(f"Tiny/Folder is at {snapshot}\n", done.stdout)
        os.remove(os.path.realpath(os.path.join(snapshot, "model-00002-of-00002.safetensors")))
        broken = self.pagoda("inspect", "Tiny/Folder")
        self.assertIn("model-00002-of-00002.safetensors is not there", broken.stderr)
        self.assertEqual(self.pagoda("pull", "Tiny/Folder").returncode, 0)
        self.assertTrue(os.path.isfile(os.path.join(snapshot, "model-00002-of-00002.safetensors")))

    def test_what_is_not_on_the_hub_ends_with_its_status_and_words(self):
        for name in ("Tiny/Nothing", NAME + "@no-such-revision"):
            done = self.pagoda("pull", name)
            self.assertNotEqual(done.returncode, 0)
            self.assertTrue(done.stderr)

    def test_a_repository_of_gguf_files_wants_one_named(self):
        done = self.pagoda("pull", NAME)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"pagoda pull {NAME}:Q4_K_M", done.stderr)
        self.assertFalse(os.path.exists(self.in_hub(NAME, "snapshots", COMMIT, "stories-F32.gguf")))


if __name__ == "__main__":
    served.run(sys.modules[__name__])
