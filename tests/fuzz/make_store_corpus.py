#!/usr/bin/env python3
"""Writes corpus/page_record (a byte of flags, then a record) and corpus/protocol (a byte for kind and
pieces, then replies).

    tests/fuzz/make_store_corpus.py
"""
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def record(owner=b"o", generation=6, flags=0, tokens=(7, 7), page=b"0123456789", group_number=0):
    head = b"PAGODA1\n" + owner * 8 + struct.pack("<QIIQ", generation, flags, len(tokens), len(page))
    label = b"s" * 16 + b"n" * 32 + b"p" * 32 + struct.pack("<I", group_number)
    return head + bytes(28) + label + struct.pack(f"<{len(tokens)}I", *tokens) + page + bytes(8)


RECORDS = [
    b"\1" + record(),
    b"\0" + record(),
    b"\3" + record(flags=1),
    b"\1" + record(owner=b"x"),
    b"\1" + record(generation=7),
    b"\1" + record(tokens=(7, 8)),
    b"\1" + record(tokens=()),
    b"\1" + record(page=b""),
    b"\1" + record(group_number=1),
    b"\1" + record(flags=2),
    b"\1" + record()[:60],
]
REDIS = [
    b"+OK\r\n+PONG\r\n",
    b"$5\r\nhello\r\n$-1\r\n$0\r\n\r\n",
    b":1\r\n:0\r\n:-1\r\n",
    b"-OOM command not allowed\r\n-WRONGPASS no\r\n",
    b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    b"*2\r\n$1\r\n0\r\n*0\r\n*-1\r\n",
    b"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    b"$999999999\r\nx",
    b"*2147483647\r\n",
    b"$5\r\n\n\n$-TRYAGAINM",
    b"$5\r\nhelloXX+OK\r\n",
]
MEMCACHED = [
    b"HD\r\nEN\r\nMN\r\nNF\r\nNS\r\n",
    b"VA 5 f0\r\nhello\r\nVA 0\r\n\r\n",
    b"STAT item_size_max 1048576\r\nSTAT x y\r\nEND\r\n",
    b"SERVER_ERROR out of memory storing object\r\nSERVER_ERROR busy\r\n",
    b"CLIENT_ERROR bad data chunk\r\n",
    b"VA 99999999999999999999\r\n",
    b"VA 3\r\nabcd\r\n",
]


def write(folder, inputs):
    place = HERE / "corpus" / folder
    place.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (place / f"seed_{number:02}").write_bytes(data)


write("page_record", RECORDS)
write("protocol", [bytes([4 * i % 128]) + data for i, data in enumerate(REDIS)]
      + [bytes([4 * i % 128 + 1]) + data for i, data in enumerate(MEMCACHED)])
