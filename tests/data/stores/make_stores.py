#!/usr/bin/env python3
"""Records what a version of pagoda wrote to a disk store and to a Redis.

    tests/data/stores/make_stores.py BINARY FOLDER

BINARY serves stories260K with the reference kernels, once for each KV format of CPUs, answers one prompt
and writes every block through to both stores. FOLDER then holds disk.tar.gz (the store's files),
redis.json.gz (keys and values in base64) and replies.json (the request and each format's reply). Needs
redis-server. tests/server/wire/old_stores_test.py reads all folders beside this file.
"""

import base64
import gzip
import json
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
FORMATS = ["fp32", "bf16", "fp16"]
PROMPT = ("Once upon a time there was a little girl named Lily. She liked to play outside in the park with "
          "her big red ball. One day she saw a small bird that could not fly. The bird was sad, and Lily "
          "wanted to help the bird find its mother.")
REQUEST = {"prompt": PROMPT, "max_tokens": 24, "temperature": 0, "seed": 1, "logprobs": 2, "return_token_ids": True}


def record(folder):
    sys.path.insert(0, os.path.join(SOURCE, "tests/server/wire"))
    import redis_process
    import served
    replies = {}
    with tempfile.TemporaryDirectory() as work, redis_process.RedisProcess() as redis:
        os.environ.update(PAGODA_KERNELS="ref", XDG_CACHE_HOME=work)
        disk = os.path.join(work, "kv")
        for element in FORMATS:
            with served.Served(served.STORIES, "--kv-cache-dtype", element, "--kv-disk", disk, "--kv-disk-size", "640KiB",
                               "--kv-remote", redis.url, "--kv-write", "through") as server:
                status, reply = server.post("/v1/completions", REQUEST)
                assert status == 200, reply
                replies[element] = reply["choices"][0]
        os.makedirs(folder, exist_ok=True)
        with tarfile.open(os.path.join(folder, "disk.tar.gz"), "w:gz") as archive:
            for name in sorted(os.listdir(disk)):
                archive.add(os.path.join(disk, name), name)
        values = {key: base64.b64encode(value).decode() for key, value in redis.items()}
        with gzip.open(os.path.join(folder, "redis.json.gz"), "wt") as file:
            json.dump(values, file)
        with open(os.path.join(folder, "replies.json"), "w") as file:
            json.dump({"request": REQUEST, "choices": replies}, file, indent=1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.environ.update(PAGODA_BINARY=os.path.abspath(sys.argv[1]), PAGODA_SOURCE_DIR=SOURCE)
    record(os.path.abspath(sys.argv[2]))
    print(subprocess.run([sys.argv[1], "--version"], capture_output=True, text=True).stdout.strip())
