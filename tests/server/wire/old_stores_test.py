"""Stores that earlier versions wrote are read by this one (tests/data/stores/make_stores.py)."""

import base64
import gzip
import json
import os
import shutil
import sys
import tarfile
import tempfile
import unittest

import served
from redis_process import RedisProcess

STORES = os.path.join(served.SOURCE, "tests/data/stores")
VERSIONS = sorted(name for name in os.listdir(STORES) if os.path.isdir(os.path.join(STORES, name)))
WHOLE = 80  # tokens of the prompt, of 87, that stand in whole blocks


class OldStores(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, value in (("XDG_CACHE_HOME", self.folder.name), ("PAGODA_KERNELS", "ref")):
            self.addCleanup(self.restore, name, os.environ.get(name))
            os.environ[name] = value

    @staticmethod
    def restore(name, value):
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value

    def recorded(self, version):
        with open(os.path.join(STORES, version, "replies.json")) as file:
            return json.load(file)

    def check(self, version, tier, *flags):
        recorded = self.recorded(version)
        for element, expected in recorded["choices"].items():
            with self.subTest(version=version, tier=tier, element=element):
                with served.Served(served.STORIES, "--kv-cache-dtype", element, "--kv-load", "always",
                                   "--kv-write", "off", *flags) as server:
                    status, reply = server.post("/v1/completions", recorded["request"])
                    self.assertEqual(status, 200, reply)
                    details = reply["usage"]["prompt_tokens_details"]
                    self.assertEqual(details["cached_tokens_by_tier"], {"memory": 0, tier: WHOLE})
                    for field in ("text", "logprobs", "token_ids", "prompt_token_ids", "finish_reason"):
                        self.assertEqual(reply["choices"][0][field], expected[field])

    def test_versions_are_recorded(self):
        self.assertTrue(VERSIONS)

    def test_a_disk_store_is_read(self):
        for version in VERSIONS:
            disk = os.path.join(self.folder.name, version)
            with tarfile.open(os.path.join(STORES, version, "disk.tar.gz")) as archive:
                archive.extractall(disk)
            self.check(version, "disk", "--kv-disk", disk, "--kv-disk-size", "640KiB")

    @unittest.skipUnless(served.BUILT_WITH_REDIS, "the program was built without Redis")
    @unittest.skipUnless(shutil.which("redis-server") or served.on_build_machine(), "redis-server is not here")
    def test_a_redis_is_read(self):
        for version in VERSIONS:
            with gzip.open(os.path.join(STORES, version, "redis.json.gz"), "rt") as file:
                values = json.load(file)
            with RedisProcess() as redis:
                for key, value in values.items():
                    redis.command(b"SET", key.encode(), base64.b64decode(value))
                self.check(version, "redis", "--kv-disk", "off", "--kv-remote", redis.url)


if __name__ == "__main__":
    served.run(sys.modules[__name__])
